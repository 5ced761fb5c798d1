-- Remove the oldest entries of a partition that retention does not keep and all groups
-- have finished; then finished entries whose body is stored aside, wherever they are.
-- KEYS: 1 stream
-- ARGV: 1 number of newest entries to keep (0 = any number), 2 age ms up to which entries
--       are kept (0 = any age), 3 page, 4 XRANGE start from which entries with a body
--       aside are looked for ('' = they stay)
-- Returns: {removed by age or number, 1 = call again, entries left, where to look for
--       bodies next, {groups that hold back what retention would remove},
--       {id, fields of each removed entry that may refer to a body}}
-- One key; atomic. A group has finished what was delivered to it and lies below its
-- lowest pending entry; every group counts, whoever made it. Without any group nothing
-- is removed: the first one has yet to read it.
local keep, age, page = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local length = redis.call('XLEN', KEYS[1])
if length == 0 then return { 0, 0, 0, ARGV[4], {}, {} } end

-- Ids have more digits than a Lua number: they are compared as text of one length.
local function order(id)
  local ms, seq = string.match(id, '^(%d+)-(%d+)$')
  return string.rep('0', 20 - #ms) .. ms .. string.rep('0', 20 - #seq) .. seq
end

-- An entry is finished up to a bound when order(id) .. '0' is below it.
local bounds, frontier = {}, nil
for _, row in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
  local info = {}
  for i = 1, #row, 2 do info[row[i]] = row[i + 1] end
  local bound = order(info['last-delivered-id']) .. '1'
  if info['pending'] > 0 then
    local hole = order(redis.call('XPENDING', KEYS[1], info['name'])[2]) .. '0'
    if hole < bound then bound = hole end
  end
  bounds[#bounds + 1] = { info['name'], bound }
  if not frontier or bound < frontier then frontier = bound end
end
if not frontier then return { 0, 0, length, ARGV[4], {}, {} } end

-- Take entries in order until stop(order), at most a page or a megabyte of them;
-- returns the first entry not taken and whether only the limit was in the way.
local function walk(from, stop, take)
  local seen, bytes = 0, 0
  repeat
    local rows = redis.call('XRANGE', KEYS[1], from, '+', 'COUNT', 20)
    for _, row in ipairs(rows) do
      if stop(order(row[1])) then return row[1], false end
      if seen >= page or bytes > 1048576 then return row[1], true end
      take(row)
      seen = seen + 1
      for i = 2, #row[2], 2 do bytes = bytes + #row[2][i] end
      from = '(' .. row[1]
    end
  until #rows < 20
  return nil, false
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

local excess, cutoff = 0, ''
if keep > 0 then excess = length - keep end
if age > 0 then
  local time = redis.call('TIME')
  local oldest = time[1] * 1000 + math.floor(time[2] / 1000) - age
  cutoff = order(string.format('%.0f-0', math.max(0, oldest)))
end

local removed, holding, bodies = 0, {}, {}
local function take(row)
  if refers(row) then bodies[#bodies + 1] = row end
end

local left, more = walk('-', function(at)
  if removed >= excess and at >= cutoff then return true end
  if at .. '0' < frontier then return false end
  for _, group in ipairs(bounds) do
    if at .. '0' >= group[2] then holding[#holding + 1] = group[1] end
  end
  return true
end, function(row)
  removed = removed + 1
  take(row)
end)
if removed > 0 then
  redis.call('XTRIM', KEYS[1], 'MINID', '=',
    left or '18446744073709551615-18446744073709551615')
end

local from, unseen, _ = ARGV[4], false, nil
if from ~= '' then
  _, unseen = walk(from, function(at) return at .. '0' >= frontier end, function(row)
    from = '(' .. row[1]
    take(row)
  end)
  for _, row in ipairs(bodies) do redis.call('XDEL', KEYS[1], row[1]) end
end
local again = (more or unseen) and 1 or 0
return { removed, again, redis.call('XLEN', KEYS[1]), from, holding, bodies }
