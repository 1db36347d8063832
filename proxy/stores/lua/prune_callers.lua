-- KEYS[1]: the prefix of all keys. ARGV: the first day that stays, and its beginning in seconds since 1970.
local days = KEYS[1] .. 'caller_days'
for _, day in ipairs(redis.call('SMEMBERS', days)) do
  if tonumber(day) < tonumber(ARGV[1]) then
    redis.call('DEL', KEYS[1] .. 'callers:' .. day)
    redis.call('SREM', days, day)
  end
end
local unknown = redis.call('HGETALL', KEYS[1] .. 'unknown_keys')
for place = 1, #unknown, 2 do
  local _, _, _, last = unpack(cjson.decode(unknown[place + 1]))
  if last < tonumber(ARGV[2]) then redis.call('HDEL', KEYS[1] .. 'unknown_keys', unknown[place]) end
end
