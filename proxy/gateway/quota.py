"""Usage and quotas of accounts: as a process knows them, and as the store has them, whether the service runs or not.

Nothing more is sent for a quota that the upstream refuses as exhausted until it is reset, by any process.
"""

import contextlib
import math
import secrets
from collections.abc import AsyncIterator, Collection, Iterable
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple, Self

import msgspec
import structlog
from prometheus_client.core import GaugeMetricFamily

from proxy import config, errors, model
from proxy.gateway.applications import NEVER_SECONDS, Application, Applications, ChargedAccount, Client, periods
from proxy.kit import rfc3339
from proxy.kit.clock import Clock
from proxy.store import open as opening
from proxy.store import protocol
from proxy.store.protocol import Account, Begin, Finish, Usage, Want
from proxy.store.store import Store
from proxy.upstream import classify

EXHAUSTED = "exhausted "  # how the keys of exhausted quotas begin; the account follows
RETRY_SECONDS = 900.0  # for which a refusal is taken on the 1st of a month, and of a tier without parts
NO_USAGE = Usage("", "")
RUN_SECONDS = 3600.0  # for which parts are reserved beside the pipeline
GAUGES = {
    "used": "Parts used in the period",
    "uncertain": "Parts that may have been billed",
    "reserved": "Parts reserved by requests in flight",
    "remaining": "Parts remaining of the limit",
}

log = structlog.get_logger()


class _Exhausted(NamedTuple):
    """Refusal of the upstream: its message, and when its quota may have parts again, in seconds since 1970."""

    message: str
    until: float


_decode = msgspec.json.Decoder(_Exhausted).decode


class UsageRow(msgspec.Struct, frozen=True):
    """Usage of one account in its period. Times are RFC 3339 in UTC.

    `key` is null in the application's own row, `limit`, `remaining` and `percent` where nothing is limited, `resets_at`
    for a lifetime, `exhausted_until` where upstream has not refused the quota as exhausted; `part_limit` is the limit
    that it named then, 0 for a tier without parts. `limit` is that of the configuration, or `part_limit` where that is
    lower.
    """

    application: str
    key: str | None
    period: str
    used: int
    uncertain: int
    reserved: int
    limit: int | None
    remaining: int | None
    percent: float | None
    resets_at: str | None
    exhausted_until: str | None
    part_limit: int | None

    @property
    def name(self) -> str:
        """Name of the account, such as `demo` or `demo/erp`."""
        return self.application if self.key is None else f"{self.application}/{self.key}"


