"""The store that commands use: that of the running service, which only a restart changes, else the configured one."""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec
import typer

from proxy import config, errors
from proxy.config import loader, store_place
from proxy.kit import clock, shipped

if TYPE_CHECKING:
    from proxy.gateway.core import StoredState


R = TypeVar("R")


def configured(file: Path | None) -> config.Config:
    """Load a configuration, the shipped one without a file, with the store that is used. Raises ConfigError."""
    return service_settings(loader.load(file or shipped.path("config.yaml"), os.environ, upstream=False), file)


def without_records(settings: config.Config) -> str | None:
    """Return why the store of a configuration has no records of the service; None if it may have some."""
    if settings.upstream == "sandbox":
        return "`upstream: sandbox` starts with no usage each time, and stores none: see `v3bridge status`."
    if settings.store.reveal() == "memory:":
        return "`store: memory:` is only in the memory of the running service: see `v3bridge status`."
    return None


def service_settings(settings: config.Config, file: Path | None) -> config.Config:
    """Return the settings of a configuration file with the store of the service that runs with it. Says so on standard
    error where that is another one."""
    from proxy.workers import control

    if settings.upstream == "sandbox":  # nothing is stored
        return settings
    try:
        used = control.used_stores(file or shipped.path("config.yaml"))
    except errors.ConfigError as error:
        typer.echo(f"v3bridge: {error.message}; using the configured store {settings.store.shown}", err=True)
        return settings
    if not used or store_place.location(settings.store) in used:
        return settings
    typer.echo(
        f"v3bridge: using the store of the running service, {used[0].shown}; the configuration now names "
        f"{settings.store.shown}, which waits for a restart",
        err=True,
    )
    return msgspec.structs.replace(settings, store=used[0])


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
