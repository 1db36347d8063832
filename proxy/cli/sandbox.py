"""`v3bridge sandbox`: runs the simulated upstream by itself, for clients of the GraphQL API."""

import dataclasses
import os
import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from proxy import errors
from proxy.cli import embedded, shown
from proxy.kit import event_loop
from proxy.tools.conform import command as conform
from proxy.workers import listening

if TYPE_CHECKING:
    from nexar_sandbox import app, settings
    from nexar_sandbox import behavior as behaviors

DESIGN_PORTS = 4
# Below this number of parts, starting processes takes longer than it saves.
_WORTH_PROCESSES = 50_000

Faults = Annotated[
    list[str] | None,
    typer.Option(metavar="TEXT", help='A fault: "5xx share=0.05 status=503"; see docs/reference/sandbox.md.'),
]
Observed = Annotated[
    Path | None,
    typer.Option("--as", metavar="FILE", help="Behave as observed: a result of `v3bridge conform --json`."),
]


def sandbox(
    *,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0: a free port, printed.")] = 8081,
    design_port: Annotated[
        int,
        typer.Option(min=0, max=65532, help="First of the four ports of the design services; 0: free ports."),
    ] = 0,
    parts: Annotated[int | None, typer.Option(min=1, help="Number of parts; missing ones are generated.")] = None,
    catalog: Annotated[Path | None, typer.Option(help="JSON Lines file with additional parts.")] = None,
    prepared: Annotated[
        Path | None,
        typer.Option(help="File with the prepared catalog; created if missing."),
    ] = None,
    part_limit: Annotated[
        int | None, typer.Option(min=0, help="Monthly part limit of the first application; 1000 if omitted.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of offers, prices and faults.")] = 1,
    fault: Faults = None,
    legacy_rate: Annotated[
        int,
        typer.Option(min=0, help="Rate limit of the legacy v3 service per API key, in requests per second; 0: none."),
    ] = 3,
    state: Annotated[
        Path | None,
        typer.Option(help="File that persists users, applications, part usage and changes; in memory if omitted."),
    ] = None,
    admin_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Additional host name for /admin.")
    ] = None,
    disturb: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help='Disturbance of the legacy v3 service, such as "price-drift share=0.5".'),
    ] = None,
    deviation: embedded.Deviations = None,
    observed: Observed = None,
    no_auth: Annotated[bool, typer.Option("--no-auth", help="Accept GraphQL requests without a token.")] = False,
) -> None:
    """Start the sandbox; print its URLs, a user and client credentials."""
    _check_ports(port, design_port)
    with _mistakes(host, port):
        settings = _settings(
            parts=parts,
            catalog=catalog,
            prepared=prepared,
            part_limit=part_limit,
            seed=seed,
            design_port=design_port,
            faults=fault or [],
            rate=legacy_rate or None,
            disturbances=disturb or [],
            behavior=_behavior(observed, deviation or []),
            state=state,
            no_auth=no_auth,
            admin_hosts=[host, *(admin_host or [])],
        )
        _check(settings, host, port)
    if prepared is not None:
        _prepare_catalog(prepared, parts, catalog, seed)
    event_loop.run(_sandbox(host, port, settings))


def _check_ports(port: int, design_port: int) -> None:
    if port and design_port <= port < design_port + DESIGN_PORTS:
        raise errors.ConfigError(f"--port {port} is one of the design services' ports, --design-port {design_port}")


def _check(settings: "settings.SandboxSettings", host: str, port: int) -> None:
    """Check the settings before a catalog is built, which may take minutes."""
    from nexar_sandbox import app

    app.check_settings(settings, host, port)


