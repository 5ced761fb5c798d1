-- Move one due retry item into its partition.
-- KEYS: 1 retry zset, 2 item hash, 3 stream
-- ARGV: field, value, ... of the entry, as read from the item
-- Returns: 1 moved, 0 another mover had it; an error leaves the item where it is
-- Atomic where the keys share a slot: the item is in exactly one place at any time.
if not redis.call('ZSCORE', KEYS[1], KEYS[2]) then return 0 end
redis.call('XADD', KEYS[3], '*', unpack(ARGV))
redis.call('ZREM', KEYS[1], KEYS[2])
redis.call('DEL', KEYS[2])
return 1
