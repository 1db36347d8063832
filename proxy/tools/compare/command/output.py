"""Output of `compare`: plan, cost and progress on standard error, and the reports.

Standard output is reserved for a report.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from proxy import errors
from proxy.cli import shown, spending
from proxy.kit.wording import counted
from proxy.tools.compare import results
from proxy.tools.compare.command import checks, options
from proxy.tools.compare.judging import rules
from proxy.tools.compare.reports import html, terminal
from proxy.tools.compare.results import ComparisonResult
from proxy.tools.compare.running.run import RunProgress
from proxy.traffic.estimate import Estimate


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
    screen = spending.console()
    table = Table("endpoint", "requests", "occurrences", "parts at most", title=Text(f"Requests to send, from {name}"))
    for column in table.columns[1:]:
        column.justify = "right"
    for row in left.rows:
        table.add_row(row.endpoint, f"{row.requests}", f"{row.occurrences}", f"{row.parts}")
    screen.print(table)
    limit = "no budget" if budget is None else f"budget {counted(budget, 'part')}"
    cost = f"{counted(left.parts, 'part')} at most; {limit}"
    before = f", {spent} already spent" if spent else ""
    screen.print(
        Text(f"{counted(left.requests, 'request')} of {distinct}; {'free of charge' if free else cost}{before}")
    )
    for note in notes:
        screen.print(Text(f"note: {note}"))


@contextmanager
def progress_bar(requests: int) -> Iterator[Callable[[RunProgress], None]]:
    """Show a progress bar while the block runs; yields the function that updates it."""
    with spending.progress_bar("comparing", requests) as update:

        def tell(progress: RunProgress) -> None:
            more = counted(progress.parts, "part")
            more += f", {progress.not_compared} not compared" if progress.not_compared else ""
            update(progress.done + progress.not_compared + progress.left_out, more)

        yield tell


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
