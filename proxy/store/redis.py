"""Store in Redis: for several machines. The only module that uses the redis package.

Every operation of `redis.lua` raises a counter, and the process sends the highest that it has seen. Where Redis has
less, data were lost or rolled back, and a new epoch begins: no parts are reserved for an account until its own
`set_usage`, and what was begun before is not booked.
"""

import contextlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import redis.asyncio as client
from redis import exceptions
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from proxy import errors
from proxy.kit.clock import Clock
from proxy.kit.windows import Window
from proxy.store import protocol
from proxy.store.protocol import Account, Begin, Finish, Outcome, Result, Seen, Usage

PREFIX = "{v3bridge}:"
SCRIPT = Path(__file__).with_name("redis.lua").read_text(encoding="utf-8")
CONNECT_SECONDS, RESPONSE_SECONDS = 2.0, 5.0
LOST = "Redis has lost usage of parts; set it as the vendor's portal shows it: v3bridge usage --set APPLICATION=N"
_decode_hits = msgspec.json.Decoder(tuple[protocol.Hit, ...]).decode


class RedisStore:
    """Store at a `redis://`, `rediss://` or `unix://` address, which may contain a password (protocol.Store).

    `now` is for tests: the time instead of Redis' own."""

    def __init__(
        self, url: str, clock: Clock, worker: str, cache_bytes: int, now: Callable[[], float | str] = lambda: ""
    ) -> None:
        try:
            # Sent again once, for a connection that had been idle and is gone.
            retry = Retry(NoBackoff(), 1)
            self._redis: Any = client.Redis.from_url(
                url, retry=retry, socket_connect_timeout=CONNECT_SECONDS, socket_timeout=RESPONSE_SECONDS
            )
        except ValueError:
            # Without the cause, whose message repeats the address and the password in it.
            raise errors.ConfigError("store: is not an address that Redis clients understand") from None
        self._script = self._redis.register_script(SCRIPT)
        self._clock = clock
        self._worker = worker
        self._cache_bytes = cache_bytes
        self._now = now
        self._seen = (0, 0)  # epoch and counter

    @classmethod
    async def open(
        cls, url: str, clock: Clock, worker: str, cache_bytes: int, now: Callable[[], float | str] = lambda: ""
    ) -> "RedisStore":
        """Open the store, and check that Redis keeps what it confirms. Raises ConfigError, StoreUnavailable."""
        store = cls(url, clock, worker, cache_bytes, now)
        try:
            _check(await _response(store._redis.info()))
            await store._call("open", list(protocol.SEEN_MAX))
        except BaseException:
            await store._redis.aclose()
            raise
        return store

    async def begin(self, begins: Sequence[Begin]) -> list[list[Outcome]]:
        return await self._begin(begins, is_quote=False)

    async def quote(self, begins: Sequence[Begin]) -> list[list[Outcome]]:
        return await self._begin(begins, is_quote=True)

    async def finish(self, finishes: Sequence[Finish]) -> None:
        now = self._clock.now()
        await self._call("finish", [_finish_values(finish, now) for finish in finishes], protocol.FRESH_SECONDS)

    async def sweep(self) -> None:
        await self.end_worker("")

    async def end_worker(self, worker: str) -> None:
        first = datetime.fromtimestamp(self._clock.now(), UTC).date() - timedelta(protocol.DAYS_KEPT)
        await self._call("sweep", worker, first.isoformat(), protocol.STORED_SECONDS)

    async def usage(self) -> list[Usage]:
        async with self._redis.pipeline(transaction=True) as pipeline:
            for kind in ("used", "uncertain", "reserved"):
                pipeline.hgetall(PREFIX + kind)
            kinds = await _response(pipeline.execute())
        rows = [
            Usage(*entry.decode().split(" "), *(int(counts.get(entry, 0)) for counts in kinds))
            for entry in sorted({entry for counts in kinds for entry in counts})
        ]
        return [row for row in rows if any(row[2:])]

    async def set_usage(self, account: Account, used: int) -> None:
        await self._call("set_usage", account.account, _entry(account), used)

    async def forget(self, scope: str | None) -> int:
        return int(await self._call("forget", scope))

    async def forgotten(self) -> int:
        return int(await self._call("forgotten"))

    async def value(self, key: str) -> str | None:
        return (await self.values(key)).get(key)

    async def values(self, prefix: str) -> dict[str, str]:
        return dict(await self._call("values", prefix))

    async def put_value(self, key: str, value: str, seconds: float, *, absent: bool = False) -> bool:
        return bool(await self._call("put_value", key, value, seconds, absent))

    async def drop_value(self, key: str, value: str | None = None) -> None:
        await self._call("drop_value", key, value)

    async def take(self, key: str, windows: Sequence[Window]) -> float:
        return float(await self._call("take", key, windows))

    async def add_seen(self, id: str, rows: Sequence[Seen], first_day: int) -> None:
        added = [
            {"kind": row.kind, "name": _text(row[1:7]), "requests": row.requests, "last": row.last} for row in rows
        ]
        await self._call("add_seen", id, added, first_day * protocol.DAY_SECONDS, list(protocol.SEEN_MAX.items()))

    async def seen(self, kind: str, first_day: int) -> list[Seen]:
        stored = await _response(self._redis.hgetall(f"{PREFIX}seen:{kind}"))
        rows = [
            Seen(kind, *msgspec.json.decode(name), *msgspec.msgpack.decode(counted)) for name, counted in stored.items()
        ]
        return sorted((row for row in rows if row.day >= first_day), key=lambda row: -row.last)

    async def check_writable(self) -> None:
        await self.forgotten()  # writes, as every operation does

    async def aclose(self) -> None:
        with contextlib.suppress(errors.StoreUnavailable):
            await self.end_worker(self._worker)
        await self._redis.aclose()

    async def _begin(self, begins: Sequence[Begin], *, is_quote: bool) -> list[list[Outcome]]:
        now = self._clock.now()
        values = [_begin_values(begin, now) for begin in begins]
        rows, bodies = await self._call_for_bodies("begin", self._worker, values, is_quote)
        return [
            [_outcome(begin, want.key, outcome, bodies, now) for want, outcome in zip(begin.wants, row, strict=True)]
            for begin, row in zip(begins, rows, strict=True)
        ]

    async def _call(self, operation: str, *values: Any) -> Any:
        return (await self._call_for_bodies(operation, *values))[0]

    async def _call_for_bodies(self, operation: str, *values: Any) -> tuple[Any, Iterator[bytes]]:
        """Call an operation of the script; return its result, and the bodies that belong to it."""
        arguments = operation, msgspec.msgpack.encode(values), *self._seen, self._cache_bytes, self._now()
        row, *bodies = await _response(self._script(keys=[PREFIX], args=arguments))
        epoch, counter, result = msgspec.msgpack.decode(row)
        self._seen = max(self._seen, (epoch, counter))
        return result, iter(bodies)


