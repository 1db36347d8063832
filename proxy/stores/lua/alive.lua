-- KEYS[1]: the prefix of all keys. ARGV: owner, now, until. Gives back the claims of owners whose time is over.
local owners = KEYS[1] .. 'owners'
redis.call('ZADD', owners, ARGV[3], ARGV[1])
for _, owner in ipairs(redis.call('ZRANGEBYSCORE', owners, '-inf', ARGV[2])) do
  local held = KEYS[1] .. 'claims:' .. owner
  for _, claim in ipairs(redis.call('HVALS', held)) do
    claim = cjson.decode(claim)
    for _, line in ipairs(claim[2]) do
      redis.call('HINCRBY', KEYS[1] .. 'line:' .. line, 'reserved', -claim[1])
    end
  end
  redis.call('DEL', held)
  redis.call('ZREM', owners, owner)
end
