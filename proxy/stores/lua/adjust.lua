-- KEYS[1]: the prefix of all keys. ARGV: entry, parts used at least, parts that are no longer uncertain.
local line = KEYS[1] .. 'line:' .. ARGV[1]
local before = redis.call('HMGET', line, 'used', 'doubtful')
local used = math.max(tonumber(before[1] or '0'), tonumber(ARGV[2]))
local doubtful = math.max(0, tonumber(before[2] or '0') - tonumber(ARGV[3]))
redis.call('HSET', line, 'used', string.format('%d', used), 'doubtful', string.format('%d', doubtful))
redis.call('SADD', KEYS[1] .. 'lines', ARGV[1])
