-- Raise a group's frontier and note its last acknowledgement, never lower it.
-- KEYS: 1 commit hash
-- ARGV: 1 group, 2 frontier id
-- Returns: 1 raised, 0 left alone
-- One key; atomic. For partitions whose keys lie in different slots.
local function below(a, b)
  if #a ~= #b then return #a < #b end
  return a < b
end
local am, as = string.match(ARGV[2], '^(%d+)-(%d+)$')
local bm, bs = string.match(redis.call('HGET', KEYS[1], ARGV[1]) or '', '^(%d+)-(%d+)$')
if bm then
  if below(am, bm) then return 0 end
  if am == bm and not below(bs, as) then return 0 end
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1
