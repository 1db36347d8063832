"""Command line: its modules have the commands, from arguments to exit code. The only package that may start the
sandbox, which is embedded in a command, with the configuration derived for it.
"""

from contextlib import AsyncExitStack
from typing import Any

from msgspec.structs import replace

from proxy import config

SERVE = "V3BRIDGE_SERVE"  # variable with the options of `serve`, once they are read


async def with_sandbox(settings: config.Config, stack: AsyncExitStack, chosen: Any = None) -> tuple[config.Config, Any]:
    """Start a sandbox, with settings; return the configuration that is connected to it, and the sandbox."""
    import nexar_sandbox

    upstream = await stack.enter_async_context(nexar_sandbox.serve(chosen or nexar_sandbox.SandboxSettings()))
    return connected(settings, upstream.url), upstream


def connected(settings: config.Config, url: str) -> config.Config:
    """Return the configuration with the addresses of a sandbox, and its credentials where applications have none."""
    import nexar_sandbox

    account = nexar_sandbox.DEFAULT_APPLICATION
    own = config.ClientId(account.client_id), config.Secret(account.client_secret)
    applications = {
        name: replace(entry, client_id=entry.client_id or own[0], client_secret=entry.client_secret or own[1])
        for name, entry in settings.applications.items()
    }
    addresses = config.UpstreamSettings(graphql_url=f"{url}/graphql", token_url=f"{url}/connect/token")
    store = config.StoreUrl("memory:")  # the sandbox loses its state with each start: stored tokens would be invalid
    return replace(settings, upstream=addresses, applications=applications, store=store)
