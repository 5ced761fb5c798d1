-- Give a retry item its due time, counted from now by the server's clock.
-- KEYS: 1 retry zset
-- ARGV: 1 item key, 2 delay ms
-- Returns: due time, epoch ms
-- One key; atomic.
local time = redis.call('TIME')
local due = time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[2]
redis.call('ZADD', KEYS[1], due, ARGV[1])
return due
