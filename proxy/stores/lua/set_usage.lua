-- KEYS[1]: the prefix of all keys. ARGV: entry, used parts, the account, and a mark that is new.
local entry = KEYS[1] .. 'ledger:' .. ARGV[1]
redis.call('HSET', entry, 'used', ARGV[2], 'uncertain', '0')
redis.call('SADD', KEYS[1] .. 'entries', ARGV[1])
redis.call('HSET', KEYS[1] .. 'notes:usage set', ARGV[1], ARGV[4])
redis.call('HDEL', KEYS[1] .. 'exhausted_quotas', ARGV[3])
