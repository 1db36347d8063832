"""The store that commands use: that of the configuration, whether the service runs or not."""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from proxy import config, errors
from proxy.config import loader
from proxy.kit import clock, shipped

if TYPE_CHECKING:
    from proxy.gateway.core import StoredState


R = TypeVar("R")


def configured(file: Path | None) -> config.Config:
    """Load a configuration, the shipped one without a file. Raises ConfigError."""
    return loader.load(file or shipped.path("config.yaml"), os.environ, upstream=False)


def without_records(settings: config.Config) -> str | None:
    """Return why the store of a configuration has no records of the service; None if it may have some."""
    if settings.upstream == "sandbox":
        return "`upstream: sandbox` starts with no usage each time, and stores none: see `v3bridge status`."
    if settings.store.reveal() == "memory:":
        return "`store: memory:` is only in the memory of the running service: see `v3bridge status`."
    return None


async def with_state(
    settings: config.Config, work: "Callable[[StoredState], Awaitable[R]]", *, reads_only: bool = False
) -> R:
    """Return what `work` does with the stored state of a configuration. Raises ConfigError where it cannot be used."""
    from proxy.gateway.core import StoredState

    state = await StoredState.open(settings, clock.SystemClock(), reads_only=reads_only)
    try:
        return await work(state)
    except errors.StoreUnavailable as error:
        raise errors.ConfigError(f"store: {error.message}") from error
    finally:
        await state.aclose()
