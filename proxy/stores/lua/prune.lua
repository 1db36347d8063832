-- KEYS[1]: the prefix of all keys. ARGV: pairs of a period's length and how many of such an account's entries stay.
local names, periods = KEYS[1] .. 'entries', {}
for _, name in ipairs(redis.call('SMEMBERS', names)) do
  local account, period = string.match(name, '^(.*) (%S+)$')
  local kind = #period .. ' ' .. account
  periods[kind] = periods[kind] or {}
  table.insert(periods[kind], { period, name })
end
local kept = {}
for number = 1, #ARGV, 2 do kept[ARGV[number]] = tonumber(ARGV[number + 1]) end
for kind, entries in pairs(periods) do
  table.sort(entries, function(one, other) return one[1] > other[1] end)
  for place = (kept[string.match(kind, '^%d+')] or #entries) + 1, #entries do
    local entry = KEYS[1] .. 'ledger:' .. entries[place][2]
    if tonumber(redis.call('HGET', entry, 'reserved') or '0') == 0 then
      redis.call('DEL', entry)
      redis.call('SREM', names, entries[place][2])
    end
  end
end
