-- KEYS[1]: a key. ARGV: now, until, the seconds until then. Gives 1 to the first caller, 0 to others until then.
-- A time further ahead than the caller's was written before the clock was put back: it blocks nobody.
local held = tonumber(redis.call('GET', KEYS[1]) or '0')
if held > tonumber(ARGV[1]) and held <= tonumber(ARGV[2]) then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3])
return 1
