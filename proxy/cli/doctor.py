"""`v3bridge doctor`: checks of an installation, stage by stage, and what to do about what they find."""

import os
import sys
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from proxy import config
from proxy.cli import embedded, option_fields, shown
from proxy.kit import clock, event_loop, shipped
from proxy.kit.wording import counted, printable

if TYPE_CHECKING:
    from proxy.doctor.findings import CheckResult, Report, StageName

OK, FAILED, UNUSABLE = 0, 1, 2  # exit codes: the last if the configuration itself is wrong
MARKS = {"passed": ("✓", "green"), "failed": ("✗", "red"), "warning": ("!", "yellow"), "skipped": ("–", "dim")}
ASCII = str.maketrans({"✓": "+", "✗": "x", "–": "-", "→": "->", "…": "..."})  # where the output has no Unicode
INDENT = 3  # columns up to the mark


def doctor(
    config_file: option_fields.ConfigFile = None,
    requests: Annotated[
        list[Path] | None,
        typer.Option("--requests", help="Recorded requests, any file that compare reads: estimates what they cost."),
    ] = None,
    only: Annotated[
        str | None, typer.Option(metavar="STAGE", help="Run this stage, such as schema, and those that it needs.")
    ] = None,
    as_json: option_fields.AsJson = False,
) -> None:
    """Check configuration, machine, network, credentials, plan and store, and say what to do. Costs 0 parts."""
    file = config_file or shipped.path("config.yaml")
    printer = None if as_json else ReportPrinter(Console(highlight=False))
    report = event_loop.run(examine(file, tuple(requests or ()), printer, only=_stage(only)))
    if printer is None:
        shown.print_json({"ok": report.ok, "stages": report.stages})
    else:
        printer.result(report)
    raise typer.Exit(exit_code(report))


def _stage(name: str | None) -> "StageName | None":
    from proxy.doctor.run import STAGES

    if name is None:
        return None
    names = {stage.name: stage.name for stage in STAGES}
    if name not in names:
        raise typer.BadParameter(f"{name!r} is none of {', '.join(names)}", param_hint="--only")
    return names[name]


async def examine(
    file: Path, requests: tuple[Path, ...], printer: "ReportPrinter | None", *, only: "StageName | None" = None
) -> "Report":
    """Check an installation; the printer shows each finding when it is made."""
    from proxy.doctor import inspection, run
    from proxy.telemetry import log

    log.configure("error", "console", sys.stderr)  # what is worth a warning is a finding
    async with AsyncExitStack() as resources:
        subject = inspection.Inspection(file, os.environ, clock.SystemClock(), _start_sandbox, resources, requests)
        if printer is None:
            return await run.run(subject, lambda _stage, _finding: None, only=only)
        return await run.run(subject, printer.show, printer.begin, only)


async def _start_sandbox(settings: config.Config, resources: AsyncExitStack) -> config.Config:
    return (await embedded.with_sandbox(settings, resources))[0]


def exit_code(report: "Report") -> int:
    if report.ok:
        return OK
    return UNUSABLE if report.stages[0].has_failed else FAILED


class ReportPrinter:
    """Prints each finding when it is made, below the name of its stage. Outside a terminal a finding is one line, and
    what to do another."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._console.soft_wrap = not self._console.is_terminal

    def begin(self, stage: "StageName") -> None:
        """Print the name of a stage before it runs: some take seconds."""
        self._console.print(Text(stage, style="bold"))

    def show(self, _stage: "StageName", finding: "CheckResult") -> None:
        symbol, style = MARKS[finding.outcome]
        application = f"{finding.application}: " if finding.application else ""
        self._print_line(self._text(symbol, style), f"{application}{finding.text}")
        if finding.advice:
            self._print_line(Text(" "), f"→ {finding.advice}")

    def result(self, report: "Report") -> None:
        outcomes = Counter(finding.outcome for stage in report.stages for finding in stage.findings)
        counts = [f"{outcomes[name]} {name}" for name in ("passed", "failed", "skipped") if outcomes[name]]
        counts += [counted(outcomes["warning"], "warning")] if outcomes["warning"] else []
        self._console.print(f"\n{'ready' if report.ok else 'not ready'}: {', '.join(counts)}")

    def _print_line(self, mark: Text, text: str) -> None:
        """Print a mark and a text, whose further lines in a terminal begin below its first one."""
        finding = self._text(text)
        if not self._console.is_terminal:
            self._console.print(Text.assemble("  ", mark, " ", finding))
            return
        row = Table.grid(padding=(0, 1, 0, 0))
        row.add_column(width=INDENT, justify="right", no_wrap=True)
        row.add_column(overflow="fold")
        row.add_row(mark, finding)
        self._console.print(row)

    def _text(self, text: str, style: str = "") -> Text:
        """Return a text as the output can show it."""
        text, encoding = printable(text), self._console.encoding
        if not encoding.lower().startswith("utf"):
            text = text.translate(ASCII).encode(encoding, "backslashreplace").decode(encoding)
        return Text(text, style)
