"""Output of `compare` and `record`: plan, cost and progress on standard error, and the reports.

Standard output is reserved for a report.
"""

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from proxy import errors
from proxy.cli import shown
from proxy.cli.comparing import checks, options
from proxy.compare import results
from proxy.compare.judging import rules
from proxy.compare.reports import html, junit, markdown, terminal
from proxy.compare.results import ComparisonResult
from proxy.compare.running.estimate import Estimate
from proxy.compare.running.run import RunProgress
from proxy.kit.wording import counted

MOVED = "a request whose data changes during the run is billed twice"


def console() -> Console:
    """Return the console for plan and progress: standard error."""
    return Console(stderr=True, soft_wrap=True, highlight=False)


def show_plan(
    name: str,
    left: Estimate,
    *,
    distinct: int,
    budget: int | None,
    spent: int,
    free: bool,
    notes: Sequence[str],
) -> None:
    """Print the requests to be sent, and their worst-case cost."""
    screen = console()
    table = Table("endpoint", "requests", "occurrences", "parts at most", title=Text(f"Requests to send, from {name}"))
    for column in table.columns[1:]:
        column.justify = "right"
    for row in left.rows:
        table.add_row(row.endpoint, f"{row.requests}", f"{row.occurrences}", f"{row.parts}")
    screen.print(table)
    limit = f"no budget: {MOVED}" if budget is None else f"budget {counted(budget, 'part')}"
    cost = f"{counted(left.parts, 'part')} at most; {limit}"
    before = f", {spent} already spent" if spent else ""
    screen.print(
        Text(f"{counted(left.requests, 'request')} of {distinct}; {'free of charge' if free else cost}{before}")
    )
    for note in notes:
        screen.print(Text(f"note: {note}"))


def confirm_cost(left: Estimate, budget: int | None, spent: int, *, yes: bool, free: bool) -> bool:
    """Ask whether to spend parts; return whether to continue. Without a terminal, a budget is required. Raises
    BadParameter without one."""
    if yes or free or not left.parts:
        return True
    most = left.parts if budget is None else min(left.parts, max(0, budget - spent))
    # The question goes to standard error, because standard output may be a report.
    if sys.stdin.isatty() and sys.stderr.isatty():
        return _confirmed(f"Up to {counted(most, 'part')} may be spent. Continue?")
    if budget is None:
        raise typer.BadParameter(
            f"up to {counted(left.parts, 'part')} may be spent: set a limit with --budget, or confirm with --yes",
            param_hint="--budget",
        )
    return True


def _confirmed(question: str) -> bool:
    """Ask, and return the answer; an interrupt is a no. The event loop would handle SIGINT only after the answer, so
    Python's own handler is restored meanwhile."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return typer.confirm(question, err=True)
    except typer.Abort:
        return False
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def progress_bar(requests: int) -> Iterator[Callable[[RunProgress], None]]:
    """Show a progress bar while the block runs; yields the function that updates it. Does nothing without a
    terminal."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[more]}"),
        TimeRemainingColumn(),
    )
    screen = console()
    with Progress(*columns, console=screen, disable=not screen.is_terminal) as progress:
        task = progress.add_task("comparing", total=requests, more="")

        def tell(standing: RunProgress) -> None:
            more = counted(standing.parts, "part")
            more += f", {standing.not_compared} not compared" if standing.not_compared else ""
            done = standing.done + standing.not_compared + standing.left_out
            progress.update(task, completed=done, more=more)

        yield tell


def say(text: str) -> None:
    """Print one line to standard error, without interpreting markup."""
    console().print(Text(text))


def write_reports(result: ComparisonResult, chosen: options.ComparisonOptions) -> None:
    """Write all reports. Raises ConfigError for a file that cannot be written, after the others are written.

    If a report goes to standard output, the printed one goes to standard error.
    """
    aside = checks.reports_to_output(chosen) > 0
    screen = Console(stderr=aside)
    terminal.render(result, screen if screen.is_terminal else Console(stderr=aside, width=shown.FILE_WIDTH))
    wanted: tuple[tuple[Path | None, Callable[[ComparisonResult], str]], ...] = (
        (chosen.html, html.render),
        (chosen.json, results.render_json),
        (chosen.markdown, markdown.render),
        (chosen.junit, junit.render),
        (chosen.save_ignored, rules.render_ignored_counts),
    )
    # All are written before an error is raised: the parts are spent already.
    failed = [_write(path, render(result)) for path, render in wanted if path is not None]
    for reason in failed:
        if reason is not None:
            raise errors.ConfigError(reason)


def _write(path: Path, text: str) -> str | None:
    """Write a report. Return the error message, None for success."""
    try:
        if path == options.STANDARD_OUTPUT:
            sys.stdout.write(text)
            return None
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        return f"the report {path} cannot be written: {error.strerror}"
    return None
