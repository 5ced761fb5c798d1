-- Keep, hand over or drop a lease, if it is still mine.
-- KEYS: 1 lease
-- ARGV: 1 my name, 2 new holder ('' = drop it), 3 ttl ms
-- Returns: 1 done, 0 not mine any more
-- One key; atomic.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if ARGV[2] == '' then
  redis.call('DEL', KEYS[1])
elseif ARGV[2] == ARGV[1] then
  -- Unlike SET this is done by a server at its memory limit too.
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
else
  redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
end
return 1
