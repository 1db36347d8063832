"""Running a command of the tools: its options, which are the fields of a dataclass, so that name, type, default and
help text are declared once; its cost, its progress, and the signals that stop it.
"""

import asyncio
import dataclasses
import inspect
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import typer
from rich.console import Console
from rich.progress import Progress

from proxy import config
from proxy.config import secret
from proxy.kit import counted

T = TypeVar("T")
ENDLESS = 10**12  # parts


def command(options: type[T], run: Callable[[T], None]) -> Callable[..., None]:
    """Make a typer command of `run`, whose options are the fields of the dataclass `options`."""

    def invoke(**given: Any) -> None:
        run(options(**given))

    # typer reads a command's signature, type hints and docstring.
    invoke.__doc__ = run.__doc__
    invoke.__annotations__ = get_type_hints(options, include_extras=True)
    invoke.__signature__ = inspect.signature(options)  # type: ignore[attr-defined]
    return invoke


def read_key(text: str | None, option: str) -> config.Secret | None:
    """Read the API key from `env:NAME` or `file:PATH`. Raises BadParameter, whose message does not contain the key."""
    if text is None:
        return None
    # Other users of a machine can list the arguments of a process.
    if not text.startswith(("env:", "file:")):
        why = "a key on a command line is seen by everybody on this machine: env:NAME or file:PATH"
        raise typer.BadParameter(why, param_hint=option)
    try:
        return config.Secret(secret.resolve(text, Path(), os.environ))
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from error


def endless_sandbox(catalog: str = "") -> Any:
    """Return settings of a sandbox with a practically unlimited quota, and a shipped file of further parts."""
    import nexar_sandbox

    plan = dataclasses.replace(nexar_sandbox.DEFAULT_APPLICATION, part_limit=ENDLESS)
    further = nexar_sandbox.SHIPPED / catalog if catalog else None
    return nexar_sandbox.SandboxSettings(applications=(plan,), catalog=further)


def confirm_cost(parts: int, budget: int | None, *, yes: bool, free: bool) -> bool:
    """Return whether to spend up to `parts`, asking at a terminal. Raises BadParameter elsewhere without a budget."""
    if yes or free or not parts:
        return True
    most = counted(parts if budget is None else min(parts, budget), "part")
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        if budget is None:
            why = f"up to {most} may be spent: set a limit with --budget, or confirm with --yes"
            raise typer.BadParameter(why, param_hint="--budget")
        return True
    # The event loop would handle SIGINT only after the answer, so Python's own handler is restored meanwhile.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        # To standard error, because standard output may be a report. An interrupt is a no.
        return typer.confirm(f"Up to {most} may be spent. Continue?", err=True)
    except typer.Abort:
        return False
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def progress_bar(description: str, total: int) -> Iterator[Callable[[int, str], None]]:
    """Show a progress bar at a terminal; yields what updates it, with the number done and a text beside it."""
    screen = Console(stderr=True)
    with Progress(console=screen, disable=not screen.is_terminal) as progress:
        task = progress.add_task(description, total=total)
        yield lambda done, more: progress.update(task, completed=done, description=f"{description} {more}")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run to the end; exit with code 1 if a second signal cancels it."""
    with asyncio.Runner() as runner:
        try:
            return runner.run(main)
        except asyncio.CancelledError:
            sys.exit(1)


def stop_on_signal(announce: Callable[[], object] = lambda: None) -> asyncio.Event:
    """Return an event that the first SIGINT or SIGTERM sets, and `announce` says; the second cancels the calling task.

    To be called before a command reports that it is ready, so that it always stops cleanly from then on.
    """
    stop = asyncio.Event()
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None  # noqa: S101 - a coroutine runs in one

    def handle() -> None:
        if stop.is_set():
            task.cancel()
        else:
            announce()
        stop.set()

    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, handle)
    return stop
