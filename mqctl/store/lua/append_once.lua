-- Append an entry unless one with the same deduplication key was stored before.
-- KEYS: 1 dedupe key, 2 stream
-- ARGV: 1 ttl ms, 2 partition, 3 number b of length-bound words, b words, then
--       field, value, ... of the entry
-- Returns: {1, id} stored, or {0, 'partition:id' of the first}
-- Atomic; both keys lie in the stream's slot. The ttl counts from the first store.
local first = redis.call('GET', KEYS[1])
if first then return { 0, first } end
local words = {}
local bound = tonumber(ARGV[3])
for i = 4, 3 + bound do words[#words + 1] = ARGV[i] end
words[#words + 1] = '*'
for i = 4 + bound, #ARGV do words[#words + 1] = ARGV[i] end
local id = redis.call('XADD', KEYS[2], unpack(words))
redis.call('SET', KEYS[1], ARGV[2] .. ':' .. id, 'PX', ARGV[1])
return { 1, id }
