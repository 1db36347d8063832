"""Service that a comparison starts on loopback.

It runs with the given configuration. The clients' keys are valid; each application has an additional key, for requests
without a key.
"""

import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from proxy import config
from proxy.cli import embedded

if TYPE_CHECKING:
    import nexar_sandbox

NAME = "v3bridge-compare"  # the additional key, where keys are counted


class LocalService(NamedTuple):
    """Running service. `keys` are one API key for each application; `legacy` is the URL of the sandbox's legacy
    service, if it runs."""

    url: str
    keys: Mapping[str, str]
    legacy: str | None


@asynccontextmanager
async def running(settings: config.Config) -> AsyncIterator[LocalService]:
    """Run the service."""
    from proxy import app

    async with AsyncExitStack() as stack:
        legacy = None
        if settings.upstream == "sandbox":
            settings, upstream = await embedded.with_sandbox(settings, stack, _sandbox())
            legacy = upstream.legacy_url
        local, keys = _made(settings)
        service = await stack.enter_async_context(app.serving(local))
        yield LocalService(service.url, keys, legacy)


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
    )
    return local, keys


def _sandbox() -> "nexar_sandbox.SandboxSettings":
    """Return settings of a sandbox with a practically unlimited quota, and an old service without a rate limit."""
    import dataclasses

    import nexar_sandbox

    return dataclasses.replace(
        embedded.endless_sandbox(), legacy=nexar_sandbox.LegacySettings(requests_per_second=None)
    )
