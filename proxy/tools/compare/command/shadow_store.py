"""Access of commands to the store of running services: results of shadowing, and the report of `compare --shadow`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from proxy import config, errors
from proxy.cli import used_store
from proxy.kit import clock
from proxy.stores.protocols import Store
from proxy.tools.compare.command import checks, options
from proxy.tools.compare.judging.settings import ComparisonSettings
from proxy.tools.compare.results import ComparisonResult
from proxy.tools.compare.shadow import report


def configured(file: Path | None) -> config.Config:
    """Load a configuration whose store other processes can open. Raises ConfigError."""
    settings = used_store.configured(file)
    if settings.upstream == "sandbox" or settings.store.reveal() == "memory:":
        raise errors.ConfigError(
            "store: is known to the running service alone (memory:, or upstream: sandbox); "
            "the shadow commands need a shared one"
        )
    return settings


@asynccontextmanager
async def open_store(settings: config.Config) -> AsyncIterator[Store]:
    """Open the store while the block runs. Raises ConfigError if it is unavailable."""
    from proxy.stores import open as opening

    opened = await opening.open_store(settings.store, clock.SystemClock())
    try:
        yield opened
    except errors.StoreUnavailable as error:
        raise errors.ConfigError(f"store: {error.message}") from error
    finally:
        await opened.aclose()


def rules_file(chosen: options.ComparisonOptions, service: config.Config) -> Path | None:
    """Return the file of rules: the chosen one, else that of the shadow settings."""
    return chosen.rules or (None if service.shadow.rules is None else Path(service.shadow.rules))


async def result(
    settings: ComparisonSettings, service: config.Config, chosen: options.ComparisonOptions
) -> ComparisonResult:
    """Return the result of all comparisons in the store. Raises ConfigError if there are none."""
    async with open_store(service) as store:
        read = await report.read(
            store,
            service,
            settings,
            clock.SystemClock(),
            budget=chosen.budget,
            ignored_counts=checks.ignored_counts(chosen),
        )
    if read is None:
        raise errors.ConfigError("there are no results yet: no request has been compared with this store")
    return read
