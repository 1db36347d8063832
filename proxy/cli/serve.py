"""`v3bridge serve`: the service in worker processes, with `upstream: sandbox` beside the embedded sandbox."""

import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec
import typer

from proxy import __version__, config, errors, sockets
from proxy.cli import embedded, option_fields
from proxy.config import loader
from proxy.kit import shipped

if TYPE_CHECKING:
    from proxy import worker
    from proxy.telemetry import metrics

EXAMPLE_KEY = "EXAMPLE_KEY"
SANDBOX_HOST = "127.0.0.1"


def serve(
    config_file: option_fields.ConfigFile = None,
    host: Annotated[str | None, typer.Option(help="Listen here instead of listen.host.")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Listen here instead of listen.port; 0: a free one.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, max=256, help="Worker processes, instead of listen.workers.")
    ] = None,
    admin_port: option_fields.AdminPort = None,
) -> None:
    """Start the proxy and print a curl line that works, and the address of the status for operators."""
    file = config_file or shipped.path("config.yaml")
    given = (("host", host), ("port", port), ("workers", workers))
    options = {name: value for name, value in given if value is not None}
    manager, passed = os.environ.pop("NOTIFY_SOCKET", ""), sockets.take(os.environ)

    def read() -> config.Config:
        settings = option_fields.with_admin_port(loader.load(file, os.environ), admin_port)
        listen = msgspec.structs.replace(settings.listen, **options)
        settings = msgspec.structs.replace(settings, listen=listen)
        return sockets.apply(settings, passed)

    settings = read()
    start = _Start(config_file, file.absolute(), read, settings, passed, manager, *_open(settings, passed))
    with tempfile.TemporaryDirectory(prefix="v3bridge-", ignore_cleanup_errors=True) as folder:
        code = _run(start, Path(folder))
    raise typer.Exit(code)


class _Start(NamedTuple):
    """How the service is started. `config_file` is None for the shipped one, which is the `file` then; `read` reads it.
    `workers` are the sockets of each worker, `sandbox` those of the embedded sandbox, if there is one; `admin_failure`
    says why the operators' port cannot be opened: the service runs without it."""

    config_file: Path | None
    file: Path
    read: Callable[[], config.Config]
    settings: config.Config
    passed: sockets.PassedSockets
    manager: str
    workers: list[sockets.WorkerSockets]
    url: str
    admin_failure: str
    sandbox: sockets.WorkerSockets | None
    sandbox_url: str


def _open(
    settings: config.Config, passed: sockets.PassedSockets
) -> tuple[list[sockets.WorkerSockets], str, str, sockets.WorkerSockets | None, str]:
    """Open the ports, except those of the service manager. Raises ConfigError if the address is in use, or both ports
    are one."""
    listen, admin, failure = settings.listen, settings.admin, ""
    if admin and not passed.admin and admin.port and admin.port == listen.port:
        raise errors.ConfigError(
            f"port {admin.port} is that of the service: choose another with {sockets.OPERATORS_OPTIONS}"
        )
    if passed.http:
        public = sockets.give_out(passed.http, listen.workers)
    else:
        public = sockets.open_port(listen.host, listen.port, listen.workers)
    operators: list[sockets.Sockets] = [()] * listen.workers
    if passed.admin:
        operators = sockets.give_out(passed.admin, listen.workers)
    elif admin:
        try:
            operators = sockets.open_port(admin.host, admin.port, listen.workers, for_operators=True)
        except errors.ConfigError as error:
            failure = error.message
    workers = [sockets.WorkerSockets(*each) for each in zip(public, operators, strict=True)]
    url, sandbox, sandbox_url = _url(listen.host, public[0]), None, ""
    if settings.upstream == "sandbox":
        sandbox = sockets.WorkerSockets(*sockets.open_port(SANDBOX_HOST, 0))
        sandbox_url = _url(SANDBOX_HOST, sandbox.public)
    return workers, url, failure, sandbox, sandbox_url


