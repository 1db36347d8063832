"""Opens the source of parts of a configuration: its gateway, and the client who is charged."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import NamedTuple

from msgspec.structs import replace

from proxy import config, errors
from proxy.gateway.core import Gateway
from proxy.kit import clock as clocks
from proxy.tools.sheet.gateway_source import GatewayPartSource

# 100 parts that are given up are paid for all the same; the service itself ends a request after 30 s.
TOTAL_SECONDS = 120.0

NOT_KEPT = "store: results are kept in memory only: a second run costs the same parts again"


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
) -> AsyncIterator[GatewayPartSource]:
    """Open a source of parts; `settings.upstream` holds addresses.

    The client is that of an API key, or of a login, or of the configuration's only application. `refresh_login`
    forgets its stored token. Nothing is sent upstream. Raises ConfigError and MappingError.
    """
    key, settings = _charged(settings, apikey, login)
    async with AsyncExitStack() as resources:
        gateway = await Gateway.open(_patient(settings), clock, resources)
        client = gateway.applications.clients[key]
        if refresh_login:
            await _forget_token(gateway, client.application.name)
        yield GatewayPartSource(gateway, client, [NOT_KEPT] if settings.store.reveal() == "memory:" else [])


def _charged(
    settings: config.Config, apikey: str | None, login: ApplicationLogin | None
) -> tuple[config.Digest, config.Config]:
    """Return the API key that is charged, and the settings with its application."""
    if apikey is not None:
        key = config.digest(apikey)
        if not any(key == each.key for entry in settings.applications.values() for each in entry.apikeys):
            raise errors.ConfigError("the API key belongs to no application of the configuration")
        return key, settings
    if login is not None:
        return _with_login(settings, login)
    if len(settings.applications) > 1:
        names = ", ".join(settings.applications)
        raise errors.ConfigError(f"several applications ({names}): say which one pays, by one of its API keys")
    [entry] = settings.applications.values()
    return entry.apikeys[0].key, settings


def _with_login(settings: config.Config, login: ApplicationLogin) -> tuple[config.Digest, config.Config]:
    """Return the same for a login: an unlimited application of its own, unless one with its credentials is configured,
    whose quota then applies."""
    own = config.ApplicationSettings(apikeys=(), client_id=login.client_id, client_secret=login.client_secret)
    name, entry = next(
        (
            (name, entry)
            for name, entry in settings.applications.items()
            if (entry.client_id, entry.client_secret) == (login.client_id, login.client_secret)
        ),
        (config.WORKBOOK_LOGIN, own),
    )
    # No client has this key, and no server runs: usage is counted by application and key.
    key = config.ApiKeySettings(config.digest(config.WORKBOOK_LOGIN), name=config.WORKBOOK_LOGIN)
    entry = replace(entry, apikeys=(key,), features=login.features)
    return key.key, replace(settings, applications={name: entry})


def _patient(settings: config.Config) -> config.Config:
    """Return the settings with the time limit of one patient user instead of many clients."""
    if settings.upstream == "sandbox":
        return settings
    seconds = max(settings.upstream.total_seconds, TOTAL_SECONDS)
    return replace(settings, upstream=replace(settings.upstream, total_seconds=seconds))


async def _forget_token(gateway: Gateway, application: str) -> None:
    if (stored := await gateway.state.token(application)) is not None:
        await gateway.state.drop_token(application, stored[0])
