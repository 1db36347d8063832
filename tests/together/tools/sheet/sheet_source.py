"""A source of parts for spreadsheets in front of a sandbox."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, aclosing
from pathlib import Path
from typing import Any

from support import running_proxy

import nexar_sandbox
from proxy import config, errors
from proxy.gateway.core import StoredState
from proxy.kit import clock
from proxy.tools.sheet.parts import PartQuery, PartResult
from proxy.tools.sheet.source import PartSource, open_source

NUMBERS = 1000  # of the parts SHEET00000, SHEET00001, …
FLIP_FLOP, DIODE, UNKNOWN = PartQuery("SN74S74N", "Texas Instruments"), PartQuery("1N4007"), PartQuery("NO-SUCH-PART-0")

Serve = Callable[..., AbstractAsyncContextManager[nexar_sandbox.Sandbox]]


def settings(sandbox: nexar_sandbox.Sandbox, file: Path | str, **changes: Any) -> config.Config:
    """A configuration with the sandbox as upstream and an SQLite store."""
    account = sandbox.default_application
    own = {"client_id": config.ClientId(account.client_id), "client_secret": config.Secret(account.client_secret)}
    changes = {"store": f"sqlite:{file}", **changes}
    changes["application"] = own | {"features": "all"} | changes.get("application", {})
    return running_proxy.settings(sandbox.graphql_url, sandbox.token_url, **changes)


def opened(
    sandbox: nexar_sandbox.Sandbox,
    file: Path | str,
    time: clock.Clock,
    changes: dict[str, Any] | None = None,
    **options: Any,
) -> AbstractAsyncContextManager[PartSource]:
    """`async with opened(...) as source`; `changes` are those of the configuration."""
    return open_source(settings(sandbox, file, **(changes or {})), time, **options)


async def fetched(source: PartSource, *queries: PartQuery, **options: Any) -> dict[PartQuery, PartResult]:
    async with aclosing(source.fetch(queries, **options)) as results:
        return {result.query: result async for result in results}


def numbers(count: int, first: int = 0) -> list[PartQuery]:
    return [PartQuery(f"SHEET{n:05}") for n in range(first, first + count)]


async def booked(sandbox: nexar_sandbox.Sandbox, file: Path, time: clock.Clock) -> int:
    """Parts of the application in the store, used, uncertain and reserved."""
    state = await StoredState.open(settings(sandbox, file), time)
    try:
        row = (await state.usage())[0]
    finally:
        await state.aclose()
    return row.used + row.uncertain + row.reserved


def inject(sandbox: nexar_sandbox.Sandbox, text: str) -> None:
    sandbox.faults.replace(nexar_sandbox.parse_faults(text))


async def collect(source: PartSource, *queries: PartQuery, **options: Any) -> Any:
    """Results until the run ends, and the error that ends it."""
    results: list[PartResult] = []
    try:
        async with aclosing(source.fetch(queries, **options)) as arriving:
            async for result in arriving:
                results.append(result)  # noqa: PERF401 - those before an error are wanted, too
    except errors.BridgeError as error:
        return results, error
    return results, None
