-- KEYS[1]: a cooldown. ARGV: its reason, its end, the seconds until then.
redis.call('HSET', KEYS[1], 'reason', ARGV[1], 'until', ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[3])
