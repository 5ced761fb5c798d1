-- Say that a consumer lives, forget those that do not, tell who is there.
-- KEYS: 1 members zset
-- ARGV: 1 ttl ms, 2 own member ('' = only look)
-- Returns: {server time ms, member, score, member, score, ...}
-- One key; atomic.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if ARGV[2] ~= '' then
  -- At its memory limit a server lets a script go on that has begun to write.
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  redis.call('ZADD', KEYS[1], now, ARGV[2])
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', '(' .. (now - ARGV[1]))
local reply = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
table.insert(reply, 1, now)
return reply
