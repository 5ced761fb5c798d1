-- Forget a consumer's name in a group, unless entries are pending under it.
-- KEYS: 1 stream
-- ARGV: 1 group, 2 consumer
-- Returns: 1 forgotten, 0 it still holds entries
-- One key; atomic.
if #redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', 1, ARGV[2]) > 0 then return 0 end
redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])
return 1
