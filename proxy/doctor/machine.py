"""Stage machine: permissions of secrets, the port, open files, memory, and the disk of the store."""

import asyncio
import errno
import glob
import os
import resource
import shutil
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path

import aiohttp

from proxy import config
from proxy.config import store_place
from proxy.doctor.findings import CheckResult, found, passed
from proxy.doctor.inspection import Inspection
from proxy.kit import ports
from proxy.kit.wording import counted

WORKER_BYTES = 160_000_000  # of a worker after 100 000 requests (docs/explanation/performance.md)
STORE_BYTES = 50_000_000  # of the store itself, with room for its journal
RUNNING_SECONDS = 2.0  # for the response of a service that has the port already
CGROUP_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


async def check(inspection: Inspection) -> AsyncIterator[CheckResult]:
    """Check what the service needs of the machine. Nothing is written, and the port is free again at once."""
    settings = inspection.settings
    for finding in _exposed_secrets(inspection.file):
        yield finding
    yield await _port(settings.listen.host, settings.listen.port, "listen")
    if settings.admin:
        yield await _port(settings.admin.host, settings.admin.port, "admin")
    yield _open_files(settings)
    yield _memory(settings)
    for finding in _disk(settings):
        yield finding


def _exposed_secrets(file: Path) -> Iterator[CheckResult]:
    exposed = config.exposed(file)
    for path in exposed:
        yield found("secrets_exposed", f"other users can read {path}, which has secrets", advice=f"chmod 600 {path}")
    if not exposed:
        yield passed("secrets_protected", "no other user can read a file with secrets")


async def _port(host: str, port: int, block: str) -> CheckResult:
    """Check an address of the settings in `block`."""
    address = f"{host}:{port}"
    try:
        await asyncio.to_thread(ports.check, host, port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            if await _is_served(host, port):
                return passed("service_running", f"v3bridge is running on {address}")
            return found("port_in_use", f"another program listens on {address} ({block}.port)")
        code = "port_not_allowed" if error.errno in (errno.EACCES, errno.EPERM) else "host_unusable"
        return found(code, f"cannot listen on {address}: {error.strerror}")
    return passed("port_free", f"{address} is free" if port else f"{host}: the service takes any free port")


async def _is_served(host: str, port: int) -> bool:
    """Return whether the program that has the port is v3bridge: a running service is no mistake."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared, not bound
    url = f"http://[{host}]:{port}/healthz" if ":" in host else f"http://{host}:{port}/healthz"
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(RUNNING_SECONDS)) as session,
            session.get(url, allow_redirects=False) as response,
        ):
            return await response.read() == b'{"status": "ok"}'
    except (aiohttp.ClientError, OSError, TimeoutError):
        return False


def _open_files(settings: config.Config) -> CheckResult:
    # The service raises the soft limit to the hard one by itself.
    _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = settings.listen.connections + settings.reserved_files
    if limit != resource.RLIM_INFINITY and limit < needed:
        most = max(1, limit - settings.reserved_files)
        return found(
            "open_files_short",
            f"{limit} open files are allowed, {needed} are needed: a worker will serve {counted(most, 'connection')}, "
            f"not {settings.listen.connections}",
        )
    shown = "any number of" if limit == resource.RLIM_INFINITY else str(limit)
    return passed("open_files", f"{shown} open files are allowed, {needed} are needed by a worker")


def _memory(settings: config.Config) -> CheckResult:
    workers = settings.listen.workers
    needed, size = workers * WORKER_BYTES, memory_size()
    text = f"{_megabytes(size)} of memory, {counted(workers, 'worker')} may use {_megabytes(needed)}"
    return found("memory_short", text) if size < needed else passed("memory", text)


def memory_size(limits: Iterable[Path] = CGROUP_LIMITS) -> int:
    """Return the bytes of memory of this machine, or of the container where that has a limit."""
    sizes = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for file in limits:
        try:
            sizes.append(int(file.read_text()))
        except (OSError, ValueError):  # no such file, or `max`
            continue
    return min(sizes)


def _disk(settings: config.Config) -> Iterator[CheckResult]:
    file = store_place.file_of(settings.store)
    if file is None:
        return
    existing = next(folder for folder in file.parents if os.path.exists(folder))  # False, too, where it is forbidden
    free, needed = shutil.disk_usage(existing).free, STORE_BYTES + settings.cache.bytes
    # What the files have already taken need not be free.
    needed -= sum(part.stat().st_size for part in file.parent.glob(f"{glob.escape(file.name)}*"))
    text = f"{_megabytes(free)} free in {existing}, the store may grow by {_megabytes(max(0, needed))}"
    yield found("disk_short", text) if free < needed else passed("disk", text)


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"
