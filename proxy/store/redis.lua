-- One transaction in Redis: it reads rows, or checks what was read and writes, all or nothing. KEYS[1]: what all keys
-- begin with: a hash tag, so that they are in one slot. ARGV[1], in MessagePack: the version of the rows, epoch and
-- counter that the process has seen, what to read (rows, tables, or names of rows by their times), digests of rows that must be as they were read,
-- what is added to usage, rows to write, bytes of parts and results at most, and in tests the time.
--
-- Tables are hashes, but each value is a key of its own that ends by itself. Orders are names of rows by their times:
-- `ages` of parts and results, `ends` of reservations. `state` has the epoch, the counter of writes, the bytes of parts
-- and results, and the version.
local arguments = cmsgpack.unpack(ARGV[1])
local version, epoch_seen, counter_seen, reads, expected, added, writes, bytes_most, now = unpack(arguments)
if not now then
  local time = redis.call('TIME')
  now = time[1] + time[2] / 1e6
end
local ORDERS = { part = 'ages', reservation = 'ends' }

local function run(command, key, ...) return redis.call(command, KEYS[1] .. key, ...) end
local function number(field) return tonumber(run('HGET', 'state', field) or 0) end

local function read(table, field, last, most)
  if last then return run('ZRANGEBYSCORE', table, field, last, 'LIMIT', 0, most) end
  if table == 'value' then return run('GET', 'value:' .. field) end
  if field then return run('HGET', table, field) end
  return run('HGETALL', table)
end

-- `time`: of the row in its order, or the milliseconds of a value.
local function put(table, field, row, time)
  if table == 'value' then return run('SET', 'value:' .. field, row, 'PX', time) end
  local order = ORDERS[table]
  if table == 'part' then run('HINCRBY', 'state', 'bytes', #(row or '') - run('HSTRLEN', table, field)) end
  if row then
    run('HSET', table, field, row)
    if order then run('ZADD', order, time, field) end
  else
    run('HDEL', table, field)
    if order then run('ZREM', order, field) end
  end
end

local function drop_oldest(bytes)
  local field = run('ZRANGE', 'ages', 0, 0)[1]
  while field and number('bytes') > bytes do
    put('part', field)
    field = run('ZRANGE', 'ages', 0, 0)[1]
  end
end

local function usage(field)
  local row, key = run('HGET', 'usage', field), cjson.decode(field)
  return row and cmsgpack.unpack(row) or { key[1], key[2], 0, 0, 0 }
end

local function add(field, ...)
  local row = usage(field)
  for place, parts in ipairs({ ... }) do row[2 + place] = math.max(0, row[2 + place] + parts) end
  run('HSET', 'usage', field, cmsgpack.pack(row))
end

-- A process that has seen more than there is knows that data were lost. A new epoch begins, which all processes take
-- over. Nothing is reserved in it but for accounts whose usage was set in it.
local epoch, counter = number('epoch'), number('counter')
if epoch < epoch_seen or epoch == epoch_seen and counter < counter_seen then
  epoch = epoch_seen + 1
  run('HSET', 'state', 'epoch', epoch, 'version', version)
  for _, field in ipairs(run('HKEYS', 'usage')) do add(field, 0, 0, -math.huge) end
  run('DEL', 'reservation')
  run('DEL', 'ends')
end

local function is_as_expected()
  for _, row in ipairs(expected) do
    if redis.sha1hex(read(row[1], row[2]) or '') ~= row[3] then return false end
  end
  for field, parts in pairs(added) do
    local row = usage(field)
    if row[3] + row[4] + row[5] > (parts[4] or math.huge) then return false end
  end
  return epoch == epoch_seen
end

-- At its limit of memory Redis refuses a first write that may need more, and permits all that follow one that needs none:
-- usage is still booked, and parts and results make room.
local function write()
  local result = redis.pcall('HINCRBY', KEYS[1] .. 'state', 'counter', 1)
  local is_full = type(result) == 'table'
  if is_full then
    if not string.find(result.err, 'OOM') then return result end
    run('HDEL', 'state', 'none')
    run('HINCRBY', 'state', 'counter', 1)
    drop_oldest(number('bytes') * 0.9)
  end
  for field, parts in pairs(added) do add(field, unpack(parts, 1, 3)) end
  for _, row in ipairs(writes) do
    if not (is_full and row[1] == 'part' and row[3]) then put(unpack(row, 1, 4)) end
  end
  drop_oldest(bytes_most)
end

local is_done = is_as_expected()
if is_done and #writes > 0 then
  local failure = write()
  if failure then return failure end
end
local rows = {}
for place, row in ipairs(is_done and reads or {}) do
  rows[place] = read(unpack(row)) or false
end
return { epoch, number('counter'), string.format('%.6f', now), is_done and 1 or 0, rows }
