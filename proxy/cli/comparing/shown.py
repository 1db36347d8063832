"""What `compare` and `record` show before and while they run: the plan with its cost, and a bar. On standard error, so
that reports have the output for themselves."""

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from proxy.compare.estimate import Estimate
from proxy.compare.run import Standing
from proxy.kit.wording import counted

MOVED = "a call whose data moves meanwhile is paid for twice"


def console() -> Console:
    """Where people look while a command runs."""
    return Console(stderr=True, soft_wrap=True, highlight=False)


def plan(
    name: str,
    left: Estimate,
    *,
    distinct: int,
    budget: int | None,
    spent: int,
    free: bool,
    notes: Sequence[str],
) -> None:
    """What is going to be asked, and what it can cost."""
    screen = console()
    table = Table("endpoint", "calls", "asked", "parts at worst", title=Text(f"To be asked, of {name}"))
    for column in table.columns[1:]:
        column.justify = "right"
    for row in left.rows:
        table.add_row(row.endpoint, f"{row.calls}", f"{row.asked}", f"{row.parts}")
    screen.print(table)
    limit = f"no budget: {MOVED}" if budget is None else f"budget {counted(budget, 'part')}"
    cost = f"{counted(left.parts, 'part')} at worst; {limit}"
    before = f", {spent} spent before" if spent else ""
    screen.print(Text(f"{counted(left.calls, 'call')} of {distinct}; {'none is paid for' if free else cost}{before}"))
    for note in notes:
        screen.print(Text(f"note: {note}"))


def agree(left: Estimate, budget: int | None, spent: int, *, yes: bool, free: bool) -> bool:
    """Whether to go on. Where nobody can be asked, only within a budget. Raises BadParameter where there is none."""
    if yes or free or not left.parts:
        return True
    most = left.parts if budget is None else min(left.parts, max(0, budget - spent))
    if sys.stdin.isatty() and sys.stderr.isatty():
        return _confirmed(f"Up to {counted(most, 'part')} may be spent. Go on?")
    if budget is None:
        raise typer.BadParameter(
            f"up to {counted(left.parts, 'part')} may be spent: say how many may, or --yes", param_hint="--budget"
        )
    return True


def _confirmed(question: str) -> bool:
    """The answer; to interrupt is to say no. The loop would hold a signal back until there is an answer."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return typer.confirm(question, err=True)
    except typer.Abort:
        return False
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def bar(calls: int) -> Iterator[Callable[[Standing], None]]:
    """A bar while the block runs, and what moves it. Nothing where nobody looks."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[more]}"),
        TimeRemainingColumn(),
    )
    screen = console()
    with Progress(*columns, console=screen, disable=not screen.is_terminal) as progress:
        task = progress.add_task("comparing", total=calls, more="")

        def tell(standing: Standing) -> None:
            more = counted(standing.parts, "part")
            more += f", {standing.troubled} in trouble" if standing.troubled else ""
            done = standing.done + standing.troubled + standing.left_out
            progress.update(task, completed=done, more=more)

        yield tell


def say(text: str) -> None:
    """One line, whatever is in it."""
    console().print(Text(text))
