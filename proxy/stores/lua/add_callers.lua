-- KEYS[1]: the mark of this batch. ARGV: the prefix of all keys, seconds that the mark and that counts are kept, JSON:
-- [[[day, caller, requests, last], …], [[digest of an unknown API key, address, user agent, first, last, requests], …]];
-- how many unknown keys stay, in all and of an address.
if not redis.call('SET', KEYS[1], '1', 'NX', 'EX', ARGV[2]) then return end
local counts, unknown = unpack(cjson.decode(ARGV[4]))
local days = ARGV[1] .. 'caller_days'
for _, each in ipairs(counts) do
  local day, caller, requests, last = unpack(each)
  local key = string.format('%scallers:%d', ARGV[1], day)
  local before, at = string.match(redis.call('HGET', key, caller) or '', '^(%d+) (%d+)$')
  if before then requests, last = requests + before, math.max(last, tonumber(at)) end
  redis.call('HSET', key, caller, string.format('%d %d', requests, last))
  redis.call('SADD', days, day)
  redis.call('EXPIRE', key, ARGV[3])
end
redis.call('EXPIRE', days, ARGV[3])
local unknown_keys = ARGV[1] .. 'unknown_keys'
for _, each in ipairs(unknown) do
  local digest, address, agent, first, last, requests = unpack(each)
  local stored = redis.call('HGET', unknown_keys, digest)
  if stored then
    local its_address, its_agent, its_first, its_last, its_requests = unpack(cjson.decode(stored))
    first, requests = math.min(first, its_first), requests + its_requests
    if last < its_last then address, agent, last = its_address, its_agent, its_last end
  end
  redis.call('HSET', unknown_keys, digest, cjson.encode({ address, agent, first, last, requests }))
end
if #unknown > 0 then
  local stored, ordered, number, of_address = redis.call('HGETALL', unknown_keys), {}, 0, {}
  for place = 1, #stored, 2 do
    local address, _, _, last = unpack(cjson.decode(stored[place + 1]))
    ordered[#ordered + 1] = { last, stored[place], address }
  end
  table.sort(ordered, function(a, b) return a[1] > b[1] or (a[1] == b[1] and a[2] < b[2]) end)
  for _, each in ipairs(ordered) do
    local _, digest, address = unpack(each)
    of_address[address] = (of_address[address] or 0) + 1
    if number == tonumber(ARGV[5]) or of_address[address] > tonumber(ARGV[6]) then
      redis.call('HDEL', unknown_keys, digest)
    else
      number = number + 1
    end
  end
  redis.call('EXPIRE', unknown_keys, ARGV[3])
end
