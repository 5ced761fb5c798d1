-- Copy one dead letter back to its partition and remember that.
-- KEYS: 1 dead letters, 2 stream, 3 replayed hash
-- ARGV: 1 dead letter id, 2 'keep' or 'delete', 3 history expected ('' = never replayed),
--       4... field, value, ... of the entry
-- Returns: the new entry's id; 'gone' when the dead letter is; 'changed' when it was
--       replayed meanwhile
-- Atomic where the keys share a slot.
if #redis.call('XRANGE', KEYS[1], ARGV[1], ARGV[1]) == 0 then return 'gone' end
local history = redis.call('HGET', KEYS[3], ARGV[1]) or ''
if history ~= ARGV[3] then return 'changed' end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local id = redis.call('XADD', KEYS[2], '*', unpack(ARGV, 4))
if ARGV[2] == 'delete' then
  redis.call('XDEL', KEYS[1], ARGV[1])
  redis.call('HDEL', KEYS[3], ARGV[1])
else
  local count = tonumber(string.match(history, '^%d+') or '0') + 1
  redis.call('HSET', KEYS[3], ARGV[1], count .. ':' .. now)
end
return id
