-- Remove acknowledged entries of one partition.
-- KEYS: 1 stream, 2... the ack set of each id in their order (or none: they lie in other
--       slots and are the caller's)
-- ARGV: 1 policy: 'immediate' = for all groups, 'all-groups-ack' = those that every
--       group of the stream has finished, 2 group, 3 life of an ack set in ms, 4... ids
-- Returns: {{ids that are gone}, {id, fields of each removed entry that may refer to a
--       body and is in nobody's hands}}
-- Atomic where the keys share a slot; a repeated call does nothing twice. A group has
-- finished an entry when it was delivered to it and is not pending there: what Redis
-- itself knows decides. The ack sets are for members that count by them.
local everywhere = ARGV[1] == 'immediate'

local function order(id)
  local ms, seq = string.match(id, '^(%d+)-(%d+)$')
  return string.rep('0', 20 - #ms) .. ms .. string.rep('0', 20 - #seq) .. seq
end

local groups = {}
if redis.call('EXISTS', KEYS[1]) == 1 then
  for _, row in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
    local info = {}
    for i = 1, #row, 2 do info[row[i]] = row[i + 1] end
    groups[#groups + 1] =
      { info['name'], order(info['last-delivered-id']), info['pending'] > 0 }
  end
end

local function pending(id)
  for _, group in ipairs(groups) do
    if group[3] and #redis.call('XPENDING', KEYS[1], group[1], id, id, 1) > 0 then
      return true
    end
  end
  return false
end

local function finished(id)
  local at = order(id)
  for _, group in ipairs(groups) do
    if at > group[2] then return false end
  end
  return #groups > 0 and not pending(id)
end

-- Names are written by every codec as they are, but for their last letter.
local function refers(row)
  for i = 1, #row[2], 2 do
    if string.find(row[2][i], 'header', 1, true)
      and string.find(row[2][i + 1], 'x-payload-hash-re', 1, true) then
      return true
    end
  end
  return false
end

local gone, bodies = {}, {}
for i = 4, #ARGV do
  local id, acks = ARGV[i], KEYS[i - 2]
  local row = redis.call('XRANGE', KEYS[1], id, id)[1]
  if not row then
    gone[#gone + 1] = id
    if acks then redis.call('DEL', acks) end
  elseif everywhere or finished(id) then
    redis.call('XDEL', KEYS[1], id)
    if acks then redis.call('DEL', acks) end
    gone[#gone + 1] = id
    if refers(row) and not pending(id) then bodies[#bodies + 1] = row end
  elseif acks then
    redis.call('SADD', acks, ARGV[2])
    redis.call('PEXPIRE', acks, ARGV[3])
  end
end
return { gone, bodies }
