-- KEYS[1]: the prefix of all keys. ARGV: owner, sequence, seconds that an owner's sequence is kept,
-- JSON: [[reservation, …], [[entry, used, uncertain], …]].
local mark, held = KEYS[1] .. 'settled:' .. ARGV[1], KEYS[1] .. 'claims:' .. ARGV[1]
local uncertain = KEYS[1] .. 'uncertain:' .. ARGV[1]
if tonumber(ARGV[2]) <= tonumber(redis.call('GET', mark) or '0') then return end
redis.call('SET', mark, ARGV[2], 'EX', ARGV[3])
local claims, bookings = unpack(cjson.decode(ARGV[4]))
for _, id in ipairs(claims) do
  local claim = redis.call('HGET', held, id)
  if claim then
    local parts, lines = unpack(cjson.decode(claim))
    for _, line in ipairs(lines) do redis.call('HINCRBY', KEYS[1] .. 'line:' .. line, 'reserved', -parts) end
    redis.call('HDEL', held, id)
  end
  local late = redis.call('HGET', uncertain, id)
  if late then
    local parts, _, lines = unpack(cjson.decode(late))
    for _, line in ipairs(lines) do
      local doubtful = tonumber(redis.call('HGET', KEYS[1] .. 'line:' .. line, 'doubtful') or '0')
      redis.call('HSET', KEYS[1] .. 'line:' .. line, 'doubtful', string.format('%d', math.max(0, doubtful - parts)))
    end
    redis.call('HDEL', uncertain, id)
  end
end
for _, booking in ipairs(bookings) do
  local line = KEYS[1] .. 'line:' .. booking[1]
  redis.call('HINCRBY', line, 'used', booking[2])
  redis.call('HINCRBY', line, 'doubtful', booking[3])
  redis.call('SADD', KEYS[1] .. 'lines', booking[1])
end
