"""Store in Redis: for several machines. The only module that uses the redis package; its errors become
StoreUnavailable.

Atomic operations are scripts in lua/. All keys have the same hash tag, so that a script can use several of them on a
cluster, too. Times are those of the program's clock: machines that share a store must agree on the time. Redis' own
expiry only removes old entries. Whether bookings survive a crash of Redis depends on its setting `appendonly`.
"""

import math
import secrets
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import redis.asyncio as client
from redis import exceptions
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from proxy import errors
from proxy.kit.clock import Clock
from proxy.stores.protocols import (
    CACHE_SHARE,
    DAY,
    MONTH,
    CacheLookup,
    CacheRecord,
    CacheUsage,
    EntryUsage,
    ExhaustedQuota,
    LedgerEntry,
    ReservationRecord,
    Settlement,
)

PREFIX = "{v3bridge}:core:"
# Seconds that the last settlement of a dead owner is remembered, so that it is not booked twice.
SEQUENCES_KEPT = 7 * 86_400
CONNECT_SECONDS = 2.0
RESPONSE_SECONDS = 5.0
TIME = 17  # characters of a time in an entry of the cache, such as 1700000000.000000

_LATER = 60  # seconds that Redis keeps expired entries, so that small differences between clocks do not matter


class RedisStore:
    """Store at a `redis://`, `rediss://` or `unix://` address, which may hold a password. Connects when needed."""

    def __init__(self, url: str, clock: Clock) -> None:
        self._clock = clock
        self._redis = _connect(url, decode_responses=True)
        self._scripts = _scripts(self._redis, "*.lua")

    async def reserve(self, reservations: Sequence[ReservationRecord]) -> list[LedgerEntry | None]:
        records = [
            (id_, owner, parts, [(_text(entry), limit) for entry, limit in limits], list(map(_text, entries)))
            for id_, owner, parts, limits, entries in reservations
        ]
        # For each reservation the number of the limit that it exceeds, from 1; 0 if it is held (as Lua counts).
        exceeded = await self._script("reserve", "", msgspec.json.encode(records))
        return [
            each.limits[number - 1].entry if number else None
            for each, number in zip(reservations, exceeded, strict=True)
        ]

    async def settle(self, settlement: Settlement) -> None:
        owner, sequence, reservations, increments = settlement
        released_and_booked = reservations, [(_text(entry), used, uncertain) for entry, used, uncertain in increments]
        await self._script("settle", "", owner, sequence, SEQUENCES_KEPT, msgspec.json.encode(released_and_booked))

    def journal(self, owner: str) -> None:  # noqa: ARG002 - none: another machine could not read it
        return None

    async def raise_used(self, entry: LedgerEntry, used: int) -> None:
        await self._script("raise_used", "", _text(entry), used)

    async def set_usage(self, entry: LedgerEntry, used: int) -> None:
        await self._script("set_usage", "", _text(entry), used, entry.account, secrets.token_hex(8))

    async def heartbeat(self, owner: str, seconds: float) -> None:
        now = self._clock.now()
        await self._script("heartbeat", "", owner, now, now + seconds, SEQUENCES_KEPT)

    async def check_writable(self) -> None:
        await _response(self._redis.set(f"{PREFIX}writable", self._clock.now(), ex=_LATER))

    async def try_out(self) -> dict[str, Any]:
        """Return what Redis says of itself (INFO) after a key has been written and deleted in one transaction."""
        async with self._redis.pipeline(transaction=True) as pipeline:
            pipeline.set(f"{PREFIX}tried", 1, ex=_LATER)
            pipeline.delete(f"{PREFIX}tried")
            await _response(pipeline.execute())
        info: dict[str, Any] = await _response(self._redis.info())
        return info

    async def usage(self, entries: Sequence[LedgerEntry]) -> list[EntryUsage]:
        # A transaction: all entries of one moment, so that a settlement is seen on all of them or on none.
        async with self._redis.pipeline(transaction=True) as pipeline:
            for entry in entries:
                pipeline.hmget(f"{PREFIX}ledger:{_text(entry)}", ["used", "uncertain", "reserved"])
            rows = await _response(pipeline.execute())
        return [
            EntryUsage(entry, *(int(count or 0) for count in counts))
            for entry, counts in zip(entries, rows, strict=True)
        ]

    async def all_usage(self) -> list[EntryUsage]:
        # An index of the entries, kept by the scripts: KEYS or SCAN would walk through everything in this Redis.
        names = await _response(self._redis.smembers(f"{PREFIX}entries"))
        return await self.usage(sorted(LedgerEntry(*name.rsplit(" ", 1)) for name in names))

    async def prune(self, days: int, months: int) -> None:
        await self._script("prune", "", DAY, days, MONTH, months)

    async def mark_exhausted(self, quota: ExhaustedQuota) -> None:
        await _response(
            self._redis.hset(f"{PREFIX}exhausted_quotas", quota.account, msgspec.json.encode(quota[1:]).decode())
        )

    async def clear_exhausted(self, account: str) -> None:
        await _response(self._redis.hdel(f"{PREFIX}exhausted_quotas", account))

    async def exhausted_quotas(self) -> list[ExhaustedQuota]:
        stored = await _response(self._redis.hgetall(f"{PREFIX}exhausted_quotas"))
        quotas = [ExhaustedQuota(account, *msgspec.json.decode(text)) for account, text in stored.items()]
        return [quota for quota in quotas if quota.until > self._clock.now()]

    async def put_note(self, kind: str, owner: str, text: str) -> None:
        await _response(self._redis.hset(f"{PREFIX}notes:{kind}", owner, text))

    async def notes(self, kind: str) -> dict[str, str]:
        return dict(await _response(self._redis.hgetall(f"{PREFIX}notes:{kind}")))

    async def drop_note(self, kind: str, owner: str) -> None:
        await _response(self._redis.hdel(f"{PREFIX}notes:{kind}", owner))

    async def aclose(self) -> None:
        await self._redis.aclose()

    async def _script(self, name: str, key: str, *values: Any) -> Any:
        return await _response(self._scripts[name](keys=[PREFIX + key], args=values))


