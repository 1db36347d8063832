-- The store in Redis. Each call is one operation, and atomic. KEYS[1]: what all keys begin with: a hash tag, so that
-- they are in one slot. ARGV: operation, its arguments (MessagePack), epoch and counter that the process has seen,
-- bytes of parts and results at most, and in tests the time instead of Redis' own. Returns {epoch, counter, result}
-- (MessagePack), and after it the bodies that belong to the result.
--
-- state        version, epoch, counter, forgotten, swept, bytes (of parts and results)
-- epochs       account → epoch in which its usage was set
-- used, uncertain, reserved   "account period" → parts
-- reservation  id → {worker, entries ("account period"), parts, deadline, state (open, expired), keys}
-- busy         "result:scope key" → id of the reservation that took the key last
-- row, body    "part:scope uid" → values, as sent; "result:scope key" → values, details
-- ids          "scope id" → name of a part; ages: sorted set of names in `row`
-- value        key → {text, since, until}; windows: key → times of requests
-- seen:KIND    day and values, as sent → {requests, last}; ages:seen:KIND: sorted set of these
-- done:ID, added:ID   an operation with this id is done

local VERSION = 1
local EXPIRED_KEPT = 32 * 86400 -- seconds in which a late `finish` finds its reservation: longer than a month
local DONE_KEPT = 60

local now = tonumber(ARGV[6])
if not now then
  local time = redis.call('TIME')
  now = time[1] + time[2] / 1e6
end

local function run(command, key, ...) return redis.call(command, KEYS[1] .. key, ...) end
local function number(key, field) return tonumber(run('HGET', key, field) or 0) end
local function save(key, field, value) run('HSET', key, field, cmsgpack.pack(value)) end
local function load(key, field)
  local text = run('HGET', key, field)
  return text and cmsgpack.unpack(text)
end

local function add(key, field, value)
  if value ~= 0 then run('HINCRBY', key, field, value) end -- Redis takes no -0
end

local function drop(name)
  local row = load('row', name)
  if not row then return end
  run('HDEL', 'row', name)
  run('HDEL', 'body', name)
  run('HDEL', 'ids', row.id or '')
  run('ZREM', 'ages', name)
  add('state', 'bytes', -row.size)
end

local function drop_oldest(bytes)
  local name = run('ZRANGE', 'ages', 0, 0)[1]
  while name and number('state', 'bytes') > bytes do
    drop(name)
    name = run('ZRANGE', 'ages', 0, 0)[1]
  end
end

-- This is the first write. At its limit of memory Redis refuses one that may need more, and permits all that follow one
-- that needs none: usage is still booked, and parts and results make room.
local counter = redis.pcall('HINCRBY', KEYS[1] .. 'state', 'counter', 1)
local is_full = type(counter) == 'table'
if is_full then
  if not string.find(counter.err, 'OOM') then return counter end
  run('HDEL', 'state', 'none')
  counter = run('HINCRBY', 'state', 'counter', 1)
  drop_oldest(number('state', 'bytes') * 0.9)
end

-- A process that has seen more than there is knows that data were lost. A new epoch begins, which all processes take
-- over. Nothing is reserved in it but for accounts whose usage was set in it.
local epoch, seen_epoch = number('state', 'epoch'), tonumber(ARGV[3])
if epoch < seen_epoch or epoch == seen_epoch and counter <= tonumber(ARGV[4]) then
  epoch = seen_epoch + 1
  run('HSET', 'state', 'epoch', epoch, 'version', VERSION)
  for _, key in ipairs({ 'reserved', 'reservation', 'busy' }) do run('DEL', key) end
end

local operations, bodies = {}, {}
local taken, more = {}, {} -- keys and parts that this call reserves

local function find_part(begin, name)
  local part, wanted = load('row', name), begin.selection
  if not part or part.digest ~= wanted.digest or bit.band(wanted.features, bit.bnot(part.features)) ~= 0 then return end
  return part.fetched >= now - begin.age and part.fetched <= now and part
end

