"""Store in Redis: for several machines. The only module that uses the redis package.

A transaction decides with rows that were read, and writes by one script (redis.lua), which refuses where a row has
changed meanwhile; then it begins anew. The script counts its writes, and the process sends the highest number that it
has seen. Where Redis has less, data were lost or rolled back, and a new epoch begins: no parts are reserved for an
account until its own `set_usage`, and what was begun before is not booked.
"""

import contextlib
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
import redis.asyncio as client
from redis import exceptions
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from proxy import errors
from proxy.kit.clock import Clock
from proxy.model import Seen
from proxy.store.protocol import CLIENT, SEEN_MAX, STORED_SECONDS, Usage
from proxy.store.rows import TABLES, Key, Kind, Pair, PartRow, ReservationsRow, Row, Rows, Value
from proxy.store.store import Store

R = TypeVar("R")

Name = tuple[Any, ...]  # of a row: its table and field; of rows: the table, or an order, two times and how many
VERSION = "6"
PREFIX = "{v3bridge}:"
RESULT = '","='  # in the fields of results
ORDERS = {ReservationsRow: "ends", PartRow: "ages"}  # of rows by their times
SEEN = tuple(f"seen {kind}" for kind in (CLIENT, *SEEN_MAX))  # tables
DROPPED = ("reservation", "part", *SEEN, *ORDERS.values())  # of another version
SCRIPT = Path(__file__).with_name("redis.lua").read_text(encoding="utf-8")
CONNECT_SECONDS, RESPONSE_SECONDS = 2.0, 5.0
ATTEMPTS = 50  # of a transaction whose rows others change meanwhile


class _ChangedError(Exception):
    """A row has changed since it was read, or a new epoch has begun."""


def json_text(key: Sequence[Any]) -> str:
    return msgspec.json.encode(key).decode()


def _name(kind: Kind, key: Key) -> tuple[str, str]:
    return f"seen {key[0]}" if kind is Seen else TABLES[kind][0], json_text(key)


class RedisRows(Rows):
    """Rows as they were read, and as they are written after all. What is `lacking` is read next, and the operation
    begins anew. The first time `now`, which is the time of Redis, is 0."""

    def __init__(self, texts: dict[Name, Any], now: float, ahead: float, epoch: int) -> None:
        self._texts, self.now, self.ahead, self.epoch = texts, now, ahead, epoch
        self.lacking: dict[Name, None] = {}
        self.writes: dict[Name, tuple[Any, float]] = {}  # texts and times; of values, the milliseconds until they end
        self.added: dict[Pair, list[Any]] = {}

    def _read(self, *name: Any) -> Any:
        if name in self.writes:
            return self.writes[name][0]
        if name not in self._texts:
            self.lacking[name] = None
        return self._texts.get(name)

    def get(self, kind: type[Row], *key: Any) -> Row | None:
        text = self._read(*_name(kind, key))
        return None if text is None else kind._make(msgspec.msgpack.decode(text))

    def all(self, kind: type[Row], *prefix: Any) -> list[Row]:
        table, _ = _name(kind, prefix)
        found = self._read(table) or []
        rows = dict(zip(map(bytes.decode, found[::2]), found[1::2], strict=True))
        self._texts.update({(table, field): text for field, text in rows.items()})
        rows |= {name[1]: text for name, (text, _) in self.writes.items() if name[0] == table}
        return [kind._make(msgspec.msgpack.decode(text)) for text in rows.values() if text is not None]

    def timed(self, kind: Kind, first: float, last: float, most: int = -1) -> list[Key]:
        fields = self._read(ORDERS[kind], first, last, most) if kind in ORDERS and self.now else None
        return [msgspec.json.decode(field, type=tuple) for field in fields or ()]

    def uids(self, scope: str, id: str) -> list[str]:
        uid = self.text(f"part {scope} {id}", ended=True)
        return [] if uid is None else [uid]

    def put(self, row: NamedTuple) -> None:
        kind, time = type(row), getattr(row, TABLES[type(row)][2], 0.0)
        if isinstance(row, Value):
            time = max(1, round((row.until - self.now) * 1000))
        if isinstance(row, PartRow) and row.id is not None:
            self.put_value(f"part {row.scope} {row.id}", row.name, STORED_SECONDS)
        self.writes[_name(kind, row[: TABLES[kind][1]])] = msgspec.msgpack.encode(row), time

    def drop(self, kind: Kind, *key: Any) -> None:
        self.writes[_name(kind, key)] = None, 1


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
            if await _response(store._redis.hget(f"{PREFIX}state", "version")) != VERSION.encode():
                await _response(store._redis.delete(*(PREFIX + table for table in DROPPED)))
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

    async def _run(self, work: Callable[[RedisRows], R], *, is_kept: bool = True) -> R:
        for _ in range(ATTEMPTS):
            with contextlib.suppress(_ChangedError):
                texts, rows, result = await self._work(work)
                if is_kept and rows.writes:
                    writes = [(*name, _string(text), time) for name, (text, time) in rows.writes.items()]
                    added = {json_text(pair): parts for pair, parts in rows.added.items()}
                    await self._call([], _expected(texts, rows.writes), added, writes)
                return result
        raise errors.StoreUnavailable("the store (Redis) cannot be used: others change the same rows all the time")

    async def _work(self, work: Callable[[RedisRows], R]) -> tuple[dict[Name, Any], RedisRows, R]:
        """Do the work with the rows that are known, read those that it lacked, and do it anew until it lacks none."""
        texts: dict[Name, Any] = {}
        now = ahead = 0.0
        while True:
            rows = RedisRows(texts, now, ahead, self._last[0])
            result = work(rows)
            if now and not rows.lacking:
                return texts, rows, result
            time, found = await self._call([*rows.lacking])
            texts.update(zip(rows.lacking, found, strict=True))
            if not now:
                now, ahead = time, time - self._clock.now()

    async def _call(self, reads: list[Name], *changes: Any) -> tuple[float, list[Any]]:
        """Read rows, or write; return the time, and the rows."""
        values = [VERSION, *self._last, reads, *(changes or ([], {}, [])), self._cache_bytes, self._now()]
        reply = await _response(self._script(keys=[PREFIX], args=[msgspec.msgpack.encode(values)]))
        epoch, counter, now, is_done, rows = reply
        self._last = max(self._last, (epoch, counter))
        if not is_done:
            raise _ChangedError
        return float(now), rows


def _string(text: bytes | str | None) -> Any:
    """Return bytes as a text, because Redis' MessagePack knows no bytes."""
    return msgspec.Raw(b"\xdb" + len(text).to_bytes(4, "big") + text) if isinstance(text, bytes) else text


def _expected(texts: dict[Name, Any], writes: dict[Name, Any]) -> list[tuple[str, ...]]:
    """Return the digests of rows that must be as they were read: what is changed, and results."""
    return [
        (*name, hashlib.sha1(text or b"", usedforsecurity=False).hexdigest())
        for name, text in texts.items()
        if name in writes or (name[0] == "part" and RESULT in name[1])
    ]


def _expire_all(rows: RedisRows) -> None:
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