def _check(info: dict[str, Any]) -> None:
    """Raise ConfigError if Redis does not keep what it confirms."""
    found = {"appendonly": "yes" if info["aof_enabled"] else "no", "maxmemory-policy": info["maxmemory_policy"]}
    for setting, needed in (("appendonly", "yes"), ("maxmemory-policy", "noeviction")):
        if found[setting] != needed:
            raise errors.ConfigError(
                f"store: Redis may lose usage of parts, because its setting {setting} is {found[setting]}; "
                f"set `{setting} {needed}` in redis.conf, and restart it"
            )


def _begin_values(begin: Begin, now: float) -> dict[str, Any]:
    age = now - begin.fresh_from
    return {
        "id": begin.id,
        "selection": begin.selection._asdict(),
        "seconds": begin.seconds,
        "age": age,
        "empty_age": min(age, protocol.EMPTY_SECONDS),
        "accounts": [{**account._asdict(), "entry": _entry(account)} for account in begin.accounts],
        "entries": [_entry(account) for account in begin.accounts],
        "wants": [
            {
                "name": f"result:{begin.scope} {want.key}",
                "end": want.end,
                "parts": want.parts,
                "uid": None if want.uid is None else f"part:{begin.scope} {want.uid}",
                "id": None if want.part_id is None else f"{begin.scope} {want.part_id}",
            }
            for want in begin.wants
        ],
    }


def _finish_values(finish: Finish, now: float) -> dict[str, Any]:
    return {
        "id": finish.id,
        "entries": [_entry(account) for account in finish.accounts],
        "used": finish.used,
        "uncertain": finish.uncertain,
        "results": [_result_values(finish, result, now) for result in finish.results],
    }


def _result_values(finish: Finish, result: Result, now: float) -> dict[str, Any]:
    """Return a result as rows of its parts and of itself."""
    scope, name, details = finish.scope, f"result:{finish.scope} {result.key}", result.details or b""
    ids = [None if id is None else f"{scope} {id}" for id in result.part_ids or [None] * len(result.items)]
    parts = [f"part:{scope} {item.uid}" for item in result.items]
    row = {"asked": result.asked, "hits": result.hits, "items": _text(result.items), "parts": parts}
    rows = [(part, {**finish.selection._asdict(), "id": id}) for part, id in zip(parts, ids, strict=True)]
    bodies = [*result.bodies, details]
    return {
        "name": name,
        "age": max(0.0, now - result.fetched) if result.fetched else 0.0,
        "size": sum(map(len, bodies)),
        "kept": [
            {"name": name, "row": row, "body": _raw(body)}
            for (name, row), body in zip([*rows, (name, row)], bodies, strict=True)
        ],
    }


def _outcome(begin: Begin, key: str, values: Any, bodies: Iterator[bytes], now: float) -> Outcome:
    match values:
        case "busy", *_:
            return protocol.Busy()
        case "refused", place, left:
            return protocol.Refused(begin.accounts[place - 1], left)
        case "lost", *_:
            return errors.StoreUnavailable(LOST)
        case kind, (age, asked, hits, items, ids):
            details = next(bodies) or None
            parts = tuple(next(bodies) for _ in ids)
            part_ids = tuple(id.partition(" ")[2] if id else None for id in ids)
            result = Result(key, asked, hits, _decode_hits(items), parts, part_ids, details, now - age)
            return protocol.Found(result) if kind == "found" else protocol.Reserved(result)
    return protocol.Reserved(None)


def _entry(account: Account) -> str:
    return f"{account.account} {account.period}"


def _text(values: Any) -> str:
    return msgspec.json.encode(values).decode()


def _raw(body: bytes) -> msgspec.Raw:
    """Return bytes as a text in MessagePack: Redis knows no other."""
    return msgspec.Raw(b"\xdb" + len(body).to_bytes(4, "big") + body)


async def _response(awaited: Awaitable[Any]) -> Any:
    """Await Redis, and convert its errors. Their text may name an address, so it is left out."""
    try:
        return await awaited
    except (exceptions.RedisError, OSError) as error:
        raise errors.StoreUnavailable(f"the store (Redis) cannot be used: {type(error).__name__}") from error
