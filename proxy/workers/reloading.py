"""Reload: reads the configuration again and replaces the running one as a whole, or leaves it as it is.

Beside a supervisor the configuration is checked and built by every worker before any of them serves with it, so that
all serve with the same one. What waits for a restart is named, and everything else applied, as in PostgreSQL.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

import structlog

from proxy import config, errors
from proxy.config import changes
from proxy.kit import daemon_thread, service_manager
from proxy.kit.clock import Clock
from proxy.workers.listening import ServiceUrls

READ_SECONDS = 10.0  # that reading the configuration, or the files that it names, may take

T = TypeVar("T")

log = structlog.get_logger()


class Reloadable(Protocol):
    """A running service: in this process, or in the workers of a supervisor."""

    urls: ServiceUrls

    async def prepare(self, settings: config.Config) -> None:
        """Build the service of a configuration beside the running one. Raises StartError for a mistake."""

    async def commit(self) -> None:
        """Serve with what is prepared."""

    async def drop(self) -> None:
        """Close what is prepared."""

    async def report(self, result: config.ReloadResult) -> None:
        """Count a reload, and keep its result in the metrics."""


class ConfigurationSource:
    """Where the configuration comes from. `read` reads `file` with the options of the command line, and raises
    ConfigError; `resolve` adds what the process knows, such as the addresses of its embedded sandbox."""

    def __init__(
        self,
        file: Path,
        read: Callable[[], config.Config],
        resolve: Callable[[config.Config], config.Config] | None = None,
    ) -> None:
        self.file = file
        self.read = read
        self.resolve = resolve or (lambda settings: settings)


class Reloader:
    """Reloads the configuration of a service, one reload at a time. `running` is the configuration as it was read;
    `apply` applies a configuration to this process, `manager` hears of the beginning and the end."""

    def __init__(
        self,
        source: ConfigurationSource,
        running: config.Config,
        service: Reloadable,
        *,
        apply: Callable[[config.Config], None],
        clock: Clock,
        manager: service_manager.ServiceManager = service_manager.NONE,
    ) -> None:
        self._source = source
        self._running = running
        self._contents = changes.contents(source.resolve(running))
        self._service = service
        self._apply_here = apply
        self._clock = clock
        self._manager = manager
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[config.ReloadResult]] = set()

    def start(self) -> None:
        """Reload in the background: a signal waits for nothing."""
        task = asyncio.create_task(self.reload(), name="reload")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def reload(self) -> config.ReloadResult:
        """Read, check and apply the configuration. Raises nothing: mistakes are in the result."""
        async with self._turn:
            self._manager.reloading()
            try:
                result = await self._reload()
            except errors.StartError as error:
                result = self._failed(error.message.splitlines())
            except Exception as error:  # a bug, or no memory: the running configuration is not touched by it
                log.error("internal error caught", exc_info=error)
                result = self._failed([f"internal error: {type(error).__name__}; see the log"])
            await self._service.report(result)
            self._manager.ready(f"serving at {self._service.urls.public}; last reload: {result.outcome}")
        if result.outcome == "failed":
            log.error("configuration reload failed", mistakes=list(result.mistakes))
        else:
            waiting = list(result.waiting_for_restart)
            log.info("configuration reloaded", changed=list(result.changed), waiting_for_restart=waiting)
        return result

    async def _reload(self) -> config.ReloadResult:
        wanted = await self._read(self._source.read)
        merged = changes.with_unchangeable(self._running, wanted)
        settings = self._source.resolve(merged)
        contents = await self._read(partial(changes.contents, settings))
        differences = changes.changed_settings(self._running, wanted)
        waiting = [name for name in differences if name in changes.NEEDS_RESTART]
        changed = [name for name in differences if name not in changes.NEEDS_RESTART]
        changed += changes.changed_files(self._contents, contents)
        if changed:
            await self._apply(settings)
        self._running, self._contents = merged, contents
        return config.ReloadResult("reloaded", self._clock.now(), tuple(changed), tuple(waiting))

    async def _read(self, read: Callable[[], T]) -> T:
        try:
            return await daemon_thread.call(read, READ_SECONDS)
        except TimeoutError:
            raise errors.ConfigError(
                f"{self._source.file}: it, or a file that it names, could not be read within {READ_SECONDS:g} seconds:"
                " use regular files on a file system that responds"
            ) from None

    async def _apply(self, settings: config.Config) -> None:
        try:
            await self._service.prepare(settings)
        except BaseException:
            await self._service.drop()
            raise
        self._apply_here(settings)
        await self._service.commit()

    def _failed(self, mistakes: list[str]) -> config.ReloadResult:
        return config.ReloadResult("failed", self._clock.now(), mistakes=tuple(mistakes))
