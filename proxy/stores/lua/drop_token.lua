-- KEYS[1]: a token. ARGV: the token that is to be forgotten; a newer one stays.
if redis.call('HGET', KEYS[1], 'token') == ARGV[1] then redis.call('DEL', KEYS[1]) end
