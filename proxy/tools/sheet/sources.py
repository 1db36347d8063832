"""Opens the source of parts of a configuration: its gateway, its application, and where its results are kept."""

import hashlib
import os
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import NamedTuple

import msgspec

from proxy import config, errors
from proxy.config import store_place
from proxy.gateway.old_core import Gateway
from proxy.kit import clock as clocks
from proxy.kit import shipped
from proxy.tools.sheet.gateway_source import GatewayPartSource
from proxy.tools.sheet.part_queries import PartView
from proxy.tools.sheet.parts import STALE_SECONDS

MEMORY_BYTES = 4_194_304  # of the cache in memory: each query is looked up once, the shared cache keeps the results
# A batch of 100 parts that is given up is paid for all the same; the service itself ends a request after 30 s.
FIRST_BYTE_SECONDS, TOTAL_SECONDS = 60.0, 120.0

NOT_CACHED = "cache: results are not kept (cache.seconds or cache.bytes is 0): a second run costs the same parts again"
NOT_SHARED = "cache: results are kept in memory only (cache.shared, store): a second run costs the same parts again"


class CacheLocation(NamedTuple):
    """Where results are kept, if not beside the store: with which store, and as those of which upstream."""

    store: config.StoreUrl
    upstream: str


class ApplicationLogin(NamedTuple):
    """Client credentials of a workbook's login, and what its user's plan does not include."""

    client_id: config.ClientId
    client_secret: config.Secret
    exclude_datasheets: bool = False
    exclude_lead_time: bool = False

    @property
    def features(self) -> tuple[config.Feature, ...]:
        """Plan features that the add-in's functions use, without the excluded ones."""
        excluded = {"DATASHEETS": self.exclude_datasheets, "LEAD_TIME": self.exclude_lead_time}
        return tuple(feature for feature in config.FEATURES if not excluded.get(feature, True))


@asynccontextmanager
async def open_source(
    settings: config.Config,
    clock: clocks.Clock,
    *,
    apikey: str | None = None,
    login: ApplicationLogin | None = None,
    refresh_login: bool = False,
    cache_location: CacheLocation | None = None,
) -> AsyncIterator[GatewayPartSource]:
    """Open a source of parts; `settings.upstream` holds addresses.

    The client is that of an API key, or of a login, or of the configuration's only application. `refresh_login`
    forgets its stored token. Nothing is sent upstream. Raises ConfigError and MappingError.
    """
    key, settings = client_settings(settings, apikey, login)
    notes = _notes(settings, cache_location)
    if cache_location is not None and (file := store_place.file_of(cache_location.store)) is not None:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    async with AsyncExitStack() as resources:
        gateway = await Gateway.open(for_one_user(settings), clock, resources, cache_location=cache_location)
        client = next(each for each in gateway.applications.all if (each.application.name, each.key) == key)
        if refresh_login:
            await _forget_token(gateway, client.application.name)
        site = "" if settings.upstream == "sandbox" else settings.upstream.site
        view = PartView(gateway.mappings, shipped.path("mappings"), site, client.application.features)
        source = GatewayPartSource(gateway, client, view, notes)
        resources.push_async_callback(source.close)
        yield source


def sandbox_cache(edition: str, environ: Mapping[str, str] = os.environ) -> CacheLocation:
    """Return where results of the embedded sandbox are kept between runs. Its address is another each time, but its
    parts are the same in one `edition`, and so is the default application that pays for them."""
    file = store_place.state_folder(environ) / "sheet" / "sandbox.sqlite"
    return CacheLocation(config.StoreUrl(f"sqlite:{file}"), f"the embedded sandbox, {edition}")


def client_settings(
    settings: config.Config, apikey: str | None, login: ApplicationLogin | None
) -> tuple[tuple[str, str], config.Config]:
    """Return the names of application and API key that are charged, and the settings with this application only."""
    if login is not None and apikey is None:
        return _with_login(settings, login)
    entries = [(name, key) for name, entry in settings.applications.items() for key in entry.clients]
    if apikey is not None:
        digest = config.digest(apikey)
        entries = [each for each in entries if settings.applications[each[0]].clients[each[1]].key == digest]
        if not entries:
            raise errors.ConfigError("the API key belongs to no application of the configuration")
    elif len(settings.applications) > 1:
        names = ", ".join(settings.applications)
        raise errors.ConfigError(f"several applications ({names}): say which one pays, by one of its API keys")
    name, key = entries[0]
    return (name, key), msgspec.structs.replace(settings, applications={name: settings.applications[name]})


def login_name(client_id: config.ClientId) -> str:
    """Return the name of a login's application: an exhausted one must not stop another login on the same store."""
    return f"{config.WORKBOOK_LOGIN}-{hashlib.sha256(client_id.encode()).hexdigest()[:8]}"


def _with_login(settings: config.Config, login: ApplicationLogin) -> tuple[tuple[str, str], config.Config]:
    """Return the same for a login: an unlimited application of its own, unless one with its credentials is configured,
    whose quota then applies."""
    own = config.ApplicationSettings(apikeys=(), client_id=login.client_id, client_secret=login.client_secret)
    name, entry = next(
        (
            (name, entry)
            for name, entry in settings.applications.items()
            if (entry.client_id, entry.client_secret) == (login.client_id, login.client_secret)
        ),
        (login_name(login.client_id), own),
    )
    # Nobody has this key: it is needed because usage is counted by application and key.
    key = config.ApiKeySettings(config.digest(secrets.token_hex()), name=config.WORKBOOK_LOGIN)
    entry = msgspec.structs.replace(entry, apikeys=(key,), features=login.features)
    return (name, config.WORKBOOK_LOGIN), msgspec.structs.replace(settings, applications={name: entry})


def for_one_user(settings: config.Config) -> config.Config:
    """Return the settings of a gateway that serves one patient user instead of many clients."""
    replace = msgspec.structs.replace
    cache, upstream = settings.cache, settings.upstream
    if upstream != "sandbox":
        limits = upstream.timeouts
        patient = replace(
            limits,
            first_byte_seconds=max(limits.first_byte_seconds, FIRST_BYTE_SECONDS),
            total_seconds=max(limits.total_seconds, TOTAL_SECONDS),
        )
        upstream = replace(upstream, timeouts=patient)
    if cache.enabled:
        cache = replace(cache, seconds=float(STALE_SECONDS), stale_seconds=0.0, bytes=min(cache.bytes, MEMORY_BYTES))
    return replace(
        settings,
        cache=cache,
        upstream=upstream,
        # A large batch takes longer than a request of a client: it must not be sent, and billed, a second time.
        coalescing=replace(settings.coalescing, stall_seconds=0.0),
    )


def _notes(settings: config.Config, location: CacheLocation | None) -> list[str]:
    """Return what the user should know about where results are kept."""
    if not settings.cache.enabled:
        return [NOT_CACHED]
    is_kept = location is not None or settings.store.reveal() != "memory:"
    return [] if settings.cache.shared and is_kept else [NOT_SHARED]


async def _forget_token(gateway: Gateway, application: str) -> None:
    if gateway.settings.upstream != "sandbox" and (stored := await gateway.state.token(application)) is not None:
        await gateway.state.drop_token(application, stored[0])
