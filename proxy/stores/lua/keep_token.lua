-- KEYS[1]: a token. ARGV: the token, its end, the seconds until then.
redis.call('HSET', KEYS[1], 'token', ARGV[1], 'expires', ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[3])
