"""The two processes of a soak: a sandbox, and the whole service before it, with what can be seen of it from outside."""

import asyncio
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

from bench.soak.outcome import Ledger
from bench.soak.questions import KEY
from proxy.kit import clock
from proxy.stores.protocols import LedgerEntry
from proxy.stores.sqlite import SqliteStore

STOP_SECONDS = 60
PARTS = 10**8  # more than any run can use
# `total_seconds` ends answers that come byte by byte; an idle machine answers within a hundredth of it.
CONFIG = """
listen: {{port: 0}}
store: "sqlite:{folder}/state.sqlite"
overload: {{lag_seconds: 0}}
upstream:
  graphql_url: {graphql_url}
  token_url: {token_url}
  timeouts: {{connect_seconds: 10, first_byte_seconds: 20, total_seconds: 10}}
applications:
  soak: {{client_id: "{client_id}", client_secret: "{client_secret}", apikeys: [{key}], parts: {parts}}}
cache: {{seconds: 1, stale_seconds: 5, bytes: {answer_bytes}}}
log: {{level: warning, format: json}}
"""


class Process:
    """A process under test: its address, and what it wrote to standard error."""

    def __init__(self, process: "subprocess.Popen[str]", url: str, errors: Path) -> None:
        self._process = process
        self.url = url
        self._errors = errors

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def give_back(self) -> None:
        """Ask for memory that it does not use."""
        self._process.send_signal(signal.SIGUSR1)

    def memory(self) -> float:
        """MB in use (Linux)."""
        text = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(text.partition("VmRSS:")[2].split()[0]) / 1024

    def descriptors(self) -> int:
        """Files and sockets that are open (Linux)."""
        return len(os.listdir(f"/proc/{self._process.pid}/fd"))

    def stop(self) -> int:
        """Ask it to end; its exit code."""
        self._process.terminate()
        return self._process.wait(STOP_SECONDS)

    def complaints(self) -> Iterator[str]:
        """Lines on standard error that faults of the other side do not justify."""
        for line in self._errors.read_text().splitlines():
            try:
                event = json.loads(line)
            except ValueError:
                yield f"the log has {line!r}"
                continue
            if event["level"] not in ("info", "warning") or "logger" in event:
                yield f"the log has {line}"


async def ledger(folder: Path) -> Ledger:
    """As whoever opens the file next will read it."""
    store = await SqliteStore.open(folder / "state.sqlite", clock.SystemClock())
    try:
        (whole,) = await store.usage([LedgerEntry("soak", "lifetime")])
        return Ledger(whole.used, whole.uncertain, sum(state.reserved for state in await store.all_usage()))
    finally:
        await store.aclose()


class SandboxControl(NamedTuple):
    """The sandbox."""

    url: str
    session: aiohttp.ClientSession

    async def declare(self, *faults: str) -> None:
        """These faults from now on, and no others."""
        async with self.session.put(self.url + "/admin/faults", data=json.dumps(faults)) as response:
            response.raise_for_status()

    async def journal(self) -> Any:
        """All of it, once nothing is under way."""
        async with asyncio.timeout(STOP_SECONDS):
            while True:
                async with self.session.get(self.url + "/admin/journal?last=50000") as response:
                    journal = await response.json()
                if all(entry["whole"] is not None for entry in journal["entries"]):
                    return journal
                await asyncio.sleep(0.2)


def tasks(metrics: str) -> int:
    """How many tasks the service has that are not done, by its metrics."""
    return int(float(metrics.partition("\nv3bridge_event_loop_tasks ")[2].partition("\n")[0]))


def given_up(metrics: str) -> int:
    """How many upstream requests have taken longer than 5 s, by the service's metrics: those that ran out of time."""
    found = re.findall(
        r"^v3bridge_upstream_request_duration_seconds_(bucket|count)\{(.*)\} (\S+)$", metrics, re.MULTILINE
    )
    whole = sum(float(value) for name, _, value in found if name == "count")
    return int(whole - sum(float(value) for _, labels, value in found if 'le="5.0"' in labels))


def stalled(metrics: str) -> int:
    """How many upstream requests have stalled, by the service's metrics."""
    found = re.findall(r"^v3bridge_upstream_stalls_total\{.*\} (\S+)$", metrics, re.MULTILINE)
    return int(sum(map(float, found)))


@contextmanager
def sandbox(folder: Path, seed: int) -> Iterator[dict[str, str]]:
    """What a sandbox prints, by name."""
    arguments = ("sandbox", "--port", "0", "--seed", str(seed), "--part-limit", str(PARTS))
    with _process("proxy", arguments, folder / "sandbox.txt") as process:
        assert process.stdout is not None
        told: dict[str, str] = {}
        while "client_secret" not in told:
            name, value = process.stdout.readline().split()
            told[name] = value
        yield told


@contextmanager
def service(folder: Path, upstream: dict[str, str], answer_bytes: int) -> Iterator[Process]:
    """The service, on a ledger in this folder, with a cache of so many bytes."""
    config = folder / "config.yaml"
    values = {**upstream, "folder": folder, "key": KEY, "parts": PARTS, "answer_bytes": answer_bytes}
    config.write_text(CONFIG.format(**values))
    with serving(config, "bench.soak.served") as process:
        yield process


@contextmanager
def serving(config: Path, module: str = "proxy") -> Iterator[Process]:
    """The service with a configuration, as `module`; what it writes to standard error goes to a file beside that."""
    errors = config.with_name("service.txt")
    with _process(module, ("serve", "--config", str(config)), errors) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise SystemExit(f"the service did not start: {errors.read_text()}")
        url = next(word for word in line.split() if word.startswith("http")).partition("/v3")[0]
        yield Process(process, url, errors)


@contextmanager
def _process(module: str, arguments: tuple[str, ...], errors: Path) -> Iterator["subprocess.Popen[str]"]:
    with (
        errors.open("w") as file,
        subprocess.Popen(
            [sys.executable, "-m", module, *arguments], stdout=subprocess.PIPE, stderr=file, text=True
        ) as process,
    ):
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
