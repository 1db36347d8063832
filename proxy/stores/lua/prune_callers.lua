-- KEYS[1]: the prefix of all keys. ARGV: the first day that stays, its beginning in seconds since 1970, and its month.
for _, month in ipairs(redis.call('SMEMBERS', KEYS[1] .. 'months')) do
  if month < ARGV[3] then
    redis.call('DEL', KEYS[1] .. 'monthly_requests:' .. month)
    redis.call('SREM', KEYS[1] .. 'months', month)
  end
end
local callers, days = KEYS[1] .. 'callers', KEYS[1] .. 'caller_days'
for _, day in ipairs(redis.call('SMEMBERS', days)) do
  if tonumber(day) < tonumber(ARGV[1]) then
    redis.call('DEL', KEYS[1] .. 'caller_day:' .. day, KEYS[1] .. 'durations:' .. day)
    redis.call('SREM', days, day)
  end
end
local stored = redis.call('HGETALL', callers)
for place = 1, #stored, 2 do
  local last = string.match(stored[place + 1], ' (%d+)$')
  if tonumber(last) < tonumber(ARGV[2]) then redis.call('HDEL', callers, stored[place]) end
end
local unknown = redis.call('HGETALL', KEYS[1] .. 'unknown_keys')
for place = 1, #unknown, 2 do
  local _, _, _, last = unpack(cjson.decode(unknown[place + 1]))
  if last < tonumber(ARGV[2]) then redis.call('HDEL', KEYS[1] .. 'unknown_keys', unknown[place]) end
end
local unsupported = redis.call('HGETALL', KEYS[1] .. 'unsupported_uses')
for place = 1, #unsupported, 2 do
  local last = string.match(unsupported[place + 1], ' (%d+)$')
  if tonumber(last) < tonumber(ARGV[2]) then redis.call('HDEL', KEYS[1] .. 'unsupported_uses', unsupported[place]) end
end
