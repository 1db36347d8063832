"""Sandbox embedded in a command, and the configuration derived for it."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from proxy import config, errors
from proxy.kit import extras, shipped

ENDLESS = 10**12  # parts

if TYPE_CHECKING:
    import nexar_sandbox


class SandboxAddresses(NamedTuple):
    """Where a sandbox listens, and the client credentials for applications that have none."""

    graphql_url: str
    token_url: str
    client_id: str
    client_secret: str


async def with_sandbox(
    settings: config.Config, stack: AsyncExitStack, chosen: "nexar_sandbox.SandboxSettings | None" = None
) -> "tuple[config.Config, nexar_sandbox.Sandbox]":
    """Start a sandbox; return the configuration with its addresses, and its default client credentials for
    applications that have none. Raises StartError if the extra sandbox is not installed."""
    upstream = await stack.enter_async_context(_serve(chosen))
    return connected(settings, _addresses(upstream)), upstream


@asynccontextmanager
async def serving(port: int) -> AsyncIterator[dict[str, str | int]]:
    """Serve a sandbox at a port while the block runs; yields its SandboxAddresses by name, and its port. Raises
    StartError if the extra sandbox is not installed."""
    async with _serve(port=port) as upstream:
        yield {**_addresses(upstream)._asdict(), "port": upstream.port}


def _serve(
    chosen: "nexar_sandbox.SandboxSettings | None" = None, port: int = 0
) -> "AbstractAsyncContextManager[nexar_sandbox.Sandbox]":
    try:
        from nexar_sandbox import SandboxSettings, serve
    except ModuleNotFoundError as error:
        raise errors.StartError(
            f"the sandbox needs {error.name}, which is not installed; {extras.install_line('sandbox')}\n"
            "to use a Nexar account instead: v3bridge init"
        ) from error
    return serve(chosen or SandboxSettings(), port=port)


def _addresses(upstream: "nexar_sandbox.Sandbox") -> SandboxAddresses:
    account = upstream.default_application
    return SandboxAddresses(upstream.graphql_url, upstream.token_url, account.client_id, account.client_secret)


def connected(settings: config.Config, sandbox: SandboxAddresses) -> config.Config:
    applications = {
        name: msgspec.structs.replace(
            entry,
            client_id=entry.client_id or config.ClientId(sandbox.client_id),
            client_secret=entry.client_secret or config.Secret(sandbox.client_secret),
        )
        for name, entry in settings.applications.items()
    }
    addresses = config.UpstreamSettings(graphql_url=sandbox.graphql_url, token_url=sandbox.token_url)
    store = config.StoreUrl("memory:")  # the sandbox loses its state with each start: stored tokens would be invalid
    return msgspec.structs.replace(settings, upstream=addresses, applications=applications, store=store)


def endless_sandbox(catalog: Path | None = None) -> "nexar_sandbox.SandboxSettings":
    """Return settings of a sandbox with a practically unlimited quota. `catalog` is a file of additional parts."""
    import dataclasses

    import nexar_sandbox

    plan = dataclasses.replace(nexar_sandbox.DEFAULT_APPLICATION, part_limit=ENDLESS)
    return nexar_sandbox.SandboxSettings(applications=(plan,), catalog=catalog)


def add_in_sample() -> Path:
    """Return the file of the parts of the add-in's official sample workbook, which the sandbox lacks otherwise."""
    import nexar_sandbox

    return nexar_sandbox.SHIPPED / "add_in_sample.jsonl"


def sandbox_edition() -> str:
    """Return what tells this sandbox's parts from those of another version: results of one are wrong in the other."""
    import nexar_sandbox

    return f"{nexar_sandbox.__version__} {shipped.digest(nexar_sandbox.SHIPPED.iterdir())[:16]}"
