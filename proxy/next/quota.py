"""Quota: who is charged for a request, in which periods, and what is said where parts do not fit.

An account is the digest of a client id or of an API key; names are labels. Usage is counted by day, by month and for
the lifetime, in UTC as upstream, whatever the limit applies to: a changed `period` finds past usage. Where the upstream
refuses a quota as exhausted, nothing more is sent for it until it is reset; the store tells the other processes.
"""

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, NamedTuple

import msgspec
import structlog

from proxy import errors
from proxy.kit.clock import Clock
from proxy.kit.wording import counted
from proxy.store import protocol
from proxy.store.store import Store
from proxy.upstream import classify
from proxy.upstream.auth.identity import Credentials

EXHAUSTED = "exhausted "  # how the keys of exhausted quotas begin; the account follows
NEVER_SECONDS = 86_400.0  # for which a quota that is never reset is taken as exhausted, and its Retry-After
RETRY_SECONDS = 900.0  # for which a refusal is taken on the 1st of a month, and of a tier without parts

log = structlog.get_logger()


class ChargedAccount(NamedTuple):
    """Account that a request is charged to: its digest, its name, the most parts in a period (None: unlimited), and
    that period. `part_of` says of what it is a fraction, such as `its share of 20 % of demo`."""

    id: str
    name: str
    limit: int | None = None
    period: Literal["month", "lifetime"] = "month"
    part_of: str = ""


@dataclass(frozen=True, slots=True)
class Application:
    """Nexar application: its credentials, its market, and the features of its tier; None where they are not known.
    `account` is the digest of the client id, or of the name where there is none."""

    credentials: Credentials
    country: str
    currency: str
    features: frozenset[str] | None = None
    account: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "account", digest(self.credentials.client_id or self.credentials.name))


@dataclass(frozen=True, slots=True)
class Client:
    """Client of the service: its application, and the accounts of application and API key."""

    application: Application
    charged: tuple[ChargedAccount, ...]

    def accounts(self, now: float) -> tuple[protocol.Account, ...]:
        """Return the accounts in the periods of a moment, in seconds since 1970."""
        day = datetime.fromtimestamp(now, UTC).date().isoformat()
        return tuple(
            protocol.Account(each.id, period, each.limit if name == each.period else None)
            for each in self.charged
            for name, period in (("day", day), ("month", day[:7]), ("lifetime", protocol.LIFETIME))
        )

    def refusal(self, refused: protocol.Refused, parts: int, now: float) -> errors.QuotaExhausted:
        """Return the error of a query that may cost so many parts and does not fit the limit of an account."""
        account, left = refused
        charged = next(each for each in self.charged if each.id == account.account)
        text = f"{charged.name} has {left:,} of {counted(account.limit or 0, 'part')} left"
        text += f", {charged.part_of}" if charged.part_of else ""
        if charged.period == "lifetime":
            end, seconds = "it is never reset", int(NEVER_SECONDS)
        else:
            seconds = errors.seconds_to_next_month(now)
            end = f"it is reset on {datetime.fromtimestamp(now + seconds, UTC).date().isoformat()}"
        message = f"{text} ({account.period}), and this request may cost {parts}; {end}"
        return errors.QuotaExhausted(message, retry_after=seconds)


class _Exhausted(NamedTuple):
    """Refusal of the upstream: its message, and when its quota may have parts again, in seconds since 1970."""

    message: str
    until: float


class ExhaustedQuotas:
    """Quotas that the upstream has refused, by the application's account."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._exhausted: dict[str, _Exhausted] = {}

    def error(self, application: Application) -> errors.QuotaExhausted | None:
        """Return the error of a request that would be refused."""
        exhausted = self._exhausted.get(application.account) if self._exhausted else None
        if exhausted is None or exhausted.until <= self._clock.now():
            return None
        wait = max(1, math.ceil(exhausted.until - self._clock.now()))
        return errors.QuotaExhausted(
            exhausted.message, retry_after=None if classify.part_limit(exhausted.message) == 0 else wait
        )

    async def mark(self, client: Client, error: errors.QuotaExhausted) -> None:
        """Keep a refusal, for all processes. Raises StoreUnavailable; then it is known to this process only."""
        if self.error(client.application) is not None:
            return  # by several requests in flight
        now, account = self._clock.now(), client.application.account
        seconds = self._seconds(client, error, now)
        self._exhausted[account] = refused = _Exhausted(error.message, now + seconds)
        log.warning("quota exhausted", application=client.application.credentials.name, seconds=round(seconds))
        await self._store.put_value(f"{EXHAUSTED}{account}", msgspec.json.encode(refused).decode(), seconds)

    async def refresh(self, applications: Iterable[Application]) -> None:
        """Learn what other processes have marked, and what was cleared. Raises StoreUnavailable."""
        for account in {application.account for application in applications}:
            text = await self._store.value(f"{EXHAUSTED}{account}")
            if text is None:
                self._exhausted.pop(account, None)
            else:
                self._exhausted[account] = msgspec.json.decode(text, type=_Exhausted)

    @staticmethod
    def _seconds(client: Client, error: errors.QuotaExhausted, now: float) -> float:
        # No date resets a limit of 0, only a larger tier does. At what hour a month begins upstream is not documented:
        # a refusal on the 1st may be about the month before.
        if classify.part_limit(error.message) == 0:
            return RETRY_SECONDS
        if any(each.period == "lifetime" for each in client.charged[:1]):
            return NEVER_SECONDS
        return RETRY_SECONDS if datetime.fromtimestamp(now, UTC).day == 1 else errors.seconds_to_next_month(now)


def digest(text: str) -> str:
    """Return the digest of a client id or an API key."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
