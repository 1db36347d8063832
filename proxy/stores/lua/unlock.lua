-- KEYS[1]: a lock. ARGV: its owner.
if redis.call('HGET', KEYS[1], 'owner') == ARGV[1] then redis.call('DEL', KEYS[1]) end
