"""State that the service keeps in its store, as commands, checks and the status use it, whether it runs or not."""

import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, timedelta
from typing import Self

from proxy import config
from proxy.config import store_place
from proxy.gateway import quota, usage
from proxy.gateway.applications import Applications, Client
from proxy.gateway.usage import UsageRow
from proxy.kit.clock import Clock
from proxy.store import open as opening
from proxy.store import protocol
from proxy.store.protocol import CLIENT, FAILURE, UNKNOWN_KEY, Begin, Finish, Seen, Want
from proxy.store.store import Store

TRIES = 3  # transactions that are timed
RUN_SECONDS = 3600.0  # for which parts are reserved beside the pipeline


class StoredState:
    """State of the service of a configuration. Raises StoreUnavailable wherever the store cannot be used."""

    def __init__(self, store: Store, settings: config.Config, clock: Clock) -> None:
        self._store = store
        self._applications = Applications(settings.applications)
        self._clock = clock

    @classmethod
    async def open(cls, settings: config.Config, clock: Clock) -> Self:
        """Open the store, to be closed by the caller. Raises ConfigError."""
        worker, cache_bytes = secrets.token_hex(8), settings.cache.bytes
        store = await opening.open_store(settings.store, clock, worker=worker, cache_bytes=cache_bytes)
        return cls(store, settings, clock)

    @classmethod
    async def open_existing(cls, settings: config.Config, clock: Clock) -> Self | None:
        """Open the store if it is there already. Raises ConfigError."""
        file = store_place.file_of(settings.store)
        if settings.store.reveal() == "memory:" or (file is not None and not file.exists()):
            return None
        return await cls.open(settings, clock)

    async def aclose(self) -> None:
        await self._store.aclose()

    async def usage(self) -> list[UsageRow]:
        """Return the usage of each application and each of its API keys in its present period, in the order of the
        configuration."""
        now, applications = self._clock.now(), self._applications
        used = await usage.stored(self._store, applications.charged, now)
        accounts = [application.account for application in applications.by_name.values()]
        return usage.rows(applications, used, await quota.stored(self._store, accounts), now)

    async def parts_by_day(self, days: int) -> dict[str, dict[str, int]]:
        """Return the parts, used or uncertain, of each account such as `demo` or `demo/erp`, by day (UTC)."""
        first, rows = self.first_day(days).isoformat(), await self._store.usage()
        names = {each.id: each.name for each in self._applications.charged}
        found: dict[str, dict[str, int]] = {}
        for row in rows:
            if row.account in names and len(row.period) == len(first) and row.period >= first:
                found.setdefault(names[row.account], {})[row.period] = row.used + row.uncertain
        return found

    async def seconds(self) -> float:
        """Return how long the store takes for a transaction that writes: the fastest of some. Raises
        StoreUnavailable."""
        taken = []
        for _ in range(TRIES):
            began = time.monotonic()
            await self._store.put_value("tried", "", 1.0)
            taken.append(time.monotonic() - began)
        return min(taken)

    async def set_usage(self, name: str, parts: int) -> UsageRow:
        """Replace the usage of an application such as `demo`, or of one of its API keys such as `demo/erp`, in its
        present period; return that before. An application's requests are sent again. Raises LookupError for a name
        that there is not."""
        account = {each.name: each for each in self._applications.charged}[name]
        before = next(row for row in await self.usage() if row.name == name)
        await self._store.set_usage(account.in_period(self._clock.now()), parts)
        await quota.clear(self._store, account.id)
        return before

    async def forget_results(self) -> int:
        """Delete the results that are stored, and have running services forget those in memory; return how many
        parts."""
        return await self._store.forget()

    async def clients(self, days: int) -> list[Seen]:
        """Return who called in so many days (UTC), today among them, the last one first."""
        return await self._store.seen(CLIENT, (self.first_day(days) - date(1970, 1, 1)).days)

    def first_day(self, days: int) -> date:
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
            await self._store.finish([Finish(id, application, begin.features, (), accounts, used, lost)])
