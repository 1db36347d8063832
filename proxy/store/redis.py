"""Store in Redis: for several machines. The only module that uses the redis package.

A transaction decides with rows that were read, and writes by one script (redis.lua), which refuses where a row has
changed meanwhile; then it begins anew. The script counts its writes, and the process sends the highest number that it
has seen. Where Redis has less, data were lost or rolled back, and a new epoch begins: no parts are reserved for an
account until its own `set_usage`, and what was begun before is not booked.
"""

import contextlib
import hashlib
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import redis.asyncio as client
from redis import exceptions
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from proxy import config, errors
from proxy.kit.clock import Clock
from proxy.model import Seen
from proxy.store.protocol import CLIENT, SEEN_MAX, STORED_SECONDS, Usage
from proxy.store.rows import TABLES, Key, Kind, PartRow, ReservationsRow, Row, Rows, Value
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


def _name(kind: Kind, key: Key) -> tuple[str, str]:
    return f"seen {key[0]}" if kind is Seen else TABLES[kind][0], msgspec.json.encode(key).decode()


@dataclass(kw_only=True)
class RedisRows(Rows):
    """Rows as they were read. What is `lacking` is read next, and the operation begins anew. The first time `now`,
    which is the time of Redis, is 0."""

    texts: dict[Name, Any]
    lacking: dict[Name, None] = field(default_factory=dict)

    def _read(self, *name: Any) -> Any:
        if name not in self.texts:
            self.lacking[name] = None
        return self.texts.get(name)

    def find(self, kind: type[Row], key: Key) -> Iterator[Row]:
        table, field = _name(kind, key)
        if len(key) == TABLES[kind][1]:
            texts = [self._read(table, field)]
        else:
            found = self._read(table) or []
            fields, texts = found[::2], found[1::2]
            self.texts.update({(table, field.decode()): text for field, text in zip(fields, texts, strict=True)})
        return (kind._make(msgspec.msgpack.decode(text)) for text in texts if text is not None)

    def timed(self, kind: Kind, first: float, last: float, most: int = -1) -> list[Key]:
        fields = self._read(ORDERS[kind], first, last, most) if kind in ORDERS and self.now else None
        return [msgspec.json.decode(field, type=tuple) for field in fields or ()]

    def uids(self, scope: str, id: str) -> list[str]:
        uid = self.text(f"part {scope} {id}", ended=True)
        return [] if uid is None else [uid]


