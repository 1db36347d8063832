-- KEYS[1]: the prefix of the cache. ARGV: an application, or nothing for all. Deletes up to 1000 entries, so that Redis is
-- not kept from others for long; gives their number, 0 at the end.
local index, deleted, first = KEYS[1] .. 'index', 0, 0
while deleted < 1000 do
  local members = redis.call('ZRANGE', index, first, first + 999)
  for _, member in ipairs(members) do
    local key, size, application = string.match(member, '^(%S+) (%d+) %S+ (.*)$')
    if ARGV[1] == '' or application == ARGV[1] then
      redis.call('DEL', KEYS[1] .. key)
      redis.call('ZREM', index, member)
      redis.call('DECRBY', KEYS[1] .. 'bytes', size)
      deleted = deleted + 1
    else
      first = first + 1
    end
  end
  if #members == 0 then break end
end
return deleted
