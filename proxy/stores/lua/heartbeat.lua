-- KEYS[1]: the prefix of all keys. ARGV: owner, now, until, seconds that reservations of a dead owner are remembered.
-- Reservations of owners whose lease has ended become uncertain usage on every entry they would have been booked on.
local owners = KEYS[1] .. 'owners'
redis.call('ZADD', owners, ARGV[3], ARGV[1])
for _, owner in ipairs(redis.call('ZRANGEBYSCORE', owners, '-inf', ARGV[2])) do
  local held, uncertain = KEYS[1] .. 'reservations:' .. owner, KEYS[1] .. 'uncertain:' .. owner
  for _, id in ipairs(redis.call('HKEYS', held)) do
    local reservation = redis.call('HGET', held, id)
    local parts, budgets, entries = unpack(cjson.decode(reservation))
    for _, entry in ipairs(budgets) do redis.call('HINCRBY', KEYS[1] .. 'ledger:' .. entry, 'reserved', -parts) end
    for _, entry in ipairs(entries) do
      redis.call('HINCRBY', KEYS[1] .. 'ledger:' .. entry, 'uncertain', parts)
      redis.call('SADD', KEYS[1] .. 'entries', entry)
    end
    redis.call('HSET', uncertain, id, reservation)
  end
  if redis.call('EXISTS', uncertain) == 1 then redis.call('EXPIRE', uncertain, ARGV[4]) end
  redis.call('DEL', held)
  redis.call('ZREM', owners, owner)
end
