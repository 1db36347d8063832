"""What running services share and commands look at: their store, and in it what shadows have gathered, as a result."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from proxy import config, errors
from proxy.kit import clock, shipped
from proxy.stores.protocols import Store


def configured(file: Path | None) -> config.Config:
    """A configuration whose store others can look at. Raises ConfigError."""
    settings = config.load(file or shipped.path("config.yaml"), os.environ, upstream=False)
    if settings.upstream == "sandbox" or settings.store.reveal() == "memory:":
        raise errors.ConfigError(
            "store: is known to the running service alone (memory:, or upstream: sandbox); "
            "a shadow that is to be looked at or switched needs another"
        )
    return settings


@asynccontextmanager
async def store(settings: config.Config) -> AsyncIterator[Store]:
    """The store, while the block runs. Raises ConfigError where it cannot be used."""
    from proxy.stores import open as opening

    opened = await opening.open_store(settings.store, clock.SystemClock())
    try:
        yield opened
    except errors.StoreUnavailable as error:
        raise errors.ConfigError(f"store: {error.message}") from error
    finally:
        await opened.aclose()
