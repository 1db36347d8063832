"""State that the service keeps in its store, as commands, checks and the status use it, whether it runs or not."""

import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, timedelta
from typing import Self

import msgspec

from proxy import config
from proxy.gateway import quota
from proxy.gateway.applications import Applications, Client
from proxy.kit import wording
from proxy.kit.clock import Clock
from proxy.model import Seen
from proxy.store import open as opening
from proxy.store import protocol
from proxy.store.protocol import CLIENT, CLIENT_DAYS, FAILURE, UNKNOWN_KEY, Begin, Finish, Want
from proxy.store.store import Store
from proxy.upstream import classify

RUN_SECONDS = 3600.0  # for which parts are reserved beside the pipeline


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


class StoredState:
    """State of the service of a configuration. Raises StoreUnavailable wherever the store cannot be used."""

    def __init__(self, store: Store, settings: config.Config, clock: Clock) -> None:
        self._store = store
        self.aclose = store.aclose
        self._applications = Applications(settings.applications)
        self._clock = clock

    @classmethod
    async def open(cls, settings: config.Config, clock: Clock) -> Self:
        """Open the store, to be closed by the caller. Raises ConfigError."""
        worker, cache_bytes = secrets.token_hex(8), settings.cache.bytes
        store = await opening.open_store(settings.store, clock, worker=worker, cache_bytes=cache_bytes)
        return cls(store, settings, clock)

    async def usage(self) -> list[UsageRow]:
        """Return the usage of each application and each of its API keys in its present period, in the order of the
        configuration."""
        now, applications = self._clock.now(), self._applications
        used = await quota.stored_usage(self._store, applications.charged, now)
        accounts = [application.account for application in applications.by_name.values()]
        return rows(applications, used, await quota.stored_exhausted(self._store, accounts), now)

    async def parts_by_day(self, days: int) -> dict[str, dict[str, int]]:
        """Return the parts, used or uncertain, of each account such as `demo` or `demo/erp`, by day (UTC)."""
        first = self.first_day(days)
        periods = [(first + timedelta(day)).isoformat() for day in range(days)]
        names = {each.id: each.name for each in self._applications.charged}
        found: dict[str, dict[str, int]] = {}
        for row in await self._store.usage([(account, period) for account in names for period in periods]):
            found.setdefault(names[row.account], {})[row.period] = row.used + row.uncertain
        return found

    async def set_usage(self, name: str, parts: int) -> UsageRow:
        """Replace the usage of an application such as `demo`, or of one of its API keys such as `demo/erp`, in its
        present period; return that before. An application's requests are sent again. Raises LookupError for a name
        that there is not."""
        account = {each.name: each for each in self._applications.charged}[name]
        before = next(row for row in await self.usage() if row.name == name)
        await self._store.set_usage(account.in_period(self._clock.now()), parts)
        await self._store.drop_value(f"{quota.EXHAUSTED}{account.id}")
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

    async def clients(self) -> list[Seen]:
        """Return who called in the last CLIENT_DAYS, the last one first."""
        return await self._store.seen(CLIENT, (self.first_day() - date(1970, 1, 1)).days)

    def first_day(self, days: int = CLIENT_DAYS) -> date:
        """Return the first of so many days (UTC), today among them."""
        return datetime.fromtimestamp(self._clock.now(), UTC).date() - timedelta(days - 1)

    async def unknown_keys(self) -> list[Seen]:
        """Return API keys that programs send and no application has, the last one first, with the address and the
        User-Agent of their last request."""
        known = {key.reveal() for key in self._applications.clients}
        keys: dict[str, Seen] = {}
        for row in await self._store.seen(UNKNOWN_KEY, 0):
            if row.key not in known:
                last = keys.get(row.key)
                keys[row.key] = last._replace(requests=last.requests + row.requests) if last else row
        return [*keys.values()]

    async def failures(self) -> list[Seen]:
        """Return failures, the last one first."""
        return await self._store.seen(FAILURE, 0)

    @asynccontextmanager
    async def booked(self, application: str, parts: int) -> AsyncIterator[Callable[[int, int], None]]:
        """Reserve what requests beside the pipeline may cost an application; yield the function that takes the parts
        that were returned, and those that may have been billed. They are booked at the end, and uncertain where it was
        not called. Raises QuotaExhausted."""
        charged = next(each for each in self._applications.charged if each.name == application)
        client = Client(self._applications.by_name[application], (charged,))
        id, now = secrets.token_hex(16), self._clock.now()
        begin = Begin(id, application, 0, Want(id, parts), client.accounts(now), now, RUN_SECONDS)
        [outcome] = await self._store.begin([begin])
        if isinstance(outcome, protocol.Refused):
            raise client.exceeded(outcome, parts, now)
        if not isinstance(outcome, protocol.Reserved):
            raise outcome if isinstance(outcome, Exception) else RuntimeError(outcome)
        used, lost = 0, parts

        def book(returned: int, uncertain: int) -> None:
            nonlocal used, lost
            used, lost = returned, uncertain

        try:
            yield book
        finally:
            accounts = client.accounts(self._clock.now())
            await self._store.finish([Finish(begin, 0, (), accounts, used, lost)])


def rows(
    applications: Applications, usages: quota.Usages, exhausted: Mapping[str, quota.Exhausted], now: float
) -> list[UsageRow]:
    """Make a row for each application and one for each of its API keys, in the order of the configuration."""
    made: dict[tuple[str, str | None], UsageRow] = {}
    for client in applications.clients.values():
        for charged, key in zip(client.charged, (None, client.key), strict=True):
            usage, refusal = quota.usage_of(usages, charged, now), exhausted.get(charged.id) if key is None else None
            part_limit = classify.part_limit(refusal.message) if refusal else None
            # What the upstream says holds for the running period: it knows its plan, and who else uses it.
            limit = min((each for each in (charged.limit, part_limit) if each is not None), default=None)
            counted, reset = usage.used + usage.uncertain, charged.reset_seconds(now)
            made[client.application.name, key] = UsageRow(
                client.application.name,
                key,
                *usage[1:],
                limit,
                remaining=None if limit is None else max(0, limit - counted),
                percent=None if not limit else round(100 * counted / limit, 1),
                resets_at=None if reset is None else wording.rfc3339(now + reset),
                exhausted_until=None if refusal is None else wording.rfc3339(refusal.until),
                part_limit=part_limit,
            )
    return [*made.values()]