def _run(start: _Start, folder: Path) -> int:
    """Run the service to its end; return the exit code. `folder` is shared by its processes."""
    import structlog

    from proxy import server, worker
    from proxy.telemetry import log, metrics

    logger, settings = structlog.get_logger(), start.settings
    log.configure(settings.log.level, settings.log.format, sys.stderr)
    if start.admin_failure:
        settings = msgspec.structs.replace(settings, admin=False)
        logger.warning("admin port unavailable", reason=start.admin_failure)
    for file in loader.exposed(start.file):
        logger.warning("exposed secrets found", file=str(file), remedy=f"chmod 600 {file}")
    places = [
        worker.Place(number, each, metrics=folder / f"{number}.json") for number, each in enumerate(start.workers, 1)
    ]
    run_worker = partial(_run_worker, os.getpid(), folder)
    children = [server.Child(place, run_worker) for place in places]
    if start.sandbox is not None:
        children.append(server.Child(worker.Place(0, start.sandbox), _run_sandbox))
    return server.Server(
        settings,
        children,
        read=start.read,
        resolve=partial(_resolved, start, folder),
        announce=partial(_announce, start, settings, metrics.Metrics(file=folder / "parent.json")),
    ).run()


def _resolved(start: _Start, folder: Path, settings: config.Config) -> config.Config:
    """Return the settings of the workers: with the addresses of the sandbox, and a store that they share."""
    if start.sandbox is not None:
        settings = embedded.connected(settings, start.sandbox_url)
    if settings.store.reveal() == "memory:" and len(start.workers) > 1:
        settings = msgspec.structs.replace(settings, store=config.StoreUrl(f"sqlite:{folder / 'state.sqlite'}"))
    return settings


def _run_worker(parent: int, folder: Path, place: "worker.Place", settings: config.Config, pipe: socket.socket) -> None:
    """Serve; then remove the folder where the parent has been killed, which does it otherwise."""
    from proxy import worker

    worker.run(place, settings, pipe)
    if os.getppid() != parent:
        shutil.rmtree(folder, ignore_errors=True)


def _run_sandbox(place: "worker.Place", _: config.Config, pipe: socket.socket) -> None:
    """Serve the sandbox until the pipe ends."""
    import nexar_sandbox
    from proxy import worker

    with nexar_sandbox.running(opened=place.opened.public[0]):
        pipe.sendall(worker.report())
        pipe.recv(1)


def _announce(start: _Start, settings: config.Config, measured: "metrics.Metrics", state: str) -> None:
    """Show the state of the service: to who started it, the service manager, and in the metrics."""
    if state == "started":
        _report_start(start, settings)
    elif state == "reloading":
        sockets.notify(start.manager, "RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")
    elif state == "stopping":
        sockets.notify(start.manager, "STOPPING=1", "STATUS=finishing requests")
    else:
        sockets.notify(start.manager, "READY=1", f"STATUS=serving at {start.url}; last reload: {state}")
        measured.configuration_reloads.labels(state).inc()
    if state in ("started", "reloaded", "failed"):
        measured.record_configuration(state != "failed")


def _url(host: str, opened: sockets.Sockets) -> str:
    return f"http://{sockets.shown(host, sockets.address(opened[0])[1])}"


def _report_start(start: _Start, settings: config.Config) -> None:
    """Print and log where the service listens, and tell the service manager that it is ready."""
    import structlog

    logger, upstream = structlog.get_logger(), settings.upstream
    url, admin_url = start.url, ""
    if settings.admin:
        admin_url = _url(settings.admin.host, start.workers[0].operators)
    # The example's key if it is configured; others may be known only by digest.
    keys = {key.key for entry in settings.applications.values() for key in entry.apikeys}
    apikey = EXAMPLE_KEY if config.digest(EXAMPLE_KEY) in keys else "YOUR_APIKEY"
    sandbox, query = " on the embedded sandbox" if start.sandbox else "", '[{"mpn":"SN74S74N"}]'
    typer.echo(f"v3bridge is listening at {url}/v3{sandbox}. Try it:\n")
    typer.echo(f"    curl -g '{url}/v3/parts/match?apikey={apikey}&pretty_print=true&queries={query}'\n")
    if admin_url:
        typer.echo(f"For operators: its state at {admin_url}/status, its metrics at {admin_url}/metrics.\n")
    for name, passed in zip((sockets.HTTP, sockets.ADMIN), start.passed, strict=True):
        for each in passed:
            logger.info("socket inherited", name=name, address=sockets.shown(*sockets.address(each)))
    logger.info(
        "service started",
        version=__version__,
        config="shipped" if start.config_file is None else str(start.file.resolve()),
        address=url,
        admin=admin_url or "off",
        workers=settings.listen.workers,
        upstream=upstream if upstream == "sandbox" else config.without_credentials(upstream.graphql_url),
        store="memory:" if start.sandbox else settings.store.shown,
    )
    if not sockets.notify(start.manager, "READY=1", f"STATUS=serving at {url}"):
        logger.warning("service manager unreachable")
