-- Store a message that is delivered later, unless its deduplication key is known.
-- KEYS: 1 item hash, 2 retry zset, 3 dedupe key (only with a ttl)
-- ARGV: 1 delay ms from now ('' = use 2), 2 due time epoch ms, 3 dedupe ttl ms
--       ('' = no deduplication), 4 what the dedupe key is to hold, then field, value, ...
-- Returns: {1, due ms} stored, or {0, what the dedupe key holds}
-- Atomic where the keys share a slot: an item never lies without its due time.
if ARGV[3] ~= '' then
  local first = redis.call('GET', KEYS[3])
  if first then return { 0, first } end
end
local due = ARGV[2]
if ARGV[1] ~= '' then
  local time = redis.call('TIME')
  due = time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[1]
end
redis.call('HSET', KEYS[1], unpack(ARGV, 5))
redis.call('ZADD', KEYS[2], due, KEYS[1])
if ARGV[3] ~= '' then redis.call('SET', KEYS[3], ARGV[4], 'PX', ARGV[3]) end
return { 1, tonumber(due) }
