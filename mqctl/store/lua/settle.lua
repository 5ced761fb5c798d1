-- Settle deliveries of one partition: acknowledge, append again, schedule or bury,
-- each write before its acknowledgement, then raise the group's frontier.
-- KEYS: 1 stream, 2 lease, 3 commit hash, 4 acked hash, 5 retry zset, 6 dead letters,
--       7... one retry item for each 'later', in their order
-- ARGV: 1 group, 2 consumer, 3 fence: 'lease' = act only while the lease is mine,
--       'entry' = ownership of each entry decides, 4 number of plain acks n,
--       5..4+n their ids, then per operation:
--       kind ('ack' | 'again' | 'later' | 'dead'), id, deliveries ('' = any),
--       delay ms, number of values m, m field/value texts
-- Returns: {'lost'} and nothing done, or {'done', frontier, result per operation}
--       result: 'done', 'already' (not pending any more), 'lost' (somebody else's)
-- Atomic where all keys share a slot. Operations already settled are left alone, so
-- a repeated call does nothing twice.
local group, me = ARGV[1], ARGV[2]
if ARGV[3] == 'lease' and redis.call('GET', KEYS[2]) ~= me then return { 'lost' } end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function ack(first, last)
  for i = first, last, 1000 do
    redis.call('XACK', KEYS[1], group, unpack(ARGV, i, math.min(i + 999, last)))
  end
end

local function held(id, deliveries)
  local row = redis.call('XPENDING', KEYS[1], group, id, id, 1)[1]
  if not row then return 'already' end
  if row[2] ~= me then return 'lost' end
  if deliveries ~= '' and row[4] ~= tonumber(deliveries) then return 'lost' end
  return 'done'
end

local acks = tonumber(ARGV[4])
ack(5, 4 + acks)

local at, item, results, settled = 5 + acks, 7, {}, acks
while at <= #ARGV do
  local kind, id, values = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 4])
  local first, last = at + 5, at + 4 + values
  local state = held(id, ARGV[at + 2])
  if state == 'done' then
    if kind == 'again' then
      redis.call('XADD', KEYS[1], '*', unpack(ARGV, first, last))
    elseif kind == 'later' then
      redis.call('HSET', KEYS[item], unpack(ARGV, first, last))
      redis.call('ZADD', KEYS[5], now + ARGV[at + 3], KEYS[item])
    elseif kind == 'dead' then
      redis.call('XADD', KEYS[6], '*', unpack(ARGV, first, last))
    end
    redis.call('XACK', KEYS[1], group, id)
    settled = settled + 1
  end
  if kind == 'later' then item = item + 1 end
  results[#results + 1] = state
  at = last + 1
end

-- The contiguous frontier: everything up to it is finished. Ids are compared and
-- counted as text: they have more digits than a Lua number.
local function below(a, b)
  if #a ~= #b then return #a < #b end
  return a < b
end
local function less_one(number)
  local head, digit, zeros = string.match(number, '^(.-)([1-9])(0*)$')
  local text = head .. (digit - 1) .. string.rep('9', #zeros)
  return (string.gsub(text, '^0(%d)', '%1'))
end
local function above(a, b)
  local am, as = string.match(a, '^(%d+)-(%d+)$')
  local bm, bs = string.match(b or '', '^(%d+)-(%d+)$')
  if not bm then return true end
  if am ~= bm then return below(bm, am) end
  return below(bs, as)
end
-- The last delivered id, or just before the lowest pending one where that is lower:
-- after a reset entries may be pending above ids that are to be read again.
local pending = redis.call('XPENDING', KEYS[1], group)
local frontier
for _, row in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
  local info = {}
  for i = 1, #row, 2 do info[row[i]] = row[i + 1] end
  if info['name'] == group then frontier = info['last-delivered-id'] end
end
if frontier and pending[1] > 0 then
  local ms, seq = string.match(pending[2], '^(%d+)-(%d+)$')
  local before = seq == '0' and less_one(ms) .. '-9223372036854775807'
    or ms .. '-' .. less_one(seq)
  if above(frontier, before) then frontier = before end
end
if frontier and above(frontier, redis.call('HGET', KEYS[3], group) or nil) then
  redis.call('HSET', KEYS[3], group, frontier)
end
if settled > 0 then redis.call('HSET', KEYS[4], group, now .. ' ' .. me) end
table.insert(results, 1, 'done')
table.insert(results, 2, frontier or '')
return results
