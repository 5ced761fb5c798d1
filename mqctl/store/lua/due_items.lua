-- List retry items that are due, and when the next one is.
-- KEYS: 1 retry zset
-- ARGV: 1 limit, 2 hold ms: 0 only looks; else each listed item is pushed that far
--       ahead, so that nobody else lists it meanwhile
-- Returns: {server time ms, due time of the first item after these or '', item, ...}
-- One key; atomic.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[1])
if tonumber(ARGV[2]) > 0 then
  for _, item in ipairs(due) do redis.call('ZADD', KEYS[1], now + ARGV[2], item) end
end
local after = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
table.insert(due, 1, after[2] or '')
table.insert(due, 1, now)
return due
