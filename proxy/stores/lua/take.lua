-- One request out of several windows, all or nothing. KEYS[1]: the times of requests, newest last.
-- ARGV: now, then count and seconds of each window. Gives the seconds to wait, "0" for a request that was taken.
local LATE = 5 -- seconds that a command may be on its way, and that clocks of machines may differ
local now = tonumber(ARGV[1])
local newest = tonumber(redis.call('LINDEX', KEYS[1], -1) or now)
if newest > now and newest - now <= LATE then now = newest end
local text = string.format('%.17g', now)
local at = -1
while true do -- a clock that was put back makes none wait for ever: what lies ahead counts as taken now
  local taken = redis.call('LINDEX', KEYS[1], at)
  if not taken or tonumber(taken) <= now then break end
  redis.call('LSET', KEYS[1], at, text)
  at = at - 1
end
local wait, longest, most = 0, 0, 0
for i = 2, #ARGV, 2 do
  local count, seconds = tonumber(ARGV[i]), tonumber(ARGV[i + 1])
  local oldest = redis.call('LINDEX', KEYS[1], -count)
  if oldest then wait = math.max(wait, tonumber(oldest) + seconds - now) end
  longest = math.max(longest, seconds)
  most = math.max(most, count)
end
if wait > 0 then return string.format('%.17g', wait) end
redis.call('RPUSH', KEYS[1], text)
redis.call('LTRIM', KEYS[1], -most, -1)
redis.call('EXPIRE', KEYS[1], math.ceil(longest) + 60)
return '0'
