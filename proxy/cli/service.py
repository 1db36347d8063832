"""The service that `v3bridge serve` starts: workers, with `upstream: sandbox` beside the embedded sandbox. It imports
nothing that reads options (proxy/__main__.py)."""

import importlib
import importlib.util
import json
import os
import shutil
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import structlog
from msgspec.structs import replace

from proxy import __version__, app, cli, config, errors, kit, log, metrics, server
from proxy.config import loader
from proxy.kit import shipped
from proxy.web import ports

SANDBOX_HOST = "127.0.0.1"
SHEET_PAGE = "proxy.tools.sheet.page"  # of `listen.sheet`; nothing else of the service names a tool

logger = structlog.get_logger()


def run(folder: str, options: str) -> int:
    """Run the service with the options of `serve`, in JSON, and a folder of its own, until a signal stops it; return
    the exit code: 2 where the configuration has to be changed, 1 where another start may succeed."""
    parent = os.getpid()

    def run_worker(child: app.Child, resolved: config.Config) -> None:
        app.run(child, resolved)
        if os.getppid() != parent:  # which has been killed, and removes no folder
            shutil.rmtree(folder, ignore_errors=True)

    try:
        service = Service(Path(folder), **json.loads(options))
        for file in loader.exposed(service.file):
            logger.warning("exposed secrets found", file=str(file), remedy=f"chmod 600 {file}")
        mounts = [importlib.import_module(SHEET_PAGE).mount] if service.settings.listen.sheet else []
        children = [app.Child(number, each, run_worker, mounts) for number, each in enumerate(service.workers, 1)]
        if service.sandbox is not None:
            children.append(app.Child(0, service.sandbox, _run_sandbox))
        return server.Server(service.settings, children, service.read, service.resolved, service.announce).run()
    except errors.StartError as error:
        kit.print_mistake(error.message)
        return 2 if isinstance(error, errors.ConfigError) else 1


