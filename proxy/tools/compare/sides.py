"""Both sides of a comparison, open: a running service, one that is started here, or a recording; and the API keys to
send."""

import dataclasses
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import NamedTuple, Protocol

import msgspec

from proxy import cli, config
from proxy.tools.compare.http_side import HttpSide, open_session
from proxy.tools.compare.options import SANDBOX
from proxy.traffic.recordings import Recording, SideResponse
from proxy.traffic.v3_request import SideName, V3Request

EXAMPLE_KEY = "EXAMPLE_KEY"  # the key that the embedded legacy service accepts
OWN_KEY = "v3bridge-compare"  # name of an application's additional key, where keys are counted


class Side(Protocol):
    """A service, or a recording of its responses."""

    async def fetch(self, request: V3Request) -> SideResponse:
        """Send a request and return its response; failures are responses, too."""


class Sides(NamedTuple):
    """Open sides; without a candidate, responses are only recorded. `free`: the requests cost nothing; `keys` are those
    that were made for the run."""

    baseline: Side
    candidate: Side | None
    free: bool = False
    keys: tuple[str, ...] = ()


@asynccontextmanager
async def open_sides(
    baseline: str | Recording,
    candidate: str | config.Config | None,
    key: Callable[[str, SideName], str | None],
    baseline_rate: float,
) -> AsyncIterator[Sides]:
    """Open both sides: a URL, a recording or `sandbox`, and a URL, a configuration to serve here, or None. `key`
    returns the API key of a client for a side."""
    async with AsyncExitStack() as stack:

        async def service(url: str, send: Callable[[str], str | None], rate: float = 0.0) -> HttpSide:
            return HttpSide(url, send, await stack.enter_async_context(open_session()), rate)

        new, legacy, free, own = None, None, False, dict[str, str]()
        if isinstance(candidate, str):
            new = await service(candidate, lambda client: key(client, "candidate"))
        elif candidate is not None:
            free = candidate.upstream == "sandbox"
            if free:
                import nexar_sandbox

                # Its old service is without a rate limit, and the quota of the other practically unlimited.
                unlimited = nexar_sandbox.LegacySettings(requests_per_second=None)
                settings = dataclasses.replace(cli.endless_sandbox(), legacy=unlimited)
                candidate, upstream = await cli.with_sandbox(candidate, stack, settings)
                legacy = upstream.legacy_url
            url, own = await _serve(candidate, stack)
            # With one application, its key serves clients that have none; with several, a guess may bill another.
            alone = next(iter(own.values())) if len(own) == 1 else None
            new = await service(url, lambda client: key(client, "candidate") or alone)
        old: Side
        if isinstance(baseline, Recording):
            old = baseline
        elif legacy is not None and baseline == SANDBOX:
            old = await service(legacy, lambda _: EXAMPLE_KEY)
        else:
            old = await service(baseline, lambda client: key(client, "baseline"), baseline_rate)
        yield Sides(old, new, free, tuple(own.values()))


async def _serve(settings: config.Config, stack: AsyncExitStack) -> tuple[str, dict[str, str]]:
    """Serve a configuration on loopback, until `stack` is closed; return its URL, and one additional API key for each
    application, for requests without a key."""
    from proxy import app

    keys = {name: secrets.token_hex(16) for name in settings.applications}
    applications = {
        name: msgspec.structs.replace(
            entry,
            rate=0,
            apikeys=(
                # Without a rate limit: the run has rate limits of its own.
                *(msgspec.structs.replace(key, rate=0) for key in entry.apikeys),
                config.ApiKeySettings(config.digest(keys[name]), OWN_KEY),
            ),
        )
        for name, entry in settings.applications.items()
    }
    local = msgspec.structs.replace(
        settings,
        applications=applications,
        listen=config.ListenSettings(port=0),
        admin=False,
    )
    service = await stack.enter_async_context(app.serving(local))
    return service.url, keys
