"""Parts are spent by `compare` and `sheet fill`: plan, confirmation and progress, on standard error.

Standard output is reserved for results.
"""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.progress import Progress

from proxy.cli import shown
from proxy.kit.wording import counted


def console() -> Console:
    """Return the console for plan and progress: standard error."""
    return Console(stderr=True, soft_wrap=True, highlight=False)


def say(text: str) -> None:
    """Print one line to standard error, without interpreting markup."""
    console().print(shown.visible(text))


def confirm_cost(parts: int, budget: int | None, *, yes: bool, free: bool) -> bool:
    """Ask whether to spend up to `parts`; return whether to continue. Without a terminal, a budget is required. Raises
    BadParameter without one."""
    if yes or free or not parts:
        return True
    most = parts if budget is None else min(parts, budget)
    # The question goes to standard error, because standard output may be a report.
    if sys.stdin.isatty() and sys.stderr.isatty():
        return _answer(f"Up to {counted(most, 'part')} may be spent. Continue?")
    if budget is None:
        raise typer.BadParameter(
            f"up to {counted(parts, 'part')} may be spent: set a limit with --budget, or confirm with --yes",
            param_hint="--budget",
        )
    return True


def confirmed(question: str, *, yes: bool) -> bool:
    """Return the answer to a question about what is lost. Raises BadParameter where nobody can be asked."""
    if not yes and not sys.stdin.isatty():
        raise typer.BadParameter("nobody can be asked: confirm with --yes", param_hint="--yes")
    return yes or _answer(question)


def _answer(question: str) -> bool:
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
def progress_bar(description: str, total: int) -> Iterator[Callable[[int, str], None]]:
    """Show a progress bar while the block runs; yields the function that updates it, with the number done and a text
    beside it. Does nothing without a terminal."""
    screen = console()
    with Progress(console=screen, disable=not screen.is_terminal) as progress:
        task = progress.add_task(description, total=total)
        yield lambda done, more: progress.update(task, completed=done, description=f"{description} {more}")
