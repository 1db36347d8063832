"""Folder in which all processes of a service count, so that each of them can show the metrics of all.

When prometheus_client is imported, it decides by an environment variable whether a process counts in a folder or alone.
So this module does not import it before the folder is set.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
# The files are mapped into memory: on a full disk a process that counts would be killed by SIGBUS.
MEMORY = "/dev/shm"  # noqa: S108 - mkdtemp makes a folder of our own in it
_unshared: set[Any] = set()  # values that have counted what is not in the files yet


@contextmanager
def folder() -> Iterator[Path]:
    """Let this process, and those that it starts, count in an empty folder, which is removed at the end."""
    if "prometheus_client" in sys.modules:
        raise RuntimeError("prometheus_client was imported before its folder was set: it would count one process only")
    owner = os.getpid()
    path = tempfile.mkdtemp(prefix="v3bridge-metrics-", dir=MEMORY if os.access(MEMORY, os.W_OK) else None)
    os.environ[VARIABLE] = path
    try:
        yield Path(path)
    finally:
        if os.getpid() == owner:  # not in a fork
            del os.environ[VARIABLE]
            shutil.rmtree(path, ignore_errors=True)


def count_as(worker: str) -> None:
    """Count on where an earlier process of this worker ended, not in files of its own. To be called before the first
    metric: else each restart would leave files that every scrape reads."""
    from prometheus_client import values

    shared: Any = values.MultiProcessValue(lambda: worker)  # type: ignore[no-untyped-call]

    class Value(shared):  # type: ignore[misc]
        """Value that is counted in the process until `share`: to count in the file takes ten times as long."""

        added = 0.0

        def inc(self, amount: float) -> None:
            self.added += amount
            _unshared.add(self)

        def share(self) -> None:
            super().inc(self.added)
            self.added = 0.0

    values.ValueClass = Value


def share() -> None:
    """Let all processes see what this one has counted."""
    while _unshared:
        _unshared.pop().share()


def mark_dead(worker: str) -> None:
    """Forget the gauges of the process that counted as a worker and has ended. Its counters stay."""
    from prometheus_client import multiprocess

    multiprocess.mark_process_dead(worker)  # type: ignore[no-untyped-call]
