"""Store in Redis: for several machines. The only module that uses the redis package.

A transaction decides with rows that were read, and writes by one script (redis.lua), which refuses where a row has
changed meanwhile; then it begins anew. The script counts its writes, and the process sends the highest number that it
has seen. Where Redis has less, data were lost or rolled back, and a new epoch begins: no parts are reserved for an
account until its own `set_usage`, and what was begun before is not booked.
"""

import contextlib
import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import redis.asyncio as client
from redis import exceptions
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from proxy import errors
from proxy.kit.clock import Clock
from proxy.model import Seen
from proxy.store.protocol import CLIENT, FAILURE, STORED_SECONDS, UNKNOWN_KEY, Usage
from proxy.store.rows import TABLES, Key, Kind, PartRow, ReservationsRow, ResultRow, Transaction, Value, json_text
from proxy.store.store import Store

R = TypeVar("R")

Name = tuple[Any, ...]  # of a row: its table and field; of rows: the table, or an order, two times and how many
VERSION = b"5"
PREFIX = "{v3bridge}:"
ORDERS = {ReservationsRow: "ends", ResultRow: "ages", PartRow: "ages", Seen: "lasts"}  # of rows by their times
SEEN = {kind: f"seen {kind}" for kind in (CLIENT, UNKNOWN_KEY, FAILURE)}  # tables
DROPPED = ("reservation", "result", "part", "seen", *SEEN.values(), *ORDERS.values())  # of another version
SCRIPT = Path(__file__).with_name("redis.lua").read_text(encoding="utf-8")
CONNECT_SECONDS, RESPONSE_SECONDS = 2.0, 5.0
ATTEMPTS = 50  # of a transaction whose rows others change meanwhile


class _ChangedError(Exception):
    """A row has changed since it was read, or a new epoch has begun."""


class RedisStore(Store):
    """Store at a `redis://`, `rediss://` or `unix://` address, which may contain a password. Made by `open`.

    `now` is for tests: the time instead of Redis' own."""

    def __init__(self, url: str, clock: Clock, worker: str, cache_bytes: int, now: Callable[[], float | None]) -> None:
        super().__init__(worker, cache_bytes)
        self._redis = _client(url)
        self._script = self._redis.register_script(SCRIPT)
        self._clock = clock
        self._now = now
        self._last = (0, 0)  # epoch and counter

    @classmethod
    async def open(
        cls, url: str, clock: Clock, worker: str, cache_bytes: int, now: Callable[[], float | None] = lambda: None
    ) -> "RedisStore":
        """Open the store, and check that Redis keeps what it confirms. Raises ConfigError, StoreUnavailable."""
        store = cls(url, clock, worker, cache_bytes, now)
        try:
            _check(await _response(store._redis.info()))
            if await _response(store._redis.hget(f"{PREFIX}state", "version")) != VERSION:
                await _response(store._redis.delete(*(f"{PREFIX}{key}" for key in DROPPED)))
                await store._run(_expire_all)
                # Last: a process that dies before is followed by one that does all of it.
                await _response(store._redis.hset(f"{PREFIX}state", mapping={"version": VERSION, "bytes": 0}))
            await store.put_value("opened", worker, 1.0)  # so that the process knows a number, and that it can write
        except BaseException:
            await store._redis.aclose()
            raise
        return store

    async def _close(self) -> None:
        await self._redis.aclose()

    async def _run(self, work: Callable[[Transaction], R], *, is_kept: bool = True) -> R:
        for _ in range(ATTEMPTS):
            with contextlib.suppress(_ChangedError):
                known, rows, result = await self._work(work)
                writes = _writes(rows) if is_kept else []
                if writes:
                    additions = [(json_text(each[:2]), *parts, *each[2:]) for each, *parts in rows.additions]
                    await self._call([], _expected(known, writes), additions, writes)
                return result
        raise errors.StoreUnavailable("the store (Redis) cannot be used: others change the same rows all the time")

    async def _work(self, work: Callable[[Transaction], R]) -> tuple[dict[Name, Any], Transaction, R]:
        """Do the work with the rows that are known, read those that it lacked, and do it anew until it lacks none."""
        texts: dict[Name, Any] = {}
        now = ahead = 0.0
        while True:
            reads = _Reads(texts, now)
            rows = Transaction(reads.read, now, ahead, self._last[0])
            result = work(rows)
            if now and not reads.lacking:
                return texts, rows, result
            time, found = await self._call([*reads.lacking])
            texts.update(zip(reads.lacking, found, strict=True))
            if not now:
                now, ahead = time, time - self._clock.now()

    async def _call(self, reads: list[Name], *changes: list[Any]) -> tuple[float, list[Any]]:
        """Read rows, or write; return the time, and the rows."""
        expected, additions, writes = changes or ([], [], [])
        values = [*self._last, reads, expected, additions, writes, self._cache_bytes, self._now()]
        reply = await _response(self._script(keys=[PREFIX], args=[msgspec.msgpack.encode(values)]))
        epoch, counter, now, is_done, rows = reply
        self._last = max(self._last, (epoch, counter))
        if not is_done:
            raise _ChangedError
        return float(now), rows