class RedisStore(Store):
    """Store at a `redis://`, `rediss://` or `unix://` address, which may contain a password. Made by `open`.

    `now` is for tests: the time instead of Redis' own."""

    def __init__(self, url: str, clock: Clock, worker: str, cache_bytes: int, now: Callable[[], float | None]) -> None:
        super().__init__(worker, cache_bytes)
        try:
            # Sent again once, for a connection that had been idle and is gone.
            retry = Retry(NoBackoff(), 1)
            self._redis: Any = client.Redis.from_url(
                url, retry=retry, socket_connect_timeout=CONNECT_SECONDS, socket_timeout=RESPONSE_SECONDS
            )
        except ValueError:
            # Without the cause, whose message repeats the address and the password in it.
            raise errors.ConfigError("store: is not an address that Redis clients understand") from None
        self._address = config.StoreUrl(url).shown
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
        async with contextlib.AsyncExitStack() as resources:
            resources.push_async_callback(store._redis.aclose)
            info, needed = await store._response(store._redis.info()), ""  # a managed Redis may not say all
            if not (info.get("aof_enabled", 1) or info.get("loading")):  # it is off while Redis loads what it has kept
                needed = "appendonly yes"
            elif info.get("maxmemory_policy", "noeviction") != "noeviction":
                needed = "maxmemory-policy noeviction"
            if needed:
                how = f"set `{needed}` in redis.conf, and restart it"
                raise errors.ConfigError(f"store: Redis may lose usage of parts; {how}")
            if await store._response(store._redis.hget(f"{PREFIX}state", "version")) != VERSION.encode():
                await store._response(store._redis.delete(*(PREFIX + table for table in DROPPED)))
                await store._run(_expire_all)
                # Last: a process that dies before is followed by one that does all of it.
                await store._response(store._redis.hset(f"{PREFIX}state", mapping={"version": VERSION, "bytes": 0}))
            await store.put_value("opened", worker, 1.0)  # so that the process knows a number, and that it can write
            store._resources = resources.pop_all()
        return store

    async def _run(self, work: Callable[[RedisRows], R], *, is_kept: bool = True) -> R:
        """Do the work with the rows that are known, read those that it lacked, and do it anew until it lacks none; and
        all of it anew where others have changed one."""
        for _ in range(ATTEMPTS):
            with contextlib.suppress(_ChangedError):
                texts: dict[Name, Any] = {}
                now = ahead = 0.0
                while True:
                    rows = RedisRows(now=now, ahead=ahead, epoch=self._last[0], texts=texts)
                    result = work(rows)
                    if now and not rows.lacking:
                        break
                    time, found = await self._call([*rows.lacking])
                    texts.update(zip(rows.lacking, found, strict=True))
                    if not now:
                        now, ahead = time, time - self._clock.now()
                if is_kept and rows.writes:
                    await self._write(rows)
                return result
        raise errors.StoreUnavailable(f"{self._address} cannot be used: others change the same rows all the time")

    async def _write(self, rows: RedisRows) -> None:
        """Write what a transaction has changed, if what it has read is still so."""
        for part in [*rows.writes.values()]:
            if isinstance(part, PartRow) and part.id is not None:
                rows.put_value(f"part {part.scope} {part.id}", part.name, STORED_SECONDS)
        writes: dict[Name, list[Any]] = {}  # texts, and times in orders; of values, the milliseconds until they end
        for (kind, key), row in rows.writes.items():
            text, time = None, 0.0
            if row is not None:
                packed, time = msgspec.msgpack.encode(row), getattr(row, TABLES[kind][2], 0.0)
                # As a text, because Redis' MessagePack knows no bytes.
                text = msgspec.Raw(b"\xdb" + len(packed).to_bytes(4, "big") + packed)
            if kind is Value:
                time = max(1, round((time - rows.now) * 1000))
            writes[_name(kind, key)] = [text, time]
        # What is changed must be as it was read, and results, which may have come for other keys.
        expected = [
            (*name, hashlib.sha1(text or b"", usedforsecurity=False).hexdigest())
            for name, text in rows.texts.items()
            if name in writes or (name[0] == "part" and RESULT in name[1])
        ]
        added = {_name(Usage, pair)[1]: (*row[2:], rows.most.get(pair)) for pair, row in rows.added.items()}
        await self._call([], expected, added, [(*name, *row) for name, row in writes.items()])

    async def _call(self, reads: list[Name], *changes: Any) -> tuple[float, list[Any]]:
        """Read rows, or write; return the time, and the rows."""
        values = [VERSION, *self._last, reads, *(changes or ([], {}, [])), self._cache_bytes, self._now()]
        reply = await self._response(self._script(keys=[PREFIX], args=[msgspec.msgpack.encode(values)]))
        epoch, counter, now, is_done, rows = reply
        self._last = max(self._last, (epoch, counter))
        if not is_done:
            raise _ChangedError
        return float(now), rows

    async def _response(self, awaited: Awaitable[Any]) -> Any:
        """Await Redis, and convert its errors. Their text may name the address with its password, so it is left out."""
        try:
            return await awaited
        except (exceptions.RedisError, OSError) as error:
            raise errors.StoreUnavailable(f"{self._address} cannot be used: {type(error).__name__}") from error


def _expire_all(rows: RedisRows) -> None:
    """Move what is reserved to uncertain usage."""
    for usage in rows.all(Usage):
        rows.put(usage._replace(uncertain=usage.uncertain + usage.reserved, reserved=0))
