-- KEYS[1]: the prefix of the cache. ARGV: owner, now, the limit in bytes, then six for each entry: its key, its
-- application, its end, the milliseconds until then, its text, and its aliases, which the limit does not count: some
-- hundred bytes beside the text. A member of the index is "key size time application".
local index, total = KEYS[1] .. 'index', KEYS[1] .. 'bytes'

local function forget(member)
  local key, size = string.match(member, '^(%S+) (%d+) ')
  redis.call('ZREM', index, member)
  redis.call('DECRBY', total, size)
  return KEYS[1] .. key
end

for number = 4, #ARGV, 6 do
  local key, application, text = ARGV[number], ARGV[number + 1], ARGV[number + 4]
  local name = KEYS[1] .. key
  local size = redis.call('STRLEN', name)
  if size > 0 then
    local before = key .. ' ' .. size .. ' ' .. redis.call('GETRANGE', name, 0, 16) .. ' ' .. application
    if redis.call('ZSCORE', index, before) then forget(before) end
  end
  redis.call('SET', name, text, 'PX', ARGV[number + 3])
  for alias in string.gmatch(ARGV[number + 5], '%S+') do
    redis.call('SET', KEYS[1] .. alias .. ':alias', key, 'PX', ARGV[number + 3])
  end
  redis.call('ZADD', index, ARGV[number + 2], key .. ' ' .. #text .. ' ' .. string.sub(text, 1, 17) .. ' ' .. application)
  redis.call('INCRBY', total, #text)
  if redis.call('GET', name .. ':claim') == ARGV[1] then redis.call('DEL', name .. ':claim') end
end

redis.call('EXPIRE', index, 86400)
redis.call('EXPIRE', total, 86400)

-- Redis has deleted these itself, unless its clock is behind that of the program.
for _, member in ipairs(redis.call('ZRANGEBYSCORE', index, '-inf', ARGV[2], 'LIMIT', 0, 1000)) do
  redis.call('DEL', forget(member))
end
while tonumber(redis.call('GET', total) or '0') > tonumber(ARGV[3]) do
  local oldest = redis.call('ZRANGE', index, 0, 0)[1]
  if not oldest then break end
  redis.call('DEL', forget(oldest))
end