class _Reads:
    """Texts that were read, by their names, and the names of those that are lacking. The first time, `now` is 0."""

    def __init__(self, texts: dict[Name, Any], now: float) -> None:
        self._texts, self._now = texts, now
        self.lacking: dict[Name, None] = {}

    def read(self, kind: Kind, key: Key, times: Key = (), *, is_id: bool = False) -> Any:
        table, length, _ = TABLES[kind]
        if is_id:
            value = self.read(Value, (f"part {key[0]} {key[1]}",))
            return value and self.read(PartRow, (key[0], value[1]))
        if times:
            names = self._text(ORDERS[kind], *times) if kind in ORDERS and self._now else None
            found = (name.split(b" [", 1) for name in names or () if name.startswith(table.encode()))
            return [msgspec.json.decode(b"[" + field, type=tuple) for _, field in found]
        if len(key) < length:
            return self._all(_table(kind, key))
        text = self._text(_table(kind, key), json_text(key))
        return None if text is None else msgspec.msgpack.decode(text)

    def _text(self, *name: Any) -> Any:
        if name not in self._texts:
            self.lacking[name] = None
        return self._texts.get(name)

    def _all(self, table: str) -> list[Any]:
        found = self._text(table) or []
        self._texts.update(((table, field.decode()), text) for field, text in zip(found[::2], found[1::2], strict=True))
        return [msgspec.msgpack.decode(text) for text in found[1::2]]


def _table(kind: Kind, key: Key) -> str:
    return SEEN[key[0]] if kind is Seen else TABLES[kind][0]


def _writes(rows: Transaction) -> list[tuple[Any, ...]]:
    """Return the rows to write: tables and fields, orders, texts, and their times; of values, the milliseconds until
    they end. A part is found by its id, too."""
    for part in [*rows.changed[PartRow].values()]:
        if part and part.id is not None:
            rows.put_value(f"part {part.scope} {part.id}", part.uid, STORED_SECONDS)
    writes: list[tuple[Any, ...]] = []
    for kind, changed in rows.changed.items():
        for key, row in changed.items():
            text, time = msgspec.msgpack.encode(row), getattr(row, TABLES[kind][2], None)
            if kind is Value:
                time = max(1, round((row.until - rows.now) * 1000))
            # Redis' MessagePack knows no bytes: this is a text.
            raw = row and msgspec.Raw(b"\xdb" + len(text).to_bytes(4, "big") + text)
            writes.append((_table(kind, key), json_text(key), ORDERS.get(kind), raw, time))
    return writes


def _expected(texts: dict[Name, Any], writes: list[tuple[Any, ...]]) -> list[tuple[str, ...]]:
    """Return the digests of rows that must be as they were read: what is changed, and results."""
    changed = {write[:2] for write in writes}
    return [
        (*name, hashlib.sha1(text or b"", usedforsecurity=False).hexdigest())
        for name, text in texts.items()
        if name in changed or (name[0] == "result" and len(name) == 2)
    ]


def _expire_all(rows: Transaction) -> None:
    """Move what is reserved to uncertain usage."""
    for usage in rows.all(Usage):
        rows.put(usage._replace(uncertain=usage.uncertain + usage.reserved, reserved=0))


def _client(url: str) -> Any:
    try:
        # Sent again once, for a connection that had been idle and is gone.
        retry = Retry(NoBackoff(), 1)
        return client.Redis.from_url(
            url, retry=retry, socket_connect_timeout=CONNECT_SECONDS, socket_timeout=RESPONSE_SECONDS
        )
    except ValueError:
        # Without the cause, whose message repeats the address and the password in it.
        raise errors.ConfigError("store: is not an address that Redis clients understand") from None


def _check(info: dict[str, Any]) -> None:
    """Raise ConfigError if Redis does not keep what it confirms. A managed one may not say so."""
    policy, needed = info.get("maxmemory_policy", "noeviction"), ""
    if not (info.get("aof_enabled", 1) or info.get("loading")):  # it is off while Redis loads what it has kept
        needed = "appendonly yes"
    elif policy != "noeviction":
        needed = "maxmemory-policy noeviction"
    if needed:
        raise errors.ConfigError(f"store: Redis may lose usage of parts; set `{needed}` in redis.conf, and restart it")


async def _response(awaited: Awaitable[Any]) -> Any:
    """Await Redis, and convert its errors. Their text may name an address, so it is left out."""
    try:
        return await awaited
    except (exceptions.RedisError, OSError) as error:
        raise errors.StoreUnavailable(f"the store (Redis) cannot be used: {type(error).__name__}") from error
