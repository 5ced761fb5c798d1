-- Remember a failed message that its partition waits for.
-- KEYS: 1 lease, 2 record hash
-- ARGV: 1 my name, 2 message id, 3 attempts made, 4 delay ms, 5 ttl ms
-- Returns: 1 kept, 0 the lease is not mine any more
-- Atomic where the keys share a slot. The time of the first failure is kept.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local first = now
local known = redis.call('HMGET', KEYS[2], 'id', 'first_failed_at_ms')
if known[1] == ARGV[2] and known[2] then first = known[2] end
redis.call('DEL', KEYS[2])
redis.call('HSET', KEYS[2], 'id', ARGV[2], 'attempts', ARGV[3],
  'first_failed_at_ms', first, 'due_at_ms', now + ARGV[4])
redis.call('PEXPIRE', KEYS[2], ARGV[5])
return 1
