"""State of the service as its store has it, whether the service runs or not: usage, results, and who calls."""

import secrets
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple, Self

from proxy import config, errors
from proxy.gateway.applications import SCOPE_DIGITS, Applications, Client, periods
from proxy.gateway.process import EXHAUSTED, Quotas, UsageRow
from proxy.kit.clock import Clock
from proxy.model import Seen
from proxy.store import open as opening
from proxy.store.protocol import CLIENT, CLIENT_DAYS, DAY_SECONDS, FAILURE, UNKNOWN_KEY, Begin, Finish, Refused, Want
from proxy.store.store import Store

RUN_SECONDS = 3600.0  # for which parts are reserved beside the pipeline


class SeenRecords(NamedTuple):
    """Who called since `first_day` (UTC); API keys that programs send and no application has, with the address and the
    User-Agent of their last request; failures. Of each, the last one comes first."""

    first_day: date
    clients: list[Seen]
    unknown_keys: list[Seen]
    failures: list[Seen]


@dataclass(frozen=True)
class StoredState:
    """What commands, checks and the status read and change in the store. Raises StoreUnavailable wherever it cannot be
    used."""

    store: Store
    applications: Applications
    clock: Clock

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: config.Config, clock: Clock) -> AsyncIterator[Self]:
        """Open the store while the block runs. Raises ConfigError."""
        worker, cache_bytes = secrets.token_hex(8), settings.cache.bytes
        store = await opening.open_store(settings.store, clock, worker=worker, cache_bytes=cache_bytes)
        async with aclosing(store):
            yield cls(store, Applications(settings.applications), clock)

    async def check(self) -> None:
        """Raise StoreUnavailable where it cannot be written, or lacks usage that Redis has lost."""
        await self.store.put_value("writable", "", 1.0)
        now, clients = self.clock.now(), [*self.applications.clients.values()]
        accounts = [(client.name, periods(client.charged, now // DAY_SECONDS).every) for client in clients]
        begins = [Begin("", "", 0, Want(name, 1), every, now, 0.0) for name, every in accounts]
        for client, outcome in zip(clients, await self.store.quote(begins), strict=True):
            if isinstance(outcome, errors.StoreUnavailable):
                raise errors.StoreUnavailable(f"{outcome} ({client.name})")

    async def usage(self) -> list[UsageRow]:
        """Return the usage of each application and each of its API keys in its present period, in the order of the
        configuration."""
        quotas, charged = Quotas(self.store, self.clock), self.applications.charged.values()
        await quotas.refresh(charged)
        return quotas.rows(charged)

    async def parts_by_day(self, days: int) -> dict[str, dict[str, int]]:
        """Return the parts, used or uncertain, of each account such as `demo` or `demo/erp`, by day (UTC)."""
        first = datetime.fromtimestamp(self.clock.now(), UTC).date() - timedelta(days - 1)
        dates = [(first + timedelta(day)).isoformat() for day in range(days)]
        names = {each.id: each.name for each in self.applications.charged.values()}
        found: dict[str, dict[str, int]] = {}
        for row in await self.store.usage([(account, period) for account in names for period in dates]):
            found.setdefault(names[row.account], {})[row.period] = row.used + row.uncertain
        return found

    async def set_usage(self, name: str, parts: int) -> UsageRow:
        """Replace the usage of an application such as `demo`, or of one of its API keys such as `demo/erp`, in its
        present period; return that before. An application's requests are sent again. Raises LookupError, with the
        names that there are."""
        if (account := self.applications.charged.get(name)) is None:
            raise LookupError(", ".join(self.applications.charged))
        before = next(row for row in await self.usage() if row.name == name)
        await self.store.set_usage(periods((account,), self.clock.now() // DAY_SECONDS).own[0], parts)
        await self.store.put_value(f"{EXHAUSTED}{account.id}", "", 0.0)
        return before

    async def forget_results(self, application: str | None = None, *, only_count: bool = False) -> int:
        """Delete the results of an application, or all, have running services forget those in memory, and return how
        many parts; or `only_count` them."""
        scopes = "" if application is None else self.applications.by_name[application].account[:SCOPE_DIGITS]
        return await (self.store.parts(scopes) if only_count else self.store.forget(scopes))

    async def seen(self) -> SeenRecords:
        """Return what is known of clients, of CLIENT_DAYS with today."""
        first_day = datetime.fromtimestamp(self.clock.now(), UTC).date() - timedelta(CLIENT_DAYS - 1)
        clients = await self.store.seen(CLIENT, (first_day - date(1970, 1, 1)).days)
        keys: dict[str, Seen] = {}
        for row in await self.store.seen(UNKNOWN_KEY, 0):
            last = keys.setdefault(row.key, row._replace(requests=0))
            keys[row.key] = last._replace(requests=last.requests + row.requests)
        unknown = [row for key, row in keys.items() if key not in self.applications.clients]  # by now
        return SeenRecords(first_day, clients, unknown, await self.store.seen(FAILURE, 0))

    @asynccontextmanager
    async def booked(self, application: str, parts: int) -> AsyncIterator[list[int]]:
        """Reserve what requests beside the pipeline may cost an application; yield the numbers of parts that were
        returned, and that may have been billed: all, unless the caller replaces them. They are booked at the end.
        Raises QuotaExhausted."""
        charged = self.applications.charged[application]
        client = Client(self.applications.by_name[application], (charged,))
        id, now = secrets.token_hex(16), self.clock.now()
        accounts = periods((charged,), now // DAY_SECONDS).every
        begin = Begin(id, application, 0, Want(id, parts), accounts, now, RUN_SECONDS)
        [outcome] = await self.store.begin([begin])
        if isinstance(outcome, Refused):
            raise client.exceeded(outcome, parts, now)
        if isinstance(outcome, errors.StoreUnavailable):
            raise outcome
        cost = [0, parts]
        try:
            yield cost
        finally:
            accounts = periods((charged,), self.clock.now() // DAY_SECONDS).every
            await self.store.finish([Finish(begin, 0, (), accounts, cost[0], cost[1])])
