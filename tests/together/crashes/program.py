"""The proxy as a subprocess with a limited and an unlimited application, and its usage ledger."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from proxy.stores import open as opening
from proxy.stores.protocols import EntryUsage, LedgerEntry

from proxy.config import StoreUrl
from proxy.kit import clock

ROOT = Path(__file__).parents[3]
APPLICATIONS = ("limited", "unlimited")
LIMIT = 1_000


@contextmanager
def serving(
    file: Path, python: tuple[str, ...] = ("-m", "proxy"), stderr: int | None = None
) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """`v3bridge serve` in a process of its own, and its address."""
    command = [sys.executable, *python, "serve", "--config", str(file), "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=stderr, text=True) as process:
        try:
            assert process.stdout is not None
            first = process.stdout.readline()
            yield process, next(word for word in first.split() if word.startswith("http")).partition("/v3")[0]
        finally:
            process.kill()


def worker_of(process: "subprocess.Popen[str]") -> int:
    """Return the process id of the only worker of a service."""
    return int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text())


async def ledger(store: str) -> dict[str, EntryUsage]:
    """The lifetime of each application, as any reader of the store sees it."""
    opened = await opening.open_store(StoreUrl(store), clock.SystemClock())
    try:
        states = await opened.usage([LedgerEntry(name, "lifetime") for name in APPLICATIONS])
        return dict(zip(APPLICATIONS, states, strict=True))
    finally:
        await opened.aclose()
