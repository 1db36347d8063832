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
from typing import Any, NamedTuple, TypeVar

import msgspec
import redis.asyncio as client
from redis import exceptions
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from proxy import errors
from proxy.kit.clock import Clock
from proxy.store.protocol import Usage
from proxy.store.rows import TABLES, Kind, Name, Pair, ResultRow, Row, Transaction, Value, json_text
from proxy.store.store import Store

R = TypeVar("R")

VERSION = b"1"
PREFIX = "{v3bridge}:"
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
            rows = _RedisTransaction(self, self._last[0])
            with contextlib.suppress(_ChangedError):
                result = await work(rows)
                if is_kept:
                    await rows.write()
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


class _RedisTransaction(Transaction):
    """Rows as they were read and are changed; what is changed is written at the end."""

    def __init__(self, store: RedisStore, epoch: int) -> None:
        self.epoch = epoch
        self._store = store
        self._stored: dict[Name, bytes | None] = {}
        self._rows: dict[Name, Any] = {}
        self._changed: set[Name] = set()
        self._additions: dict[Pair, tuple[int, int, int]] = {}  # to used, uncertain and reserved parts
        self._limits: dict[Pair, int | None] = {}

    async def read(self, names: Iterable[Name]) -> None:
        missing = [name for name in dict.fromkeys(names) if name not in self._stored]
        if missing or not self.now:
            found = await self._call([_place(name) for name in missing])
            for name, text in zip(missing, found, strict=True):
                self._keep(name, text)

    async def all(self, kind: type[Row]) -> list[Row]:
        (found,) = await self._call([(TABLES[kind][0],)])
        rows = zip(found[::2], found[1::2], strict=True)
        return [self._keep((kind, *msgspec.json.decode(key)), text) for key, text in rows]

    async def drop_fetched(self, oldest: float, latest: float) -> int:
        return sum(await self._call([("ages", "-inf", oldest), ("ages", latest, "+inf")]))

    async def drop_ended(self, first_day: str) -> None:
        await self._call([("days", first_day)])  # values end by themselves

    async def _call(self, reads: list[Any]) -> list[Any]:
        self.now, self.ahead, found = await self._store.call(reads)
        return found

    def _keep(self, name: Name, text: bytes | None) -> Any:
        """Keep a row as it was read first, and return it."""
        if name not in self._stored:
            self._stored[name] = text
            self._rows[name] = None if text is None else name[0]._make(msgspec.msgpack.decode(text))
        return self._rows[name]

    def get(self, kind: type[Row], *key: Any) -> Row | None:
        row: Row | None = self._rows.get((kind, *key))
        return row

    def put(self, row: NamedTuple) -> None:
        name = type(row), *row[: TABLES[type(row)][1]]
        self._rows[name] = row
        self._changed.add(name)

    def drop(self, kind: Kind, *key: Any) -> None:
        self._rows[kind, *key] = None
        self._changed.add((kind, *key))

    def add(self, pair: Pair, used: int, uncertain: int, reserved: int, limit: int | None = None) -> None:
        added = self._additions.get(pair, (0, 0, 0))
        self._additions[pair] = added[0] + used, added[1] + uncertain, added[2] + reserved
        self._limits[pair] = limit
        old = self.get(Usage, *pair) or Usage(*pair)
        self._rows[Usage, *pair] = Usage(*pair, old.used + used, old.uncertain + uncertain, old.reserved + reserved)

    async def write(self) -> None:
        """Write what is changed if it is still as it was read, and so are results and values."""
        if self._changed:
            relied = [name for name in self._stored if name in self._changed or name[0] in (ResultRow, Value)]
            digests = [hashlib.sha1(self._stored[name] or b"", usedforsecurity=False).hexdigest() for name in relied]
            expected = [(*_place(name), digest) for name, digest in zip(relied, digests, strict=True)]
            additions = [(json_text(pair), *added, self._limits[pair]) for pair, added in self._additions.items()]
            await self._store.call([], expected, additions, [self._written(name) for name in self._changed])

    def _written(self, name: Name) -> tuple[Any, ...]:
        """Return the row to write: its place and text, and when it was fetched or the milliseconds until it ends."""
        row = self._rows[name]
        if row is None:
            return (*_place(name), False)
        order = max(1, round((row.until - self.now) * 1000)) if name[0] is Value else getattr(row, "fetched", None)
        text = msgspec.msgpack.encode(row)
        # Redis' MessagePack knows no bytes: this is a text.
        return (*_place(name), msgspec.Raw(b"\xdb" + len(text).to_bytes(4, "big") + text), order)


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


def _place(name: Name) -> tuple[str, str]:
    return TABLES[name[0]][0], json_text(name[1:])


async def _response(awaited: Awaitable[Any]) -> Any:
    """Await Redis, and convert its errors. Their text may name an address, so it is left out."""
    try:
        return await awaited
    except (exceptions.RedisError, OSError) as error:
        raise errors.StoreUnavailable(f"the store (Redis) cannot be used: {type(error).__name__}") from error
