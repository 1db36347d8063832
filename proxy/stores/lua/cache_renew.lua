-- KEYS[1]: the prefix of the cache. ARGV: owner, milliseconds of a claim's lease, and keys whose claims last longer.
for number = 3, #ARGV do
  local claim = KEYS[1] .. ARGV[number] .. ':claim'
  if redis.call('GET', claim) == ARGV[1] then redis.call('PEXPIRE', claim, ARGV[2]) end
end
