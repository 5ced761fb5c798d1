-- Forget the record of a message that was settled.
-- KEYS: 1 record hash
-- ARGV: 1 message id
-- Returns: 1 forgotten, 0 it was another message's
-- One key; atomic.
if redis.call('HGET', KEYS[1], 'id') ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