def _settings(
    *,
    parts: int | None,
    catalog: Path | None,
    prepared: Path | None,
    part_limit: int | None,
    seed: int,
    design_port: int,
    faults: list[str],
    rate: int | None,
    disturbances: list[str],
    behavior: "behaviors.Behavior",
    state: Path | None,
    no_auth: bool,
    admin_hosts: list[str],
) -> "settings.SandboxSettings":
    """Convert the options to settings. Raises ValueError for an invalid fault or disturbance."""
    from nexar_sandbox import applications, settings
    from nexar_sandbox import faults as sandbox_faults
    from nexar_sandbox.legacy_v3 import disturbances as kinds
    from nexar_sandbox.legacy_v3 import settings as legacy

    plan = (
        applications.DEFAULT_APPLICATION
        if part_limit is None
        else dataclasses.replace(applications.DEFAULT_APPLICATION, part_limit=part_limit)
    )
    return settings.SandboxSettings(
        parts=parts,
        catalog=catalog,
        prepared=prepared,
        seed=seed,
        design_port=design_port,
        applications=(plan, applications.DEFAULT_DESIGN_APPLICATION),
        state=state,
        no_auth=no_auth,
        admin_hosts=tuple(admin_hosts),
        behavior=behavior,
        faults=tuple(fault for text in faults for fault in sandbox_faults.parse_faults(text)),
        legacy=legacy.LegacySettings(
            requests_per_second=rate, disturbances=tuple(kinds.PARSER.parse(text) for text in disturbances)
        ),
    )


def _behavior(observed: Path | None, names: list[str]) -> "behaviors.Behavior":
    """Return the behavior that was observed, with deviations. Raises ValueError for an unknown deviation."""
    from nexar_sandbox import deviations

    return deviations.behavior(names, None if observed is None else conform.observed_behavior(observed))


async def _sandbox(host: str, port: int, settings: "settings.SandboxSettings") -> None:
    from nexar_sandbox import app

    stop = event_loop.stop_on_signal()
    rng = random.Random(settings.seed)  # noqa: S311 - reproducible by --seed
    with _mistakes(host, port):
        async with app.serve(settings, host, port, rng=rng) as upstream:
            shown.upstream(_ways_in(upstream))
            await stop.wait()


@contextmanager
def _mistakes(host: str, port: int) -> Iterator[None]:
    """Convert errors of the sandbox's start to ConfigError."""
    from nexar_sandbox.design import services

    try:
        yield
    except services.PortError as error:
        whose = f"the design service {error.service}"
        raise listening.refused(services.HOST, error.port, error, service=whose, options="--design-port") from error
    except OSError as error:
        raise listening.refused(host, port, error, service="the sandbox") from error
    except ValueError as error:
        raise errors.ConfigError(str(error)) from error


def _ways_in(upstream: "app.Sandbox") -> dict[str, str]:
    """Return URLs and default credentials; credentials changed in a state file are omitted."""
    from nexar_sandbox import applications, user_directory

    ways = {
        "sandbox": upstream.url,
        "legacy_url": f"{upstream.legacy_url}/v3",
        "legacy_apikey": upstream.legacy.apikeys[0],
        "graphql_url": upstream.graphql_url,
        "token_url": upstream.token_url,
        "account_url": upstream.account_url,
        "portal_url": upstream.portal_url,
        **{f"design_{name}_url": url for name, url in upstream.design_urls.items()},
    }
    user = upstream.users.by_id(user_directory.DEFAULT_USERS[0].id)
    if user is not None and user.password == user_directory.DEFAULT_USERS[0].password:
        ways |= {"user_email": user.email, "user_password": user_directory.DEFAULT_PASSWORD}
    design = upstream.applications.by_application(applications.DEFAULT_DESIGN_APPLICATION.application_id)
    first = next(
        (account for account in upstream.applications.all if applications.SUPPLY_SCOPE in account.scopes), None
    )
    for name, account in (("design", design), ("client", first)):
        if account is not None:
            ways |= {f"{name}_id": account.client_id, f"{name}_secret": account.client_secret}
    return ways


def _prepare_catalog(path: Path, parts: int | None, catalog: Path | None, seed: int) -> None:
    """Create the file of a prepared catalog if it is missing. An interrupted run leaves no file behind."""
    if path.exists():
        return
    from nexar_sandbox.catalog import store

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress, _ended_like_an_interrupt():
        task = progress.add_task(f"making {path.name}", total=None)

        def show(parts_done: int, wanted: int) -> None:
            done = parts_done >= wanted
            description = f"indexing {path.name}" if done else f"making {path.name}"
            progress.update(task, completed=parts_done, total=wanted, description=description)

        processes = (os.cpu_count() or 1) if (parts or 0) >= _WORTH_PROCESSES else 1
        try:
            store.prepare(path, parts, catalog, seed, processes=processes, progress=show)
        except ValueError as error:
            raise errors.ConfigError(str(error)) from error


@contextmanager
def _ended_like_an_interrupt() -> Iterator[None]:
    """Treat SIGTERM as an interrupt, so that the unfinished file is removed."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