class Quotas:
    """Usage and exhausted quotas of accounts in their present periods, as this process knows them: read from the store
    once a second, and exact for what the process itself books."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._usage: dict[tuple[str, str], Usage] = {}  # by account and period
        self._exhausted: dict[str, _Exhausted] = {}  # by the application's account

    async def refresh(self, charged: Collection[ChargedAccount]) -> None:
        """Read the usage of accounts, and which of their quotas other processes have marked as exhausted, or cleared.
        Raises StoreUnavailable."""
        accounts, day = [*{each.id for each in charged}], self._clock.now() // protocol.DAY_SECONDS
        found = await self._store.usage({periods((each,), day).own[0][:2] for each in charged})
        self._usage = {row[:2]: row for row in found}
        texts = await self._store.values([f"{EXHAUSTED}{account}" for account in accounts])
        for account, marked in zip(accounts, texts, strict=True):
            if marked is None:
                self._exhausted.pop(account, None)
            else:
                self._exhausted[account] = _decode(marked)

    def add(self, accounts: Iterable[Account], used: int, uncertain: int) -> None:
        """Add what was booked to the usage of accounts in the periods that their limits apply to."""
        for account, period, _ in accounts:
            old = self._usage.get((account, period), NO_USAGE)
            parts = old.used + used, old.uncertain + uncertain, old.reserved
            self._usage[account, period] = Usage(account, period, *parts)

    async def mark_exhausted(self, client: Client, error: errors.QuotaExhausted) -> None:
        """Keep a refusal, for all processes. Where the store is unavailable, the next one is kept."""
        if self.refusal(client.application) is not None:
            return  # by several requests in flight
        now, account, limit = self._clock.now(), client.application.account, classify.part_limit(error.message)
        reset = periods(client.charged, now // protocol.DAY_SECONDS).reset
        # No date resets a limit of 0, only a larger tier does. At what hour a month begins upstream is not documented:
        # a refusal on the 1st may be about the month before.
        if limit == 0 or (reset and datetime.fromtimestamp(now, UTC).day == 1):
            until = now + RETRY_SECONDS
        else:
            until = reset or now + NEVER_SECONDS
        self._exhausted[account] = refused = _Exhausted(error.message, until)
        shown = datetime.fromtimestamp(until, UTC).isoformat()
        log.warning("quota exhausted", application=client.application.name, part_limit=limit, until=shown)
        with contextlib.suppress(errors.StoreUnavailable):
            text = msgspec.json.encode(refused).decode()
            await self._store.put_value(f"{EXHAUSTED}{account}", text, until - now)

    def refusal(self, application: Application) -> errors.QuotaExhausted | None:
        """Return the error of a request that the upstream would refuse; None if it would not."""
        exhausted = self._exhausted.get(application.account) if self._exhausted else None
        if exhausted is None or exhausted.until <= self._clock.now():
            return None
        wait = max(1, math.ceil(exhausted.until - self._clock.now()))
        has_no_parts = classify.part_limit(exhausted.message) == 0
        return errors.QuotaExhausted(exhausted.message, retry_after=None if has_no_parts else wait)

    def status(self, client: Client) -> model.QuotaStatus:
        """Return the status of the limit with the least remaining, or of the application where nothing is limited."""
        now = self._clock.now()
        _, own, reset = periods(client.charged, now // protocol.DAY_SECONDS)
        limited = [each for each in own if each.limit is not None] or own[:1]
        counted = [(sum(self._usage.get(each[:2], NO_USAGE)[2:4]), each.limit) for each in limited]
        used, limit = min(counted, key=lambda row: (row[1] or 0) - row[0])
        return model.QuotaStatus(used, limit, None if reset is None else math.ceil(reset - now))

    def rows(self, charged: Iterable[ChargedAccount]) -> list[UsageRow]:
        """Make a row for each account."""
        rows, day = [], self._clock.now() // protocol.DAY_SECONDS
        for each in charged:
            _, [account], reset = periods((each,), day)
            usage, refused = self._usage.get(account[:2]) or Usage(*account[:2]), self._exhausted.get(each.id)
            part_limit = classify.part_limit(refused.message) if refused else None
            # What the upstream says holds for the running period: it knows its plan, and who else uses it.
            limit = min((limit for limit in (each.limit, part_limit) if limit is not None), default=None)
            counted = usage.used + usage.uncertain
            application, _, key = each.name.partition("/")
            remaining = None if limit is None else max(0, limit - counted)
            percent = round(100 * counted / limit, 1) if limit else None
            ends = None if reset is None else rfc3339(reset), refused and rfc3339(refused.until)
            rows.append(UsageRow(application, key or None, *usage[1:], limit, remaining, percent, *ends, part_limit))
        return rows

    def gauges(self, charged: Iterable[ChargedAccount]) -> list[GaugeMetricFamily]:
        """Return the metrics of accounts."""
        rows, gauges = self.rows(charged), []
        for name, text in GAUGES.items():
            gauges.append(GaugeMetricFamily(f"v3bridge_parts_{name}", text, labels=("quota_account",)))
            for row in rows:
                if (parts := getattr(row, name)) is not None:
                    gauges[-1].add_metric((row.name,), parts)
        return gauges


class StoredState:
    """State that the service keeps in its store, as commands, checks and the status use it. Raises StoreUnavailable
    wherever the store cannot be used."""

    def __init__(self, store: Store, applications: Applications, clock: Clock) -> None:
        self._store, self._applications, self._clock = store, applications, clock
        self.aclose = store.aclose

    @classmethod
    async def open(cls, settings: config.Config, clock: Clock) -> Self:
        """Open the store, to be closed by the caller. Raises ConfigError."""
        worker, cache_bytes = secrets.token_hex(8), settings.cache.bytes
        store = await opening.open_store(settings.store, clock, worker=worker, cache_bytes=cache_bytes)
        return cls(store, Applications(settings.applications), clock)

    async def usage(self) -> list[UsageRow]:
        """Return the usage of each application and each of its API keys in its present period, in the order of the
        configuration."""
        quotas, charged = Quotas(self._store, self._clock), self._applications.charged.values()
        await quotas.refresh(charged)
        return quotas.rows(charged)

    async def parts_by_day(self, days: int) -> dict[str, dict[str, int]]:
        """Return the parts, used or uncertain, of each account such as `demo` or `demo/erp`, by day (UTC)."""
        first = self.first_day(days)
        dates = [(first + timedelta(day)).isoformat() for day in range(days)]
        names = {each.id: each.name for each in self._applications.charged.values()}
        found: dict[str, dict[str, int]] = {}
        for row in await self._store.usage([(account, period) for account in names for period in dates]):
            found.setdefault(names[row.account], {})[row.period] = row.used + row.uncertain
        return found

    async def set_usage(self, name: str, parts: int) -> UsageRow:
        """Replace the usage of an application such as `demo`, or of one of its API keys such as `demo/erp`, in its
        present period; return that before. An application's requests are sent again. Raises LookupError for a name
        that there is not."""
        account = self._applications.charged[name]
        before = next(row for row in await self.usage() if row.name == name)
        await self._store.set_usage(periods((account,), self._clock.now() // protocol.DAY_SECONDS).own[0], parts)
        await self._store.put_value(f"{EXHAUSTED}{account.id}", "", 0.0)
        return before

    async def stored_parts(self, application: str | None = None) -> int:
        """Return how many parts are stored for an application, or for all."""
        return await self._store.parts(self._scopes(application))

    async def forget_results(self, application: str | None = None) -> int:
        """Delete the results of an application, or all, have running services forget those in memory, and return how
        many parts."""
        return await self._store.forget(self._scopes(application))

    def _scopes(self, application: str | None) -> str:
        return "" if application is None else self._applications.by_name[application].scopes

    async def clients(self) -> list[model.Seen]:
        """Return who called in the last CLIENT_DAYS, the last one first."""
        return await self._store.seen(protocol.CLIENT, (self.first_day() - date(1970, 1, 1)).days)

    def first_day(self, days: int = protocol.CLIENT_DAYS) -> date:
        """Return the first of so many days (UTC), today among them."""
        return datetime.fromtimestamp(self._clock.now(), UTC).date() - timedelta(days - 1)

    async def unknown_keys(self) -> list[model.Seen]:
        """Return API keys that programs send and no application has, the last one first, with the address and the
        User-Agent of their last request."""
        keys: dict[str, model.Seen] = {}
        for row in await self._store.seen(protocol.UNKNOWN_KEY, 0):
            last = keys.setdefault(row.key, row._replace(requests=0))
            keys[row.key] = last._replace(requests=last.requests + row.requests)
        return [row for key, row in keys.items() if key not in self._applications.clients]  # by now

    async def failures(self) -> list[model.Seen]:
        """Return failures, the last one first."""
        return await self._store.seen(protocol.FAILURE, 0)

    @contextlib.asynccontextmanager
    async def booked(self, application: str, parts: int) -> AsyncIterator[list[int]]:
        """Reserve what requests beside the pipeline may cost an application; yield the numbers of parts that were
        returned, and that may have been billed: all, unless the caller replaces them. They are booked at the end.
        Raises QuotaExhausted."""
        charged = self._applications.charged[application]
        client = Client(self._applications.by_name[application], (charged,))
        id, now = secrets.token_hex(16), self._clock.now()
        accounts = periods((charged,), now // protocol.DAY_SECONDS).every
        begin = Begin(id, application, 0, Want(id, parts), accounts, now, RUN_SECONDS)
        [outcome] = await self._store.begin([begin])
        if isinstance(outcome, protocol.Refused):
            raise client.exceeded(outcome, parts, now)
        if isinstance(outcome, errors.StoreUnavailable):
            raise outcome
        cost = [0, parts]
        try:
            yield cost
        finally:
            accounts = periods((charged,), self._clock.now() // protocol.DAY_SECONDS).every
            await self._store.finish([Finish(begin, 0, (), accounts, cost[0], cost[1])])
