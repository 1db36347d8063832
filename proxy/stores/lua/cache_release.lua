-- KEYS[1]: the prefix of the cache. ARGV: owner, and keys that are no longer claimed.
for number = 2, #ARGV do
  local claim = KEYS[1] .. ARGV[number] .. ':claim'
  if redis.call('GET', claim) == ARGV[1] then redis.call('DEL', claim) end
end
