-- KEYS[1]: the prefix of all keys. ARGV: entry, parts used at least, parts that are no longer uncertain.
local entry = KEYS[1] .. 'ledger:' .. ARGV[1]
local before = redis.call('HMGET', entry, 'used', 'uncertain')
local used = math.max(tonumber(before[1] or '0'), tonumber(ARGV[2]))
local uncertain = math.max(0, tonumber(before[2] or '0') - tonumber(ARGV[3]))
redis.call('HSET', entry, 'used', string.format('%d', used), 'uncertain', string.format('%d', uncertain))
redis.call('SADD', KEYS[1] .. 'entries', ARGV[1])
