"""State that the service keeps in its store, as commands, checks and the status use it, whether it runs or not."""

import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, timedelta
from typing import Self

from proxy import config
from proxy.config import store_place
from proxy.gateway import quota, usage
from proxy.gateway.applications import Applications, ChargedAccount, Client
from proxy.gateway.usage import UsageRow
from proxy.kit.clock import Clock
from proxy.store import open as opening
from proxy.store import protocol
from proxy.store.protocol import CLIENT, FAILURE, UNKNOWN_KEY, Begin, Finish, Refused, Seen, Want
from proxy.store.store import Store
from proxy.upstream import identity
from proxy.upstream.stored_tokens import StoredTokens

TRIES = 3  # transactions that are timed
RUN_SECONDS = 3600.0  # for which parts are reserved beside the pipeline

Book = Callable[[int, int], Awaitable[None]]
"""Books parts that were returned, and parts that may have been billed."""


class StoredState:
    """State of the service of a configuration. Raises StoreUnavailable wherever the store cannot be used."""

    def __init__(self, store: Store, settings: config.Config, clock: Clock) -> None:
        self._store = store
        self._settings = settings
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
        now = self._clock.now()
        used = await usage.stored(self._store, usage.charged(self._applications), now)
        accounts = [application.account for application in self._applications.by_name.values()]
        return usage.rows(self._applications, used, await quota.stored(self._store, accounts), now)

    async def parts_by_day(self, days: int) -> dict[str, dict[str, int]]:
        """Return the parts, used or uncertain, of each account such as `demo` or `demo/erp`, by day (UTC)."""
        first, rows = self.first_day(days).isoformat(), await self._store.usage()
        names = {each.id: each.name for each in usage.charged(self._applications)}
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
        account = self._account(name)
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
                last = keys.setdefault(row.key, row._replace(requests=0))
                keys[row.key] = last._replace(requests=last.requests + row.requests)
        return list(keys.values())

    async def failures(self) -> list[Seen]:
        """Return failures, the last one first."""
        return await self._store.seen(FAILURE, 0)

    async def token(self, application: str) -> tuple[str, float] | None:
        """Return the access token of an application and its expiry; None if there is none, or it has expired."""
        token = await self._tokens.token(self._credentials(application))
        return None if token is None else (token.token, token.expires)

    async def drop_token(self, application: str, token: str) -> None:
        """Delete an access token; a newer one stays."""
        await self._tokens.drop(self._credentials(application), token)

    @asynccontextmanager
    async def booked(self, application: str, parts: int) -> AsyncIterator[Book]:
        """Reserve what requests beside the pipeline may cost an application; yield the function that books what they
        cost. Where that is not called, they are booked as uncertain usage. Raises QuotaExhausted."""
        client = Client(self._applications.by_name[application], (self._account(application),))
        id, now = secrets.token_hex(16), self._clock.now()
        begin = Begin(id, application, 0, Want(id, parts), client.accounts(now), now, RUN_SECONDS)
        [outcome] = await self._store.begin([begin])
        if isinstance(outcome, Refused):
            raise client.exceeded(outcome, parts, now)
        if not isinstance(outcome, protocol.Reserved):
            raise outcome if isinstance(outcome, Exception) else RuntimeError(outcome)

        booked = False

        async def book(returned: int, uncertain: int) -> None:
            nonlocal booked
            accounts = client.accounts(self._clock.now())
            await self._store.finish([Finish(id, application, begin.features, (), accounts, returned, uncertain)])
            booked = True

        try:
            yield book
        finally:
            if not booked:
                await book(0, parts)

    def _account(self, name: str) -> ChargedAccount:
        """Return the account of an application or an API key. Raises LookupError."""
        return {each.name: each for each in usage.charged(self._applications)}[name]

    @property
    def _tokens(self) -> StoredTokens:
        upstream = self._settings.upstream
        assert upstream != "sandbox"  # noqa: S101 - the sandbox's tokens are not stored
        return StoredTokens(self._store, upstream.token_url, upstream.scope, self._clock)

    def _credentials(self, application: str) -> identity.Credentials:
        entry = self._settings.applications[application]
        return identity.Credentials(application, entry.client_id, entry.client_secret)