-- What is stored of a want; `bodies`: details, and the parts.
local function find_result(begin, want)
  local row, details = load('row', want.name), run('HGET', 'body', want.name)
  local single = want.uid or want.id and run('HGET', 'ids', want.id)
  local part = single and find_part(begin, single)
  if part then
    local items = cjson.encode({ { string.match(single, ' (.*)') } })
    row, details = { asked = want['end'], hits = 1, items = items, parts = { single }, fetched = part.fetched }, ''
  end
  local age = row and #row.parts == 0 and begin.empty_age or begin.age
  if not row or row.fetched < now - age or row.fetched > now then return end
  local stored = { asked = row.asked, hits = row.hits, items = row.items, oldest = row.fetched, ids = {} }
  stored.bodies = { details }
  for place, name in ipairs(row.parts) do
    part = find_part(begin, name)
    if not part then return end
    stored.oldest = math.min(stored.oldest, part.fetched)
    stored.ids[place], stored.bodies[place + 1] = part.id or false, run('HGET', 'body', name)
  end
  return stored
end

local function with_result(outcome, stored)
  if not stored then return { outcome, false } end
  for _, body in ipairs(stored.bodies) do table.insert(bodies, body) end
  return { outcome, { now - stored.oldest, stored.asked, stored.hits, stored.items, stored.ids } }
end

-- Why so many parts cannot be reserved. After a loss, usage has to be set for the application, and for each account
-- with a limit.
local function refusal(accounts, parts)
  local is_known, refused = epoch == 0, nil
  for place, account in ipairs(accounts) do
    local entry, is_set = account.entry, epoch == 0 or number('epochs', account.account) == epoch
    local used = number('used', entry) + number('uncertain', entry) + number('reserved', entry) + (more[entry] or 0)
    local left = (account.limit or math.huge) - used
    if account.limit and not is_set then return { 'lost' } end
    if parts > left and not refused then refused = { 'refused', place, math.max(0, left) } end
    is_known = is_known or is_set
  end
  return not is_known and { 'lost' } or refused
end

local function busy_with(name)
  local id = taken[name] or run('HGET', 'busy', name)
  local reservation = id and not taken[name] and load('reservation', id)
  return (taken[name] or reservation and reservation.state == 'open') and id
end

-- The outcome of a want. What it reserves is added to the reservation; nothing more is if `begin` was sent again.
local function decide(begin, want, reservation, is_second)
  local stored, id = find_result(begin, want), busy_with(want.name)
  local missing = want['end'] - (stored and stored.asked or 0)
  local parts = missing * want.parts
  if id == begin.id then return with_result('reserved', stored) end
  if stored and (missing <= 0 or stored.hits <= stored.asked) then return with_result('found', stored) end
  local refused = not id and parts > 0 and refusal(begin.accounts, parts)
  if refused then return refused end
  if id or is_second then return { 'busy' } end
  taken[want.name], reservation.parts = begin.id, reservation.parts + parts
  table.insert(reservation.keys, want.name)
  for _, entry in ipairs(reservation.entries) do more[entry] = (more[entry] or 0) + parts end
  return with_result('reserved', stored)
end

function operations.begin(worker, begins, is_quote)
  local outcomes, reservations = {}, {}
  for place, begin in ipairs(begins) do
    local is_second = run('EXISTS', 'done:' .. begin.id) + run('HEXISTS', 'reservation', begin.id) > 0
    local reservation = { worker = worker, parts = 0, deadline = now + begin.seconds, state = 'open', keys = {} }
    reservation.entries = begin.entries
    outcomes[place] = {}
    for position, want in ipairs(begin.wants) do
      outcomes[place][position] = decide(begin, want, reservation, is_second)
    end
    if #reservation.keys > 0 then reservations[begin.id] = reservation end
  end
  for id, reservation in pairs(is_quote and {} or reservations) do
    save('reservation', id, reservation)
    for _, name in ipairs(reservation.keys) do run('HSET', 'busy', name, id) end
    for _, entry in ipairs(reservation.entries) do add('reserved', entry, reservation.parts) end
  end
  return outcomes
end

