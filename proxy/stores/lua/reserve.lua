-- KEYS[1]: the prefix of all keys. ARGV[1]: JSON, [[id, owner, parts, [[entry, limit], …], [entry, …]], …].
-- Gives for each reservation 0 where it is held, else the number (from 1) of the first limit that has no room.
local answers = {}
for position, reservation in ipairs(cjson.decode(ARGV[1])) do
  local id, owner, parts, budgets, booked = unpack(reservation) -- booked: the entries that it is settled on
  local held, full = KEYS[1] .. 'reservations:' .. owner, 0
  if redis.call('HEXISTS', held, id) == 0 then
    local entries = {}
    for number, budget in ipairs(budgets) do
      local sum = parts
      for _, count in ipairs(redis.call('HMGET', KEYS[1] .. 'ledger:' .. budget[1], 'used', 'uncertain', 'reserved')) do
        sum = sum + tonumber(count or '0')
      end
      if full == 0 and sum > budget[2] then full = number end
      entries[number] = budget[1]
    end
    if full == 0 then
      for _, entry in ipairs(entries) do redis.call('HINCRBY', KEYS[1] .. 'ledger:' .. entry, 'reserved', parts) end
      redis.call('HSET', held, id, cjson.encode({ parts, entries, booked }))
      redis.call('ZADD', KEYS[1] .. 'owners', 'NX', 0, owner)
    end
  end
  answers[position] = full
end
return answers
