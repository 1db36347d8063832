-- KEYS[1]: the prefix of all keys. ARGV: owner, sequence, seconds that an owner's sequence is kept,
-- JSON: [[reservation, …], [[entry, used, uncertain], …]].
local mark, held = KEYS[1] .. 'settled:' .. ARGV[1], KEYS[1] .. 'reservations:' .. ARGV[1]
local uncertain = KEYS[1] .. 'uncertain:' .. ARGV[1]
if tonumber(ARGV[2]) <= tonumber(redis.call('GET', mark) or '0') then return end
redis.call('SET', mark, ARGV[2], 'EX', ARGV[3])
local reservations, bookings = unpack(cjson.decode(ARGV[4]))
for _, id in ipairs(reservations) do
  local reservation = redis.call('HGET', held, id)
  if reservation then
    local parts, entries = unpack(cjson.decode(reservation))
    for _, entry in ipairs(entries) do redis.call('HINCRBY', KEYS[1] .. 'ledger:' .. entry, 'reserved', -parts) end
    redis.call('HDEL', held, id)
  end
  local late = redis.call('HGET', uncertain, id)
  if late then
    local parts, _, entries = unpack(cjson.decode(late))
    for _, entry in ipairs(entries) do
      local before = tonumber(redis.call('HGET', KEYS[1] .. 'ledger:' .. entry, 'uncertain') or '0')
      redis.call('HSET', KEYS[1] .. 'ledger:' .. entry, 'uncertain', string.format('%d', math.max(0, before - parts)))
    end
    redis.call('HDEL', uncertain, id)
  end
end
for _, booking in ipairs(bookings) do
  local entry = KEYS[1] .. 'ledger:' .. booking[1]
  redis.call('HINCRBY', entry, 'used', booking[2])
  redis.call('HINCRBY', entry, 'uncertain', booking[3])
  redis.call('SADD', KEYS[1] .. 'entries', booking[1])
end
