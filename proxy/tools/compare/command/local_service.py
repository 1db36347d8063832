"""Service that a comparison starts on loopback, so that responses of the GraphQL API can be recorded or replayed.

It runs with the given configuration, but without cache and coalescing, so that each response is computed for its own
request. The clients' keys are valid; each application has an additional key, for requests without a key and for
replays.
"""

import os
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from proxy import config
from proxy.cli import embedded
from proxy.config import loader
from proxy.kit import shipped
from proxy.upstream import replay

if TYPE_CHECKING:
    import nexar_sandbox

NAME = "v3bridge-compare"  # the additional key, where keys are counted
# The discard port: nothing listens there, so a request that is sent by mistake fails.
NOWHERE = config.UpstreamSettings("http://127.0.0.1:9/graphql", "http://127.0.0.1:9/connect/token")


class LocalService(NamedTuple):
    """Running service. `keys` are one API key for each application; `legacy` is the URL of the sandbox's legacy
    service, if it runs."""

    url: str
    settings: config.Config
    keys: Mapping[str, str]
    legacy: str | None

    def application(self, apikey: str | None) -> str | None:
        """Return the application of an API key; None for an unknown one."""
        if not apikey:
            return None
        digest = config.digest(apikey)
        names = (name for name, each in self.settings.applications.items() for key in each.apikeys if key.key == digest)
        return next(names, None)


def load_config(file: Path | None, *, replayed: bool) -> config.Config:
    """Load the configuration. For a replay nothing is sent upstream, so the variables of credentials need not be
    set."""
    environ: Mapping[str, str] = (
        _Whatever({name: value for name, value in os.environ.items() if value}) if replayed else os.environ
    )
    return loader.load(file or shipped.path("config.yaml"), environ)


@asynccontextmanager
async def running(
    settings: config.Config, upstream_recorder: replay.ResponseRecorder | None
) -> AsyncIterator[LocalService]:
    """Run the service, and record the responses of the GraphQL API or the sandbox if there is a recorder."""
    from proxy.workers import single_process

    async with AsyncExitStack() as stack:
        legacy = None
        if settings.upstream == "sandbox":
            settings, upstream = await embedded.with_sandbox(settings, stack, _sandbox())
            legacy = upstream.legacy_url
        local, keys = _made(settings)
        client = (
            None if upstream_recorder is None else partial(replay.RecordingGraphQLClient, recorder=upstream_recorder)
        )
        service = await stack.enter_async_context(single_process.running(local, client=client))
        yield LocalService(service.urls.public, local, keys, legacy)


@asynccontextmanager
async def replaying(settings: config.Config, player: replay.ResponseReplayer) -> AsyncIterator[LocalService]:
    """Run the service, which resolves requests from recorded responses only and uses no quota."""
    from proxy.workers import single_process

    local, keys = _made(settings)
    applications = {name: _unlimited(entry) for name, entry in local.applications.items()}
    site = NOWHERE if local.upstream == "sandbox" else local.upstream
    # A replay must not touch the ledger and the tokens of the real service.
    store = config.StoreUrl("memory:")
    local = msgspec.structs.replace(local, applications=applications, upstream=site, store=store)
    async with single_process.running(local, client=partial(replay.ReplayingGraphQLClient, replayer=player)) as service:
        yield LocalService(service.urls.public, local, keys, None)


def _made(settings: config.Config) -> tuple[config.Config, dict[str, str]]:
    """Return the configuration of the local service, and an additional key for each application."""
    keys = {name: secrets.token_hex(16) for name in settings.applications}
    applications = {
        name: msgspec.structs.replace(
            entry,
            rate=0,
            apikeys=(
                # Without a rate limit: the run has rate limits of its own.
                *(msgspec.structs.replace(key, rate=0) for key in entry.apikeys),
                config.ApiKeySettings(config.digest(keys[name]), NAME),
            ),
        )
        for name, entry in settings.applications.items()
    }
    local = msgspec.structs.replace(
        settings,
        applications=applications,
        # The run has received all of its responses when it ends, so there is nothing to wait for.
        listen=config.ListenSettings(port=0, stop_seconds=0.0),
        admin=False,
        # Each recorded response has to belong to one request.
        coalescing=config.CoalescingSettings(enabled=False),
        cache=config.CacheSettings(seconds=0.0),
    )
    return local, keys


def _unlimited(entry: config.ApplicationSettings) -> config.ApplicationSettings:
    apikeys = tuple(msgspec.structs.replace(key, parts="unlimited") for key in entry.apikeys)
    return msgspec.structs.replace(entry, parts="unlimited", reconcile=None, apikeys=apikeys)


def _sandbox() -> "nexar_sandbox.SandboxSettings":
    """Return settings of a sandbox with a practically unlimited quota, and an old service without a rate limit."""
    import dataclasses

    import nexar_sandbox

    return dataclasses.replace(
        embedded.endless_sandbox(), legacy=nexar_sandbox.LegacySettings(requests_per_second=None)
    )


class _Whatever(dict[str, str]):
    """Environment in which every variable is set: to a value that is valid for credentials and for a store."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> str:
        return "memory:"
