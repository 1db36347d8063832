"""The store in Redis: for several machines. The one module that knows redis; its errors become StoreUnavailable here.

What must be atomic is a script of lua/. All keys lie under one hash tag, so that a script may touch them together on a
cluster too. Times are those of the program's clock: machines that share a store must agree on the time. Redis' own
expiry only tidies up after it. How safe a booking is when Redis itself dies is up to its `appendonly`.
"""

import math
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import Any

import orjson
import redis.asyncio as client
from redis import exceptions
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from proxy import errors
from proxy.kit.clock import Clock
from proxy.kit.windows import Window
from proxy.stores.protocols import DAY, MONTH, EntryUsage, ExhaustedQuota, LedgerEntry, ReservationRecord, Settlement

PREFIX = "{v3bridge}:"
MARKS_KEPT = 7 * 86_400  # seconds that an owner which is gone is remembered, lest it books twice
CONNECT_SECONDS = 2.0
ANSWER_SECONDS = 5.0

_LATER = 60  # seconds that Redis keeps what has ended, so that clocks that differ a little do no harm


class RedisStore:
    """The store at a `redis://`, `rediss://` or `unix://` address, which may hold a password. Connects when needed."""

    def __init__(self, url: str, clock: Clock) -> None:
        self._clock = clock
        try:
            self._redis = client.Redis.from_url(
                url,
                decode_responses=True,
                socket_connect_timeout=CONNECT_SECONDS,
                socket_timeout=ANSWER_SECONDS,
                retry=Retry(NoBackoff(), 1),  # once, for a connection that had been idle and is gone
            )
        except ValueError:
            raise errors.ConfigError("store: is not an address that Redis clients understand") from None
        scripts = Path(__file__).with_name("lua").glob("*.lua")
        self._scripts = {file.stem: self._redis.register_script(file.read_text(encoding="utf-8")) for file in scripts}

    async def take(self, key: str, windows: Sequence[Window]) -> float:
        numbers = [number for window in windows for number in (window.count, window.seconds)]
        return float(await self._script("take", f"windows:{key}", self._clock.now(), *numbers))

    async def token(self, key: str) -> tuple[str, float] | None:
        token, expires = await _answer(self._redis.hmget(f"{PREFIX}token:{key}", ["token", "expires"]))
        if token is None or expires is None or float(expires) <= self._clock.now():
            return None
        return token, float(expires)

    async def keep_token(self, key: str, token: str, expires: float) -> None:
        await self._script("keep_token", f"token:{key}", token, expires, self._life(expires))

    async def drop_token(self, key: str, token: str) -> None:
        await self._script("drop_token", f"token:{key}", token)

    async def lock(self, name: str, owner: str, seconds: float) -> bool:
        now = self._clock.now()
        return bool(await self._script("lock", f"lock:{name}", owner, now, now + seconds, self._life(now + seconds)))

    async def unlock(self, name: str, owner: str) -> None:
        await self._script("unlock", f"lock:{name}", owner)

    async def reserve(self, claims: Sequence[ReservationRecord]) -> list[LedgerEntry | None]:
        wanted = [
            (id_, owner, parts, [(_text(line), limit) for line, limit in budgets], list(map(_text, lines)))
            for id_, owner, parts, budgets, lines in claims
        ]
        full = await self._script("reserve", "", orjson.dumps(wanted))
        return [claim.budgets[number - 1].line if number else None for claim, number in zip(claims, full, strict=True)]

    async def settle(self, settlement: Settlement) -> None:
        owner, sequence, claims, bookings = settlement
        wanted = claims, [(_text(line), used, doubtful) for line, used, doubtful in bookings]
        await self._script("settle", "", owner, sequence, MARKS_KEPT, orjson.dumps(wanted))

    def journal(self, owner: str) -> None:  # noqa: ARG002 - this machine's disk may not be there again
        return None

    async def adjust(self, line: LedgerEntry, used: int, doubtful: int) -> None:
        await self._script("adjust", "", _text(line), used, doubtful)

    async def alive(self, owner: str, seconds: float) -> None:
        now = self._clock.now()
        await self._script("alive", "", owner, now, now + seconds, MARKS_KEPT)

    async def check_writable(self) -> None:
        await _answer(self._redis.set(f"{PREFIX}writable", self._clock.now(), ex=_LATER))

    async def states(self, lines: Sequence[LedgerEntry]) -> list[EntryUsage]:
        async with self._redis.pipeline(transaction=True) as asked:
            for line in lines:
                asked.hmget(f"{PREFIX}line:{_text(line)}", ["used", "doubtful", "reserved"])
            found = await _answer(asked.execute())
        return [
            EntryUsage(line, *(int(count or 0) for count in counts)) for line, counts in zip(lines, found, strict=True)
        ]

    async def usage(self) -> list[EntryUsage]:
        names = await _answer(self._redis.smembers(f"{PREFIX}lines"))
        return await self.states(sorted(LedgerEntry(*name.rsplit(" ", 1)) for name in names))

    async def prune(self, days: int, months: int) -> None:
        await self._script("prune", "", DAY, days, MONTH, months)

    async def close_account(self, closure: ExhaustedQuota) -> None:
        await _answer(self._redis.hset(f"{PREFIX}closures", closure.account, orjson.dumps(closure[1:]).decode()))

    async def reopen(self, account: str) -> None:
        await _answer(self._redis.hdel(f"{PREFIX}closures", account))

    async def closures(self) -> list[ExhaustedQuota]:
        found = await _answer(self._redis.hgetall(f"{PREFIX}closures"))
        closures = [ExhaustedQuota(account, *orjson.loads(text)) for account, text in found.items()]
        return [closure for closure in closures if closure.until > self._clock.now()]

    async def put_note(self, kind: str, owner: str, text: str) -> None:
        await _answer(self._redis.hset(f"{PREFIX}notes:{kind}", owner, text))

    async def notes(self, kind: str) -> dict[str, str]:
        return dict(await _answer(self._redis.hgetall(f"{PREFIX}notes:{kind}")))

    async def drop_notes(self, kind: str) -> None:
        await _answer(self._redis.delete(f"{PREFIX}notes:{kind}"))

    async def aclose(self) -> None:
        await self._redis.aclose()

    async def _script(self, name: str, key: str, *values: Any) -> Any:
        return await _answer(self._scripts[name](keys=[PREFIX + key], args=values))

    def _life(self, until: float) -> int:
        """Whole seconds that Redis keeps what ends at a moment."""
        return max(0, math.ceil(until - self._clock.now())) + _LATER


def _text(line: LedgerEntry) -> str:
    """A line in a key: neither account nor period has a blank."""
    return f"{line.account} {line.period}"


async def _answer(asked: Awaitable[Any]) -> Any:
    """Redis' answer, or our error. The library's words may name an address, but never its password."""
    try:
        return await asked
    except (exceptions.RedisError, OSError) as error:
        raise errors.StoreUnavailable(f"the store (Redis) cannot be used: {type(error).__name__}") from error
