-- KEYS[1]: a lock. ARGV: owner, now, until, the seconds until then. Gives 1 to whoever has it now.
local holder = redis.call('HMGET', KEYS[1], 'owner', 'until')
if holder[1] and holder[1] ~= ARGV[1] and tonumber(holder[2]) > tonumber(ARGV[2]) then return 0 end
redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'until', ARGV[3])
redis.call('EXPIRE', KEYS[1], ARGV[4])
return 1
