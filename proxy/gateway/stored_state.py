"""State that the service keeps in its store, as commands, checks and the status page use it, whether it runs or not."""

import asyncio
import secrets
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Self

from proxy import config, errors
from proxy.config import store_place
from proxy.gateway.cache import clearing
from proxy.gateway.quota import accounts, reservations, usage
from proxy.gateway.quota.usage import UsageRow
from proxy.kit.clock import Clock
from proxy.store import open as opening
from proxy.store.protocol import CLIENT, FAILURE, UNKNOWN_KEY, Seen
from proxy.store.store import Store
from proxy.stores import open as core_opening
from proxy.stores import sqlite_schema, trial
from proxy.stores.protocols import Store as CoreStore
from proxy.telemetry import metrics
from proxy.upstream.auth import identity, token_requests, token_store

Book = Callable[[int, int], Awaitable[None]]
"""Books parts that were returned, and parts that may have been billed."""


class StoredState:
    """State of the service of a configuration. Raises StoreUnavailable wherever the store cannot be used."""

    def __init__(
        self, store: Store | errors.ConfigError, core: CoreStore, settings: config.Config, clock: Clock
    ) -> None:
        self._opened = store
        self._core = core
        self._settings = settings
        self._clock = clock

    @classmethod
    async def open(cls, settings: config.Config, clock: Clock, *, reads_only: bool = False) -> Self:
        """Open the store, to be closed by the caller; `reads_only`: also on a full disk. Raises ConfigError."""
        core = await core_opening.open_store(settings.store, clock, reads_only=reads_only)
        worker, cache_bytes = secrets.token_hex(8), settings.cache.shared_bytes
        store: Store | errors.ConfigError
        try:
            store = await opening.open_store(settings.store, clock, worker=worker, cache_bytes=cache_bytes)
        except errors.ConfigError as error:
            if not reads_only:
                await core.aclose()
                raise
            store = error
        return cls(store, core, settings, clock)

    @classmethod
    async def open_existing(cls, settings: config.Config, clock: Clock) -> Self | None:
        """Open the store if it is there already, in this version. Raises BridgeErrors."""
        file = store_place.file_of(settings.store)
        is_memory = settings.store.reveal() == "memory:"
        if is_memory or (file is not None and not await asyncio.to_thread(_is_current, file)):
            return None
        return await cls.open(settings, clock)

    async def aclose(self) -> None:
        if not isinstance(self._opened, errors.ConfigError):
            await self._opened.aclose()
        await self._core.aclose()

    @property
    def _store(self) -> Store:
        if isinstance(self._opened, errors.ConfigError):
            raise self._opened
        return self._opened

    async def usage(self, *, logins: bool = False) -> list[UsageRow]:
        """Return the usage of each application and each of its API keys in its current period, in the order of the
        configuration; with `logins` also that of workbooks' logins, which no configuration has."""
        now, applications = self._clock.now(), self._settings.applications
        exhausted = await self._core.exhausted_quotas()
        if logins:
            usages = await self._core.all_usage()
            names = (*(each.entry.account for each in usages), *(each.account for each in exhausted))
            found = {name: _login_settings() for name in sorted(names) if _is_login(name)}
            return usage.rows({**found, **applications}, usages, exhausted, now)
        periods = accounts.billing_periods(now)
        entries = [account.entry(periods) for account in accounts.all_accounts(applications)]
        return usage.rows(applications, await self._core.usage(entries), exhausted, now)

    @staticmethod
    def unused(settings: config.Config, clock: Clock) -> list[UsageRow]:
        """Return the same as `usage` of a store in which nothing is booked."""
        return usage.rows(settings.applications, [], [], clock.now())

    @staticmethod
    async def try_out(settings: config.Config, clock: Clock) -> trial.Trial | None:
        """Try the store out, as proxy/stores/trial.py does."""
        return await trial.try_out(settings.store, clock)

    async def set_usage(self, name: str, parts: int) -> UsageRow:
        """Replace the usage of an application in its current period; return that before. Raises LookupError for an
        application, or the login of a workbook, that there is not."""
        application = _login_settings() if _is_login(name) else self._settings.applications[name]
        now = self._clock.now()
        entry = accounts.application_account(name, application).entry(accounts.billing_periods(now))
        before = usage.rows({name: application}, await self._core.usage([entry]), [], now)[0]
        await self._core.set_usage(entry, parts)
        return before

    async def forget_results(self) -> int:
        """Delete the results that are stored, and have running services forget those in memory; return how many."""
        cache = core_opening.open_cache(self._settings.store, self._settings.cache.shared_bytes, 0.0, self._clock)
        if cache is None:
            return 0
        try:
            # First: a process whose memory is cleared would read its entries again.
            deleted = await cache.clear(None)
        finally:
            await cache.aclose()
        await clearing.note_clearing(self._core, None)
        return deleted

    async def clients(self, days: int) -> list[Seen]:
        """Return who called in so many days (UTC), today among them, the last one first."""
        return await self._store.seen(CLIENT, (self.first_day(days) - date(1970, 1, 1)).days)

    def first_day(self, days: int) -> date:
        """Return the first of so many days (UTC), today among them."""
        return datetime.fromtimestamp(self._clock.now(), UTC).date() - timedelta(days - 1)

    async def unknown_keys(self) -> list[Seen]:
        """Return API keys that programs send and no application has, the last one first, with the address and the
        User-Agent of their last request."""
        applications = self._settings.applications.values()
        known = {key.key.reveal() for application in applications for key in application.apikeys}
        keys: dict[str, Seen] = {}
        for row in await self._store.seen(UNKNOWN_KEY, 0):
            if row.key not in known:
                last = keys.setdefault(row.key, row._replace(requests=0))
                keys[row.key] = last._replace(requests=last.requests + row.requests)
        return list(keys.values())

    async def failures(self) -> list[Seen]:
        """Return failures, the last one first."""
        return await self._store.seen(FAILURE, 0)

    async def token(self, application: str) -> token_store.StoredToken | None:
        """Return the access token of an application and its expiry; None if there is none, or it has expired."""
        text = await self._store.value(self._keys(application).token)
        return token_store.stored_token(text, self._clock.now())

    async def keep_token(self, application: str, token: str, expires: float) -> None:
        """Store an access token, for all applications with the same client credentials."""
        kept = token_store.StoredToken(token, expires)
        await token_store.put_token(self._store, self._keys(application).token, kept, self._clock.now())

    async def drop_token(self, application: str, token: str) -> None:
        """Delete an access token; a newer one stays."""
        await token_store.drop_token(self._store, self._keys(application).token, token)

    async def take_token_request(self, application: str) -> float:
        """Count a token request within the limits of the identity service, and return 0.0; or count none, and return
        the seconds until it is allowed."""
        return await self._store.take(self._keys(application).windows, token_requests.RATE_LIMITS)

    @asynccontextmanager
    async def booked(self, application: str, key: str, parts: int) -> AsyncIterator[Book]:
        """Reserve what requests beside the pipeline may cost an application, in the name of a key; yield the function
        that books what they cost. Where that is not called, they are booked as uncertain usage. Raises
        QuotaExhausted."""
        entry = self._settings.applications[application]
        whole = accounts.application_account(application, entry)
        account = accounts.QuotaAccount(f"{application}/{key}", None, entry.period)
        charged = accounts.ChargedAccounts(whole, account)
        measured = metrics.Metrics(self._clock)
        quota = reservations.Quota(self._core, [charged], secrets.token_hex(8), self._clock, measured)
        try:
            await quota.start()
            reservation = await quota.reserve(charged, parts)

            async def book(returned: int, uncertain: int) -> None:
                await reservation.settle(returned)
                await quota.book(charged, 0, uncertain, "", None)

            try:
                yield book
            except BaseException as error:
                await reservation.release(error)
                raise
        finally:
            await quota.close()

    def _keys(self, application: str) -> token_store.StoreKeys:
        upstream, entry = self._settings.upstream, self._settings.applications[application]
        assert upstream != "sandbox"  # noqa: S101 - the sandbox's tokens are not stored
        credentials = identity.Credentials(application, entry.client_id, entry.client_secret)
        return token_store.keys(upstream.token_url, upstream.scope, credentials)


def _is_current(file: Path) -> bool:
    """Return whether a file can be used as it is: to open one of an earlier version would convert it, perhaps under a
    service that is running."""
    try:
        core = store_place.core_file(file)
        return file.exists() and core.exists() and sqlite_schema.try_out(core) == sqlite_schema.VERSION
    except (sqlite3.Error, OSError):
        return False


def _is_login(account: str) -> bool:
    """Return whether an application is that of a workbook's login, which no configuration has."""
    # An account with a slash is that of an API key.
    return account.startswith(f"{config.WORKBOOK_LOGIN}-") and "/" not in account


def _login_settings() -> config.ApplicationSettings:
    # No client has this API key: usage is counted by the names of application and key.
    key = config.ApiKeySettings(config.digest(config.WORKBOOK_LOGIN), name=config.WORKBOOK_LOGIN)
    return config.ApplicationSettings(apikeys=(key,))
