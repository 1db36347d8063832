-- KEYS[1]: the prefix of all keys. ARGV: entry, parts used at least.
local entry = KEYS[1] .. 'ledger:' .. ARGV[1]
local used = math.max(tonumber(redis.call('HGET', entry, 'used') or '0'), tonumber(ARGV[2]))
redis.call('HSET', entry, 'used', string.format('%d', used))
redis.call('SADD', KEYS[1] .. 'entries', ARGV[1])
