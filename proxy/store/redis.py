"""Store in Redis: for several machines. The only module that uses the redis package.

A transaction reads rows, decides, and writes by one script (redis.lua), which refuses where a row has changed
meanwhile; then it begins anew. The script counts its writes, and the process sends the highest number that it has seen.
Where Redis has less, data were lost or rolled back, and a new epoch begins: no parts are reserved for an account until
its own `set_usage`, and what was begun before is not booked.
"""

import contextlib
import hashlib
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import redis.asyncio as client
from redis import exceptions
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from proxy import errors
from proxy.kit.clock import Clock
from proxy.store.protocol import Usage
from proxy.store.rows import TABLES, Key, Kind, PartRow, ResultRow, Row, Transaction, Value
from proxy.store.store import Store

R = TypeVar("R")

VERSION = b"1"
PREFIX = "{v3bridge}:"
AGES = f"{PREFIX}ages"
DROPPED = [f"{PREFIX}{key}" for key in ("part", "result", "ages", "seen")]  # of another version
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
                await _response(store._redis.hset(f"{PREFIX}state", mapping={"version": VERSION, "bytes": 0}))
            await store.put_value("opened", worker, 1.0)  # so that the process knows a number, and that it can write
        except BaseException:
            await store._redis.aclose()
            raise
        return store

    async def aclose(self) -> None:
        with contextlib.suppress(errors.StoreUnavailable):
            await self.end_worker(self._worker)
        await self._redis.aclose()

    async def _run(self, work: Callable[[Transaction], Awaitable[R]], *, is_kept: bool = True) -> R:
        for _ in range(ATTEMPTS):
            transaction = _RedisTransaction(self, self._last[0])
            with contextlib.suppress(_ChangedError):
                result = await work(transaction)
                if is_kept:
                    await transaction.write()
                return result
        raise errors.StoreUnavailable("the store (Redis) cannot be used: others change the same rows all the time")

    async def call(self, reads: list[Any], *changes: Any) -> tuple[float, float, list[Any]]:
        """Read rows, or write. Return the time, how much it is ahead of the clock, and the rows."""
        expected, additions, writes = changes or ([], [], [])
        values = [*self._last, reads, expected, additions, writes, self._cache_bytes, self._now()]
        reply = await _response(self._script(keys=[PREFIX], args=[msgspec.msgpack.encode(values)]))
        epoch, counter, now, is_done, rows = reply
        self._last = max(self._last, (epoch, counter))
        if not is_done:
            raise _ChangedError
        return float(now), float(now) - self._clock.now(), rows

    async def names_by_age(self, first: float | str, last: float | str) -> list[list[bytes]]:
        """Return tables and fields of the parts and results that were fetched between two times."""
        return [name.split(b" ", 1) for name in await _response(self._redis.zrangebyscore(AGES, first, last))]


class _RedisTransaction(Transaction):
    def __init__(self, store: RedisStore, epoch: int) -> None:
        super().__init__(0.0, epoch)
        self._store = store
        self._stored: dict[tuple[Kind, Key], bytes | None] = {}

    async def read(self, *wanted: tuple[Kind, Iterable[Key]]) -> None:
        rows = [(kind, key) for kind, keys in wanted for key in keys if (kind, key) not in self._rows]
        if not rows and self.now:
            return
        self.now, self.ahead, found = await self._store.call([_name(*row) for row in rows])
        for (kind, key), raw in zip(rows, found, strict=True):
            self._keep(kind, key, raw)

    async def all(self, kind: type[Row], first: str | None = None) -> list[Row]:
        beginning = b"[" if first is None else msgspec.json.encode([first])[:-1]
        self.now, self.ahead, (found,) = await self._store.call([(TABLES[kind][0],)])
        fields = zip(found[::2], found[1::2], strict=True)
        rows = [(tuple(msgspec.json.decode(field)), raw) for field, raw in fields if field.startswith(beginning)]
        return [self._keep(kind, key, raw) for key, raw in rows]

    def _keep(self, kind: Kind, key: Key, raw: bytes | None) -> Any:
        """Keep a row as it was read first, and return it."""
        row = raw and kind._make(msgspec.msgpack.decode(raw))
        if (kind, key) not in self._stored:
            self._stored[kind, key], self._rows[kind, key] = raw, row
        return row

    async def drop_old(self, oldest: float, latest: float) -> int:
        names = await self._store.names_by_age("-inf", oldest) + await self._store.names_by_age(latest, "+inf")
        rows = [(PartRow if table == b"part" else ResultRow, *msgspec.json.decode(field)) for table, field in names]
        for row in rows:
            self.drop(*row)
        return sum(row[0] is PartRow for row in rows)

    async def write(self) -> None:
        """Write what is changed if it is still as it was read, and so are results and values."""
        if self._changed:
            relied = [row for row in self._stored if row in self._changed or row[0] in (ResultRow, Value)]
            digests = [hashlib.sha1(self._stored[row] or b"", usedforsecurity=False).hexdigest() for row in relied]
            expected = [(*_name(*row), digest) for row, digest in zip(relied, digests, strict=True)]
            additions = [
                (_name(Usage, pair)[1], *added, self._limits.get(pair)) for pair, added in self._additions.items()
            ]
            await self._store.call([], expected, additions, [self._change_of(*row) for row in self._changed])

    def _change_of(self, kind: Kind, key: Key) -> tuple[Any, ...]:
        """Return the row to write: its name and text, and when it was fetched or the milliseconds until it ends."""
        row = self._rows[kind, key]
        if row is None:
            return (*_name(kind, key), False)
        text = msgspec.msgpack.encode(row)
        order = row.fetched if kind in (PartRow, ResultRow) else None
        if kind is Value:
            order = max(1, round((row.until - self.now) * 1000))
        # Redis' MessagePack knows no bytes: this is a text.
        return (*_name(kind, key), msgspec.Raw(b"\xdb" + len(text).to_bytes(4, "big") + text), order)


async def try_out(url: str) -> dict[str, Any]:
    """Return what Redis says of itself (INFO) after a key has been written and deleted in one transaction. Raises
    ConfigError, StoreUnavailable."""
    redis = _client(url)
    try:
        async with redis.pipeline(transaction=True) as pipeline:
            pipeline.set(f"{PREFIX}tried", 1, ex=1)
            pipeline.delete(f"{PREFIX}tried")
            await _response(pipeline.execute())
        info: dict[str, Any] = await _response(redis.info())
    finally:
        await redis.aclose()
    return info


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
    appendonly, policy = info.get("aof_enabled", 1), info.get("maxmemory_policy", "noeviction")
    found = {"appendonly": "yes" if appendonly else "no", "maxmemory-policy": policy}
    for setting, needed in (("appendonly", "yes"), ("maxmemory-policy", "noeviction")):
        if found[setting] != needed:
            raise errors.ConfigError(
                f"store: Redis may lose usage of parts, because its setting {setting} is {found[setting]}; "
                f"set `{setting} {needed}` in redis.conf, and restart it"
            )


def _name(kind: Kind, key: Key) -> tuple[str, str]:
    return TABLES[kind][0], msgspec.json.encode(key).decode()


async def _response(awaited: Awaitable[Any]) -> Any:
    """Await Redis, and convert its errors. Their text may name an address, so it is left out."""
    try:
        return await awaited
    except (exceptions.RedisError, OSError) as error:
        raise errors.StoreUnavailable(f"the store (Redis) cannot be used: {type(error).__name__}") from error
