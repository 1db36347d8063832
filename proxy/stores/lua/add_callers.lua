-- KEYS[1]: the mark of this batch. ARGV: the prefix of all keys, seconds that the mark and that counts are kept, JSON:
-- [[[caller, first, last], …], [[day, position of the caller in the first list, requests, errors, parts, hits, ms], …],
-- [[digest of an unknown API key, address, user agent, first, last, requests], …],
-- [[month, application and key, requests, hits, cached, coalesced], …],
-- [[application, key and name, requests, first, last], …],
-- [[day, application and key, [requests of a bucket, …]], …]]; how many unknown keys stay, in all and of an address.
if not redis.call('SET', KEYS[1], '1', 'NX', 'EX', ARGV[2]) then return end
local callers, days, last_id = ARGV[1] .. 'callers', ARGV[1] .. 'caller_days', ARGV[1] .. 'caller_id'
local seen, counts, unknown, months, unsupported, durations = unpack(cjson.decode(ARGV[4]))
local ids = {} -- a caller's text is held once; the counts of its days have its number
for number, each in ipairs(seen) do
  local caller, first, last = unpack(each)
  local id, from, to = string.match(redis.call('HGET', callers, caller) or '', '^(%d+) (%d+) (%d+)$')
  if id then
    first, last = math.min(first, tonumber(from)), math.max(last, tonumber(to))
  else
    id = redis.call('INCR', last_id)
  end
  ids[number] = id
  redis.call('HSET', callers, caller, string.format('%d %d %d', id, first, last))
end
for _, each in ipairs(counts) do
  local day, number, requests, errors, parts, hits, ms = unpack(each)
  local key = string.format('%scaller_day:%d', ARGV[1], day)
  local r, e, p, h, m = string.match(redis.call('HGET', key, ids[number]) or '', '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
  if r then requests, errors, parts, hits, ms = requests + r, errors + e, parts + p, hits + h, ms + m end
  redis.call('HSET', key, ids[number], string.format('%d %d %d %d %d', requests, errors, parts, hits, ms))
  redis.call('SADD', days, day)
  redis.call('EXPIRE', key, ARGV[3])
end
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
for _, each in ipairs(months) do
  local month, names, requests, hits, cached, coalesced = unpack(each)
  local key = ARGV[1] .. 'monthly_requests:' .. month
  local r, h, a, b = string.match(redis.call('HGET', key, names) or '', '^(%d+) (%d+) (%d+) (%d+)$')
  if r then requests, hits, cached, coalesced = requests + r, hits + h, cached + a, coalesced + b end
  redis.call('HSET', key, names, string.format('%d %d %d %d', requests, hits, cached, coalesced))
  redis.call('SADD', ARGV[1] .. 'months', month)
  redis.call('EXPIRE', key, ARGV[3])
end
local unsupported_uses = ARGV[1] .. 'unsupported_uses'
for _, each in ipairs(unsupported) do
  local names, requests, first, last = unpack(each)
  local r, from, to = string.match(redis.call('HGET', unsupported_uses, names) or '', '^(%d+) (%d+) (%d+)$')
  if r then requests, first, last = requests + r, math.min(first, tonumber(from)), math.max(last, tonumber(to)) end
  redis.call('HSET', unsupported_uses, names, string.format('%d %d %d', requests, first, last))
end
for _, each in ipairs(durations) do
  local day, names, buckets = unpack(each)
  local key = string.format('%sdurations:%d', ARGV[1], day)
  local stored = redis.call('HGET', key, names)
  for place, requests in ipairs(stored and cjson.decode(stored) or {}) do buckets[place] = buckets[place] + requests end
  redis.call('HSET', key, names, cjson.encode(buckets))
  redis.call('SADD', days, day)
  redis.call('EXPIRE', key, ARGV[3])
end
for _, key in ipairs({ ARGV[1] .. 'months', unsupported_uses, callers, days, last_id }) do redis.call('EXPIRE', key, ARGV[3]) end
