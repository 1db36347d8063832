-- KEYS[1]: the prefix of all keys. ARGV[1]: JSON, [[id, owner, parts, [[entry, limit], …], [entry, …]], …].
-- Gives for each reservation 0 where it is held, else the number (from 1) of the first limit that has no room.
local answers = {}
for position, claim in ipairs(cjson.decode(ARGV[1])) do
  local id, owner, parts, budgets = claim[1], claim[2], claim[3], claim[4] -- claim[5]: entries it is booked on
  local held, full = KEYS[1] .. 'claims:' .. owner, 0
  if redis.call('HEXISTS', held, id) == 0 then
    local lines = {}
    for number, budget in ipairs(budgets) do
      local sum = parts
      for _, count in ipairs(redis.call('HMGET', KEYS[1] .. 'line:' .. budget[1], 'used', 'doubtful', 'reserved')) do
        sum = sum + tonumber(count or '0')
      end
      if full == 0 and sum > budget[2] then full = number end
      lines[number] = budget[1]
    end
    if full == 0 then
      for _, line in ipairs(lines) do redis.call('HINCRBY', KEYS[1] .. 'line:' .. line, 'reserved', parts) end
      redis.call('HSET', held, id, cjson.encode({ parts, lines, claim[5] }))
      redis.call('ZADD', KEYS[1] .. 'owners', 'NX', 0, owner)
    end
  end
  answers[position] = full
end
return answers