class RedisCache:
    """Shared response cache of at most `size` bytes, with connections of its own. A claim ends after `lease` seconds.

    An entry is the time when it was stored, in TIME characters, and its content. Redis deletes it at its end; an index
    by that end has the size of each, so that the oldest can be evicted.
    """

    def __init__(self, url: str, size: int, lease: float, clock: Clock) -> None:
        self._size = size
        self._lease = lease
        self._clock = clock
        self._owner = secrets.token_hex(8)
        self._redis = _connect(url, decode_responses=False)
        self._scripts = _scripts(self._redis, "cache_*.lua")

    def look_up_now(self, keys: Sequence[bytes], fresh_from: float, claim: bool) -> None:  # noqa: ARG002 - cannot
        return None

    async def look_up(self, keys: Sequence[bytes], fresh_from: float, claim: bool) -> list[CacheLookup]:
        # In milliseconds, as PX takes it; 0 claims nothing.
        lease = math.ceil(self._lease * 1000) if claim else 0
        results = await self._script("cache_look_up", self._owner, fresh_from, lease, *(key.hex() for key in keys))
        return [
            # content and claimed take turns in the reply, one pair for each key
            CacheLookup(content and content[TIME:], bool(claimed))
            for content, claimed in zip(results[::2], results[1::2], strict=True)
        ]

    async def put(self, records: Sequence[CacheRecord]) -> None:
        now = self._clock.now()
        values: list[Any] = []
        if too_large := [record.key for record in records if len(record.content) > self._size // CACHE_SHARE]:
            await self.release(too_large)
        for key, application, stored, until, content, aliases in records:
            if key in too_large:
                continue
            # In front of the content and of a fixed length, so that a script compares it as text without decoding the
            # entry.
            time = b"%0*.6f" % (TIME, stored)
            names = " ".join([alias.hex() for alias in aliases])
            values += [key.hex(), application, until, max(1, math.ceil((until - now) * 1000)), time + content, names]
        await self._script("cache_put", self._owner, now, self._size, *values)

    async def renew(self, keys: Sequence[bytes]) -> None:
        await self._script("cache_renew", self._owner, math.ceil(self._lease * 1000), *(key.hex() for key in keys))

    async def release(self, keys: Sequence[bytes]) -> None:
        await self._script("cache_release", self._owner, *(key.hex() for key in keys))

    async def cache_usage(self) -> list[CacheUsage]:
        usages: dict[str, CacheUsage] = {}
        for name, size, stored in await self._members():
            usage = usages.get(name, CacheUsage(name, 0, 0, math.inf, 0.0))
            oldest, newest = min(usage.oldest, stored), max(usage.newest, stored)
            usages[name] = CacheUsage(name, usage.entries + 1, usage.bytes + size, oldest, newest)
        return [usages[name] for name in sorted(usages)]

    async def clear(self, application: str | None) -> int:
        deleted = 0
        # In batches: one script over the whole cache would block every other client of this Redis.
        while batch := int(await self._script("cache_clear", application or "")):
            deleted += batch
        return deleted

    async def aclose(self) -> None:
        await self._redis.aclose()

    async def _members(self) -> list[tuple[str, int, float]]:
        """Return application, size and time of every entry."""
        index = await _response(self._redis.zrangebyscore(f"{PREFIX}cache:index", self._clock.now(), "+inf"))
        members = [member.decode().split(" ") for member in index]
        return [(application, int(size), float(stored)) for _, size, stored, application in members]

    async def _script(self, name: str, *values: Any) -> Any:
        return await _response(self._scripts[name](keys=[f"{PREFIX}cache:"], args=values))


def _connect(url: str, *, decode_responses: bool) -> Any:
    try:
        return client.Redis.from_url(
            url,
            decode_responses=decode_responses,
            socket_connect_timeout=CONNECT_SECONDS,
            socket_timeout=RESPONSE_SECONDS,
            retry=Retry(NoBackoff(), 1),  # once, for a connection that had been idle and is gone
        )
    except ValueError:
        # Without the cause, whose message repeats the address and the password in it.
        raise errors.ConfigError("store: is not an address that Redis clients understand") from None


def _scripts(redis: Any, pattern: str) -> dict[str, Any]:
    files = Path(__file__).with_name("lua").glob(pattern)
    return {file.stem: redis.register_script(file.read_text(encoding="utf-8")) for file in files}


def _text(entry: LedgerEntry) -> str:
    """Return the part of a key that identifies an entry. Neither account nor period contains a space."""
    return f"{entry.account} {entry.period}"


async def _response(awaited: Awaitable[Any]) -> Any:
    """Await Redis, and convert its errors. Their text may name an address, so it is left out."""
    try:
        return await awaited
    except (exceptions.RedisError, OSError) as error:
        raise errors.StoreUnavailable(f"the store (Redis) cannot be used: {type(error).__name__}") from error
