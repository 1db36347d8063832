"""Store in Redis: for several machines. The only module that uses the redis package.

A transaction decides with rows that were read, and writes by one script (redis.lua), which refuses where a row has
changed meanwhile; then it begins anew. The script counts its writes, and the process sends the highest number that it
has seen. Where Redis has less, data were lost or rolled back, and a new epoch begins: no parts are reserved for an
account until its own `set_usage`, and what was begun before is not booked.
"""

import contextlib
import hashlib
import math
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
import redis.asyncio as client
from redis import exceptions
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from proxy import errors
from proxy.kit.clock import Clock
from proxy.store.protocol import STORED_SECONDS, Account, Usage
from proxy.store.rows import TABLES, Key, Kind, Pair, PartRow, Row, Transaction, Value, json_text
from proxy.store.store import Store

R = TypeVar("R")

Name = tuple[
    Any, ...
]  # of a row: its table and field; of rows: the table, or what has their order, two times and how many
VERSION = b"3"
PREFIX = "{v3bridge}:"
DROPPED = [f"{PREFIX}{key}" for key in ("reservation", "ends", "part", "result", "ages", "seen")]  # of another version
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
                await _response(store._redis.delete(*DROPPED))
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
                rows, result = await self._work(work)
                if is_kept and rows.changed:
                    writes = rows.writes()
                    await self._call([], rows.expected(writes), rows.additions, writes)
                return result
        raise errors.StoreUnavailable("the store (Redis) cannot be used: others change the same rows all the time")

    async def _work(self, work: Callable[[Transaction], R]) -> tuple["_RedisTransaction", R]:
        """Do the work with the rows that are known, read those that it lacked, and do it anew until it lacks none."""
        texts: dict[Name, Any] = {}
        now = ahead = 0.0
        while True:
            rows = _RedisTransaction(texts, now, ahead, self._last[0])
            result = work(rows)
            if now and not rows.lacking:
                return rows, result
            time, found = await self._call([*rows.lacking])
            texts.update(zip(rows.lacking, found, strict=True))
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


class _RedisTransaction(Transaction):
    """Rows of the texts that were read, and the names of those that are lacking; what is changed is written at the
    end."""

    def __init__(self, texts: dict[Name, Any], now: float, ahead: float, epoch: int) -> None:
        super().__init__()
        self.now, self.ahead, self.epoch = now, ahead, epoch
        self._texts = texts
        self.lacking: dict[Name, None] = {}
        self.additions: list[tuple[Any, ...]] = []

    def _text(self, *name: Any) -> Any:
        if name not in self._texts:
            self.lacking[name] = None
        return self._texts.get(name)

    def read(self, kind: type[Row], key: Key) -> Row | None:
        text = self._text(TABLES[kind][0], json_text(key))
        return None if text is None else kind(*msgspec.msgpack.decode(text))

    def all(self, kind: type[Row]) -> Iterable[Row]:
        table = TABLES[kind][0]
        found = self._text(table) or []
        for field, text in zip(found[::2], found[1::2], strict=True):
            self._texts[table, field.decode()] = text
            yield kind(*msgspec.msgpack.decode(text))

    def ended(self, kind: type[Row], until: float, most: int) -> Iterable[Row]:
        if kind is not Value:  # which ends by itself
            for field in self._between("ends", -math.inf, until, most):
                if (row := self.get(kind, *msgspec.json.decode(field))) is not None:
                    yield row

    def fetched(self, first: float, last: float, most: int = -1) -> list[tuple[Kind, Key]]:
        kinds = {name.encode(): kind for kind, (name, _) in TABLES.items()}
        names = (name.split(b" ", 1) for name in self._between("ages", first, last, most))
        return [(kinds[table], tuple(msgspec.json.decode(field))) for table, field in names]

    def _between(self, *name: Any) -> Iterable[bytes]:
        return self._text(*name) or () if self.now else ()  # the times are not known before

    def part(self, scope: str, name: str) -> PartRow | None:
        uid = self.text(f"part {scope} {name}")
        return self.get(PartRow, scope, name) or (self.get(PartRow, scope, uid) if uid else None)

    def put(self, row: NamedTuple) -> None:
        super().put(row)
        if isinstance(row, PartRow) and row.id is not None:
            self.put_value(f"part {row.scope} {row.id}", row.uid, STORED_SECONDS)

    def add(self, pair: Pair | Account, used: int, uncertain: int, reserved: int) -> None:
        super().add(pair, used, uncertain, reserved)
        limit = pair.limit if isinstance(pair, Account) else None
        self.additions.append((json_text(pair[:2]), used, uncertain, reserved, limit))

    def writes(self) -> list[tuple[Any, ...]]:
        """Return the rows to write: tables and fields, texts, and when they were fetched, when they end, or the
        milliseconds until they do. Usage that was added to is none of them."""
        added = {addition[0] for addition in self.additions}
        return [
            (TABLES[kind][0], json_text(key), *self._written(row))
            for kind, rows in self.changed.items()
            for key, row in rows.items()
            if kind is not Usage or json_text(key) not in added
        ]

    def _written(self, row: Any) -> tuple[Any, ...]:
        if row is None:
            return (False,)
        order = getattr(row, "fetched", getattr(row, "until", None))
        if isinstance(row, Value):
            order = max(1, round((row.until - self.now) * 1000))
        text = msgspec.msgpack.encode(row)
        # Redis' MessagePack knows no bytes: this is a text.
        return msgspec.Raw(b"\xdb" + len(text).to_bytes(4, "big") + text), order

    def expected(self, writes: list[tuple[Any, ...]]) -> list[tuple[str, ...]]:
        """Return the digests of rows that must be as they were read: what is changed, and results."""
        changed = {write[:2] for write in writes}
        return [
            (*name, hashlib.sha1(text or b"", usedforsecurity=False).hexdigest())
            for name, text in self._texts.items()
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
