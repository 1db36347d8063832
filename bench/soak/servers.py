"""The two processes of a soak: a sandbox, and the service in front of it, with measurements from outside."""

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

from bench.soak.outcome import LedgerTotals
from bench.soak.requests import KEY
from proxy.kit import clock
from proxy.stores.protocols import LedgerEntry
from proxy.stores.sqlite import SqliteStore

STOP_SECONDS = 60
PART_LIMIT = 10**8  # more than any run can use
# `total_seconds` ends responses that arrive byte by byte; an idle machine responds within a hundredth of it.
CONFIG = """
listen: {{port: 0, metrics: true}}
admin: false
store: "sqlite:{folder}/state.sqlite"
upstream:
  graphql_url: {graphql_url}
  token_url: {token_url}
  timeouts: {{connect_seconds: 10, first_byte_seconds: 20, total_seconds: 10}}
applications:
  soak: {{client_id: "{client_id}", client_secret: "{client_secret}", apikeys: [{key}], parts: {parts}}}
cache: {{seconds: 1, stale_seconds: 5, bytes: {cache_bytes}}}
coalescing: {{stall_seconds: 1}}
log: {{level: warning, format: json}}
"""


class ServiceProcess:
    """Process under test: its address, measurements (Linux), and standard error."""

    def __init__(self, process: "subprocess.Popen[str]", url: str, errors: Path) -> None:
        self._process = process
        self.url = url
        self._errors = errors

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def alive(self) -> bool:
        """Return true while it runs."""
        return self._process.poll() is None

    def release_memory(self) -> None:
        """Make it return unused memory to the system (service_process.py)."""
        self._process.send_signal(signal.SIGUSR1)

    def memory(self) -> float:
        """Return the resident memory in MB (Linux)."""
        text = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(text.partition("VmRSS:")[2].split()[0]) / 1024

    def descriptors(self) -> int:
        """Return the number of open files and sockets (Linux)."""
        return len(os.listdir(f"/proc/{self._process.pid}/fd"))

    def stop(self) -> int:
        """Terminate it; returns its exit code."""
        self._process.terminate()
        return self._process.wait(STOP_SECONDS)

    def log_errors(self) -> Iterator[str]:
        """List the lines of its log that upstream faults do not justify: above warning, or not an event."""
        for line in self._errors.read_text().splitlines():
            try:
                event = json.loads(line)
            except ValueError:
                yield f"the log has {line!r}"
                continue
            if event["level"] not in ("info", "warning") or "logger" in event:
                yield f"the log has {line}"


async def ledger(folder: Path) -> LedgerTotals:
    """Read the usage ledger from the store of a stopped service."""
    store = await SqliteStore.open(folder / "state.sqlite", clock.SystemClock())
    try:
        (entry,) = await store.usage([LedgerEntry("soak", "lifetime")])
        return LedgerTotals(entry.used, entry.uncertain, sum(state.reserved for state in await store.all_usage()))
    finally:
        await store.aclose()


class SandboxControl(NamedTuple):
    """Client of the sandbox's admin interface."""

    url: str
    session: aiohttp.ClientSession

    async def declare(self, *faults: str) -> None:
        """Inject these faults from now on, and no others."""
        async with self.session.put(self.url + "/admin/faults", data=json.dumps(faults)) as response:
            response.raise_for_status()

    async def journal(self) -> Any:
        """Wait until no request is in flight; returns the whole journal."""
        async with asyncio.timeout(STOP_SECONDS):
            while True:
                async with self.session.get(self.url + "/admin/journal?last=50000") as response:
                    journal = await response.json()
                if all(entry["whole"] is not None for entry in journal["entries"]):
                    return journal
                await asyncio.sleep(0.2)


def tasks(metrics: str) -> int:
    """Read the number of pending tasks from the service's metrics."""
    return int(float(metrics.partition("\nv3bridge_event_loop_tasks ")[2].partition("\n")[0]))


def timed_out(metrics: str) -> int:
    """Read the number of upstream requests over 5 s, which are those that timed out, from the service's metrics."""
    samples = re.findall(
        r"^v3bridge_upstream_request_duration_seconds_(bucket|count)\{(.*)\} (\S+)$", metrics, re.MULTILINE
    )
    total = sum(float(value) for name, _, value in samples if name == "count")
    return int(total - sum(float(value) for _, labels, value in samples if 'le="5.0"' in labels))


def stalled(metrics: str) -> int:
    """Read the number of stalled upstream requests from the service's metrics."""
    samples = re.findall(r"^v3bridge_upstream_stalls_total\{.*\} (\S+)$", metrics, re.MULTILINE)
    return int(sum(map(float, samples)))


@contextmanager
def sandbox(folder: Path, seed: int, *options: str) -> Iterator[dict[str, str]]:
    """Start a sandbox; yields the addresses and credentials that it prints, by name."""
    arguments = ("sandbox", "--port", "0", "--seed", str(seed), "--part-limit", str(PART_LIMIT), *options)
    with _process("proxy", arguments, folder / "sandbox.txt") as process:
        assert process.stdout is not None
        printed: dict[str, str] = {}
        while "client_secret" not in printed:
            name, value = process.stdout.readline().split()
            printed[name] = value
        yield printed


@contextmanager
def service(folder: Path, upstream: dict[str, str], cache_bytes: int) -> Iterator[ServiceProcess]:
    """Start the service with its store in `folder`."""
    config = folder / "config.yaml"
    values = {**upstream, "folder": folder, "key": KEY, "parts": PART_LIMIT, "cache_bytes": cache_bytes}
    config.write_text(CONFIG.format(**values))
    with serving(config, "bench.soak.service_process") as process:
        yield process


@contextmanager
def serving(config: Path, module: str = "proxy") -> Iterator[ServiceProcess]:
    """Start the service with a configuration, from `module`; its standard error goes to a file in the same folder."""
    errors = config.with_name("service.txt")
    with _process(module, ("serve", "--config", str(config)), errors) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise SystemExit(f"the service did not start: {errors.read_text()}")
        url = next(word for word in line.split() if word.startswith("http")).partition("/v3")[0]
        yield ServiceProcess(process, url, errors)


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