-- In a period that has ended since `begin`, the upstream may have counted the parts, too.
local function book(finish, reservation)
  local is_present = {}
  for _, entry in ipairs(finish.entries) do
    is_present[entry] = true
    add('used', entry, finish.used)
    add('uncertain', entry, finish.uncertain)
  end
  for _, entry in ipairs(reservation.entries) do
    add(reservation.state == 'open' and 'reserved' or 'uncertain', entry, -reservation.parts)
    if not is_present[entry] then add('uncertain', entry, finish.used + finish.uncertain) end
  end
end

local function remove(id, reservation)
  for _, name in ipairs(reservation.keys) do
    if run('HGET', 'busy', name) == id then run('HDEL', 'busy', name) end
  end
  run('HDEL', 'reservation', id)
end

-- A part that is fresh and serves what another one selects is replaced by that only if it is newer, with the same fields.
local function keep(name, row, body, fresh_seconds)
  local before = load('row', name)
  local age = before and before.digest == row.digest and now - before.fetched
  local is_fresh = age and age >= 0 and age <= fresh_seconds -- from the future: the clock was set back
  local is_less = row.digest and is_fresh and bit.band(row.features, bit.bnot(before.features)) == 0
  if is_less and (before.features ~= row.features or before.fetched > row.fetched) then return end
  drop(name)
  row.size = #body + #(row.items or '')
  save('row', name, row)
  run('HSET', 'body', name, body)
  run('ZADD', 'ages', row.fetched, name)
  add('state', 'bytes', row.size)
  if row.id then run('HSET', 'ids', row.id, name) end
end

function operations.finish(finishes, fresh_seconds)
  local most_bytes = tonumber(ARGV[5])
  for _, finish in ipairs(finishes) do
    local id = finish.id
    local reservation = load('reservation', id) or { entries = {}, parts = 0, keys = {}, deadline = now }
    -- After a loss, what was reserved before it is part of the usage that is set.
    if run('EXISTS', 'done:' .. id) == 0 and (reservation.state or epoch == 0) then
      book(finish, reservation)
      for _, result in ipairs(finish.results) do
        local is_own = reservation.state == 'open' or run('HGET', 'busy', result.name) == id
        for _, kept in ipairs(is_own and result.size <= most_bytes and not is_full and result.kept or {}) do
          kept.row.fetched = now - result.age
          keep(kept.name, kept.row, kept.body, fresh_seconds)
        end
      end
      remove(id, reservation)
      run('SET', 'done:' .. id, 1, 'EX', math.ceil(math.max(DONE_KEPT, reservation.deadline - now)))
    end
  end
  drop_oldest(most_bytes)
end

local function expire(id, reservation)
  for _, entry in ipairs(reservation.entries) do
    add('reserved', entry, -reservation.parts)
    add('uncertain', entry, reservation.parts)
  end
  reservation.state = 'expired'
  save('reservation', id, reservation)
end

local function delete_days(first)
  for _, key in ipairs({ 'used', 'uncertain', 'reserved' }) do
    for _, field in ipairs(run('HKEYS', key)) do
      local day = string.match(field, '%d%d%d%d%-%d%d%-%d%d')
      if day and day < first then run('HDEL', key, field) end
    end
  end
end

-- Also for a worker that has died.
function operations.sweep(worker, first_day, stored_seconds)
  for _, id in ipairs(run('HKEYS', 'reservation')) do
    local reservation = load('reservation', id)
    local is_open = reservation.state == 'open'
    if is_open and (reservation.worker == worker or worker == '' and reservation.deadline <= now) then expire(id, reservation) end
    if not is_open and reservation.deadline + EXPIRED_KEPT <= now then remove(id, reservation) end
  end
  -- A time ahead was written before the clock was set back.
  for _, range in ipairs({ { '-inf', now - stored_seconds }, { now + stored_seconds, '+inf' } }) do
    for _, name in ipairs(run('ZRANGEBYSCORE', 'ages', range[1], range[2], 'LIMIT', 0, 1000)) do drop(name) end
  end
  for _, key in ipairs(run('HKEYS', 'value')) do
    if load('value', key)[3] < now then run('HDEL', 'value', key) end
  end
  if run('HGET', 'state', 'swept') ~= first_day then delete_days(first_day) end
  run('HSET', 'state', 'swept', first_day)
