"""`v3bridge doctor`: twelve checks of an installation, one line each, and what to do about what they find."""

import asyncio
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated

import typer

from proxy import log
from proxy.cli import embedded, option_fields, shown
from proxy.doctor import Check, Subject, configuration, disk, listening, run, store, upstream
from proxy.kit import clock, printable, shipped

CHECKS = {
    "configuration": Check("", configuration),
    "dns": Check("configuration", upstream.dns),
    "tls": Check("dns", upstream.tls),
    "token": Check("tls", upstream.token, each=True),
    "scope": Check("token", upstream.scope, each=True),
    "plan": Check("scope", upstream.plan, each=True),
    "schema": Check("scope", upstream.schema, each=True),
    "order": Check("scope", upstream.order, each=True),
    "store": Check("configuration", store),
    "clock": Check("tls", upstream.clock),
    "ports": Check("configuration", listening),
    "disk": Check("configuration", disk),
}


def doctor(
    config_file: option_fields.ConfigFile = None,
    only: Annotated[
        str, typer.Option(metavar="NAME", help="Run this check, such as schema, and those that it needs.")
    ] = "",
    as_json: option_fields.AsJson = False,
) -> None:
    """Check configuration, network, credentials, plan and machine, and say what to do. Costs 0 parts."""
    if only and only not in CHECKS:
        raise typer.BadParameter(f"{only!r} is none of {', '.join(CHECKS)}", param_hint="--only")
    raise typer.Exit(asyncio.run(examine(config_file or shipped.path("config.yaml"), only, as_json=as_json)))


async def examine(file: Path, only: str = "", *, as_json: bool = False) -> int:
    """Check an installation, and print each result when it is there. Return the exit code: 0 where nothing has failed
    (a warning is no failure), 2 for a wrong configuration, else 1."""
    log.configure("error", "console", sys.stderr)  # what is worth a warning is a result
    results = []
    async with AsyncExitStack() as resources:
        async for result in run(Subject(file, clock.SystemClock(), embedded.with_sandbox, resources), CHECKS, only):
            results.append(result)
            advice = f"\n{'':14}→ {result.advice}" if result.advice else ""
            if not as_json:
                typer.echo(printable(f"{result.name:14}{result.outcome:8}{result.text}{advice}"))
    failed = [result.outcome in ("failed", "skipped") for result in results]
    code = 2 if failed[0] else int(any(failed))
    if as_json:
        shown.print_json({"ok": not code, "checks": results})
    return code
