"""Quotas that the upstream refuses as exhausted: nothing more is sent for one until it is reset, by any process."""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec
import structlog

from proxy import errors
from proxy.gateway.applications import NEVER_SECONDS, Application, Client
from proxy.kit.clock import Clock
from proxy.store.store import Store
from proxy.upstream import classify

EXHAUSTED = "exhausted "  # how the keys of exhausted quotas begin; the account follows
RETRY_SECONDS = 900.0  # for which a refusal is taken on the 1st of a month, and of a tier without parts

log = structlog.get_logger()


class Exhausted(NamedTuple):
    """Refusal of the upstream: its message, and when its quota may have parts again, in seconds since 1970."""

    message: str
    until: float


_decode = msgspec.json.Decoder(Exhausted).decode


class ExhaustedQuotas:
    """Quotas that the upstream has refused, by the application's account."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._exhausted: dict[str, Exhausted] = {}
        self._unsaved: dict[str, Exhausted] = {}

    def error(self, application: Application) -> errors.QuotaExhausted | None:
        """Return the error of a request that would be refused."""
        exhausted = self._exhausted.get(application.account) if self._exhausted else None
        if exhausted is None or exhausted.until <= self._clock.now():
            return None
        wait = max(1, math.ceil(exhausted.until - self._clock.now()))
        has_no_parts = classify.part_limit(exhausted.message) == 0
        return errors.QuotaExhausted(exhausted.message, retry_after=None if has_no_parts else wait)

    async def mark(self, client: Client, error: errors.QuotaExhausted) -> None:
        """Keep a refusal, for all processes. Raises StoreUnavailable; then it is kept with the next refresh."""
        if self.error(client.application) is not None:
            return  # by several requests in flight
        now, account, limit = self._clock.now(), client.application.account, classify.part_limit(error.message)
        date = datetime.fromtimestamp(now, UTC)
        # No date resets a limit of 0, only a larger tier does. At what hour a month begins upstream is not documented:
        # a refusal on the 1st may be about the month before.
        if limit == 0 or (client.charged[0].period == "month" and date.day == 1):
            seconds = RETRY_SECONDS
        else:
            seconds = client.charged[0].reset_seconds(now) or NEVER_SECONDS
        self._exhausted[account] = self._unsaved[account] = Exhausted(error.message, now + seconds)
        until = datetime.fromtimestamp(now + seconds, UTC).isoformat()
        log.warning("quota exhausted", application=client.application.name, part_limit=limit, until=until)
        await self._save()

    async def refresh(self, accounts: Sequence[str]) -> None:
        """Learn what other processes have marked, and what was cleared. Raises StoreUnavailable."""
        await self._save()
        marked = await stored(self._store, accounts)
        for account in accounts:
            self._exhausted.pop(account, None)
        self._exhausted |= marked

    async def _save(self) -> None:
        for account, refused in list(self._unsaved.items()):
            text, seconds = msgspec.json.encode(refused).decode(), refused.until - self._clock.now()
            await self._store.put_value(f"{EXHAUSTED}{account}", text, seconds)
            del self._unsaved[account]


async def stored(store: Store, accounts: Sequence[str]) -> Mapping[str, Exhausted]:
    """Return the quotas of accounts that are marked as exhausted. Raises StoreUnavailable."""
    texts = await store.values([f"{EXHAUSTED}{account}" for account in accounts])
    return {account: _decode(text) for account, text in zip(accounts, texts, strict=True) if text is not None}


async def clear(store: Store, account: str) -> None:
    """Have requests of an account sent again. Raises StoreUnavailable."""
    await store.drop_value(f"{EXHAUSTED}{account}")
