"""Creates the file of a prepared catalog before `v3bridge sandbox` starts, with a progress bar."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from proxy import errors

# Below this number of parts, starting processes takes longer than it saves.
_WORTH_PROCESSES = 50_000


def make(path: Path, parts: int | None, catalog: Path | None, seed: int) -> None:
    """Create the file if it is missing. An interrupted run leaves no file behind."""
    if path.exists():
        return
    from proxy.sandbox.catalog import store

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress, _ended_like_an_interrupt():
        task = progress.add_task(f"making {path.name}", total=None)

        def show(made: int, wanted: int) -> None:
            done = made >= wanted
            description = f"indexing {path.name}" if done else f"making {path.name}"
            progress.update(task, completed=made, total=wanted, description=description)

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
