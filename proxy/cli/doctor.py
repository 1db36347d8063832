"""`v3bridge doctor`: checks of an installation, stage by stage, and what to do about what they find."""

import os
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from proxy import config
from proxy.cli import embedded
from proxy.kit import clock, event_loop, shipped
from proxy.kit.wording import printable

if TYPE_CHECKING:
    from proxy.doctor.findings import CheckResult, Report, StageName
    from proxy.doctor.run import Observer

OK, FAILED, UNUSABLE = 0, 1, 2  # exit codes: the last if the configuration itself is wrong
MARKS = {"passed": ("✓", "green"), "failed": ("✗", "red"), "warning": ("!", "yellow"), "skipped": ("–", "dim")}
ASCII_MARKS = {"✓": "ok", "✗": "x", "–": "-"}
INDENT = 4


def doctor(
    config_file: Annotated[
        Path | None, typer.Option("--config", help="The configuration; the shipped one if omitted.")
    ] = None,
    requests: Annotated[
        list[Path] | None,
        typer.Option("--requests", help="Recorded requests, any file that compare reads: estimates what they cost."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Check configuration, machine, network, credentials, plan and store, and say what to do. Costs 0 parts, changes
    nothing."""
    file = config_file or shipped.path("config.yaml")
    report = event_loop.run(_examine(file, tuple(requests or ()), _silent if as_json else _Printer().show))
    if as_json:
        document = {"ok": report.ok, "stages": report.stages}
        typer.echo(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
    else:
        _print_result(report)
    raise typer.Exit(_exit_code(report))


async def _examine(file: Path, requests: tuple[Path, ...], observe: "Observer") -> "Report":
    from proxy.doctor import inspection, run

    async with AsyncExitStack() as resources:
        return await run.run(
            inspection.Inspection(file, os.environ, clock.SystemClock(), _start_sandbox, resources, requests), observe
        )


async def _start_sandbox(settings: config.Config, resources: AsyncExitStack) -> config.Config:
    return (await embedded.with_sandbox(settings, resources))[0]


def _exit_code(report: "Report") -> int:
    if report.ok:
        return OK
    return UNUSABLE if report.stages[0].has_failed else FAILED


def _silent(_stage: "StageName", _finding: "CheckResult") -> None:
    """Print nothing: JSON is one document, printed at the end."""


class _Printer:
    """Prints each finding when it is made, below the name of its stage."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)
        self._stage = ""

    def show(self, stage: "StageName", finding: "CheckResult") -> None:
        """Print a finding."""
        if stage != self._stage:
            self._stage = stage
            self._console.print(Text(stage, style="bold"))
        mark, style = MARKS[finding.outcome]
        if not _is_unicode(self._console):
            mark = ASCII_MARKS.get(mark, mark)
        application = f"{finding.application}: " if finding.application else ""
        self._console.print(Text.assemble(f"{'':2}", (mark, style), f" {application}{printable(finding.text)}"))
        if finding.advice:
            self._console.print(Padding(Text(printable(finding.advice)), (0, 0, 0, INDENT)))


def _is_unicode(console: Console) -> bool:
    return (console.encoding or "").lower().replace("-", "").startswith("utf")


def _print_result(report: "Report") -> None:
    failures = sum(finding.outcome == "failed" for stage in report.stages for finding in stage.findings)
    typer.echo("\nno problem found" if report.ok else f"\n{failures} found")