class Service:
    """Settings, ports and announcements of the service. `listen` are settings that replace those of the file; without
    `config_file` that is the shipped one. Its processes share `folder`. Raises ConfigError."""

    def __init__(self, folder: Path, config_file: str | None, listen: dict[str, Any], admin_port: int | None) -> None:
        self._folder, self._config_file, self._listen, self._admin_port = folder, config_file, listen, admin_port
        self.file = Path(config_file).absolute() if config_file else shipped("config.yaml")
        self._manager, self._passed = os.environ.pop("NOTIFY_SOCKET", ""), ports.take(os.environ)
        if self._passed:
            self._listen["host"], self._listen["port"], *_ = self._passed[0].getsockname()
        self.settings = self.read()
        log.configure(self.settings.log.level, self.settings.log.format, log.Output(sys.stderr))
        self.sandbox: ports.WorkerSockets | None = None
        self._sandbox_url = ""
        self.workers = self._open()
        self._url = _url(self.settings.listen.host, self.workers[0].public)
        self._metrics = metrics.Metrics()

    def read(self) -> config.Config:
        """Read the configuration. Raises ConfigError."""
        settings = loader.load(self.file, os.environ)
        admin = settings.admin
        if admin and self._admin_port is not None:
            admin = replace(admin, port=self._admin_port)
        return replace(settings, listen=replace(settings.listen, **self._listen), admin=admin)

    def _open(self) -> list[ports.WorkerSockets]:
        """Open the ports, but not the service manager's, and return those of each worker. Raises ConfigError."""
        listen, admin = self.settings.listen, self.settings.admin
        has_sandbox = self.settings.upstream == "sandbox"
        if has_sandbox and importlib.util.find_spec("nexar_sandbox") is None:
            raise errors.ConfigError(f"upstream: sandbox is not installed; {kit.install_line('sandbox')}")
        if admin and admin.port and admin.port == listen.port:
            other = f"choose another with {ports.OPERATORS_OPTIONS}"
            raise errors.ConfigError(f"port {admin.port} is that of the service: {other}")
        workers = listen.workers
        public = [self._passed] * workers if self._passed else ports.open_port(listen.host, listen.port, workers)
        operators: list[ports.Sockets] = [()] * workers
        if admin:
            try:
                operators = ports.open_port(admin.host, admin.port, workers, for_operators=True)
            except errors.ConfigError as error:  # the service runs without it
                logger.warning("admin port unavailable", reason=error.message)
                self.settings = replace(self.settings, admin=False)
        if has_sandbox:
            self.sandbox = ports.WorkerSockets(*ports.open_port(SANDBOX_HOST, 0))
            self._sandbox_url = _url(SANDBOX_HOST, self.sandbox.public)
        return [ports.WorkerSockets(*each) for each in zip(public, operators, strict=True)]

    def resolved(self, settings: config.Config) -> config.Config:
        """Return the settings of the workers: with the addresses of the sandbox, and a store that they share."""
        if self.sandbox is not None:
            settings = cli.connected(settings, self._sandbox_url)
        is_shared = len(self.workers) > 1 or settings.listen.sheet
        if settings.store.reveal() == "memory:" and is_shared:
            settings = replace(settings, store=config.StoreUrl(f"sqlite:{self._folder / 'state.sqlite'}"))
        return settings

    def announce(self, state: str) -> None:
        """Show the state of the service: to who started it, the service manager, and in the metrics."""
        if state == "started":
            self._report_start()
        elif state == "reloading":
            ports.notify(self._manager, "RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")
        elif state == "stopping":
            ports.notify(self._manager, "STOPPING=1", "STATUS=finishing requests")
        else:
            ports.notify(self._manager, "READY=1", f"STATUS=serving at {self._url}; last reload: {state}")
        if state in ("started", "reloaded", "failed"):
            self._metrics.last_reload_successful.set(float(state != "failed"))
            if state != "failed":
                self._metrics.last_reload_success.set(time.time())
            self._metrics.flush()

    def _report_start(self) -> None:
        """Print and log where the service listens, and tell the service manager that it is ready."""
        settings, url, query = self.settings, self._url, '[{"mpn":"SN74S74N"}]'
        admin_url = _url(settings.admin.host, self.workers[0].operators) if settings.admin else ""
        # The example's key if it is configured; others may be known only by digest.
        keys = {key.key for entry in settings.applications.values() for key in entry.apikeys}
        apikey = loader.EXAMPLE_KEY if config.digest(loader.EXAMPLE_KEY) in keys else "YOUR_APIKEY"
        lines = [
            f"v3bridge is listening at {url}/v3{' on the embedded sandbox' if self.sandbox else ''}. Try it:\n",
            f"    curl -g '{url}/v3/parts/match?apikey={apikey}&pretty_print=true&queries={query}'\n",
        ]
        if admin_url:
            lines.append(f"For operators: its state at {admin_url}/status, its metrics at {admin_url}/metrics.\n")
        print("\n".join(lines), flush=True)  # noqa: T201 - for who starts it
        for each in self._passed:
            logger.info("socket inherited", address=ports.shown(*each.getsockname()[:2]))
        logger.info(
            "service started",
            version=__version__,
            config="shipped" if self._config_file is None else str(self.file.resolve()),
            address=url,
            admin=admin_url or "off",
            workers=settings.listen.workers,
            upstream=getattr(settings.upstream, "graphql_url", "sandbox"),
            store="memory:" if self.sandbox else settings.store.shown,
        )
        if not ports.notify(self._manager, "READY=1", f"STATUS=serving at {url}"):
            logger.warning("service manager unreachable")


def _run_sandbox(child: app.Child, _: config.Config) -> None:
    import nexar_sandbox

    with nexar_sandbox.running(opened=child.opened.public[0]):
        child.pipe_of_child.send("")
        with suppress(EOFError, OSError):
            child.pipe_of_child.recv()


def _url(host: str, opened: ports.Sockets) -> str:
    return f"http://{ports.shown(host, opened[0].getsockname()[1])}"