end

function operations.set_usage(account, entry, used)
  run('HSET', 'used', entry, used)
  run('HDEL', 'uncertain', entry)
  run('HSET', 'epochs', account, epoch)
  for _, id in ipairs(run('HKEYS', 'reservation')) do
    local reservation = load('reservation', id)
    for place, other in ipairs(reservation.state == 'expired' and reservation.entries or {}) do
      -- A late finish must not take off again what is uncertain no more.
      if other == entry then table.remove(reservation.entries, place) end
    end
    save('reservation', id, reservation)
  end
end

function operations.forget(scope)
  local parts = 0
  for _, name in ipairs(run('ZRANGE', 'ages', 0, -1)) do
    local kind, its_scope = string.match(name, '^(%a+):(%S+) ')
    if its_scope == (scope or its_scope) then
      drop(name)
      parts = parts + (kind == 'part' and 1 or 0)
    end
  end
  run('HSET', 'state', 'forgotten', counter)
  return parts
end

function operations.forgotten() return number('state', 'forgotten') end

local function value(key)
  local stored = load('value', key)
  return stored and stored[2] <= now and now <= stored[3] and stored[1]
end

function operations.values(prefix)
  local values = {}
  for _, key in ipairs(run('HKEYS', 'value')) do
    local text = string.sub(key, 1, #prefix) == prefix and value(key)
    if text then table.insert(values, { key, text }) end
  end
  return values
end

function operations.put_value(key, text, seconds, is_absent)
  local before = is_absent and value(key)
  if before and before ~= text then return false end
  save('value', key, { text, now, now + seconds })
  return true
end

function operations.drop_value(key, text)
  if not text or value(key) == text then run('HDEL', 'value', key) end
end

function operations.take(key, windows)
  local times, wait, most = load('windows', key) or {}, 0, 0
  for place, at in ipairs(times) do times[place] = math.min(at, now) end -- the clock may have been set back
  for _, window in ipairs(windows) do
    local oldest = times[#times - window.count + 1]
    wait = math.max(wait, oldest and oldest + window.seconds - now or 0)
    most = math.max(most, window.count)
  end
  if wait > 0 then return wait end
  table.insert(times, now)
  if #times > most then table.remove(times, 1) end
  save('windows', key, times)
  return 0
end

-- `kinds`: pairs of a kind and how many rows of it are kept, 0: all.
function operations.add_seen(id, rows, first, kinds)
  if not run('SET', 'added:' .. id, 1, 'NX', 'EX', 86400) then return end
  for _, row in ipairs(rows) do
    local key = 'seen:' .. row.kind
    local before = load(key, row.name) or { 0, 0 }
    local last = math.max(before[2], row.last)
    save(key, row.name, { before[1] + row.requests, last })
    run('ZADD', 'ages:' .. key, last, row.name)
  end
  for _, kind in ipairs(kinds) do
    local key, most = 'seen:' .. kind[1], kind[2]
    local function delete(names)
      for _, name in ipairs(names) do
        run('HDEL', key, name)
        run('ZREM', 'ages:' .. key, name)
      end
    end
    delete(run('ZRANGEBYSCORE', 'ages:' .. key, '-inf', '(' .. first, 'LIMIT', 0, 1000))
    if most > 0 then delete(run('ZRANGE', 'ages:' .. key, 0, -most - 1)) end
  end
end

-- A store of another version keeps usage and reservations.
function operations.open(kinds)
  if number('state', 'version') == VERSION then return end
  operations.forget()
  for _, key in ipairs({ 'value', 'windows' }) do run('DEL', key) end
  for _, kind in ipairs(kinds) do
    run('DEL', 'seen:' .. kind)
    run('DEL', 'ages:seen:' .. kind)
  end
  run('HSET', 'state', 'version', VERSION)
end

local result = operations[ARGV[1]](unpack(cmsgpack.unpack(ARGV[2]), 1, 6))
table.insert(bodies, 1, cmsgpack.pack({ epoch, counter, result == nil or result }))
return bodies
