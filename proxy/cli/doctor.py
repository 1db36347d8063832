"""`v3bridge doctor`: twelve checks of an installation, one line each, and what to do about what they find."""

import asyncio
import os
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from proxy import log
from proxy.cli import embedded, option_fields, shown
from proxy.kit import clock, shipped
from proxy.kit.wording import printable

if TYPE_CHECKING:
    from proxy.doctor.check import CheckResult


def doctor(
    config_file: option_fields.ConfigFile = None,
    only: Annotated[
        str, typer.Option(metavar="NAME", help="Run this check, such as schema, and those that it needs.")
    ] = "",
    as_json: option_fields.AsJson = False,
) -> None:
    """Check configuration, network, credentials, plan and machine, and say what to do. Costs 0 parts."""
    results = asyncio.run(examine(config_file or shipped.path("config.yaml"), only, quiet=as_json))
    code = exit_code(results)
    if as_json:
        shown.print_json({"ok": not code, "checks": results})
    raise typer.Exit(code)


async def examine(file: Path, only: str = "", *, quiet: bool = False) -> "list[CheckResult]":
    """Check an installation; each result is printed when it is there, unless `quiet`."""
    from proxy.doctor import CHECKS, check

    if only and only not in CHECKS:
        raise typer.BadParameter(f"{only!r} is none of {', '.join(CHECKS)}", param_hint="--only")
    log.configure("error", "console", sys.stderr)  # what is worth a warning is a result
    results = []
    async with AsyncExitStack() as resources:
        subject = check.Subject(file, os.environ, clock.SystemClock(), embedded.with_sandbox, resources)
        async for result in check.run(subject, CHECKS, only):
            results.append(result)
            advice = f"\n{'':14}→ {result.advice}" if result.advice else ""
            if not quiet:
                typer.echo(printable(f"{result.name:14}{result.outcome:8}{result.text}{advice}"))
    return results


def exit_code(results: "list[CheckResult]") -> int:
    """Return 0 where nothing has failed (a warning is no failure), 2 for a wrong configuration, else 1."""
    failed = [result.outcome in ("failed", "skipped") for result in results]
    return 2 if failed[0] else int(any(failed))
