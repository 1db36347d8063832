-- KEYS[1]: the mark of this batch. ARGV: the prefix of all keys, seconds that the mark and that counts are kept, JSON:
-- [[[caller, first, last], …], [[day, position of the caller in the first list, requests, errors, parts], …]].
if not redis.call('SET', KEYS[1], '1', 'NX', 'EX', ARGV[2]) then return end
local callers, days, last_id = ARGV[1] .. 'callers', ARGV[1] .. 'caller_days', ARGV[1] .. 'caller_id'
local seen, counts = unpack(cjson.decode(ARGV[4]))
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
  local day, number, requests, errors, parts = unpack(each)
  local key = string.format('%scaller_day:%d', ARGV[1], day)
  local r, e, p = string.match(redis.call('HGET', key, ids[number]) or '', '^(%d+) (%d+) (%d+)$')
  if r then requests, errors, parts = requests + r, errors + e, parts + p end
  redis.call('HSET', key, ids[number], string.format('%d %d %d', requests, errors, parts))
  redis.call('SADD', days, day)
  redis.call('EXPIRE', key, ARGV[3])
end
for _, key in ipairs({ callers, days, last_id }) do redis.call('EXPIRE', key, ARGV[3]) end
