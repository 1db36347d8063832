"""Shared response cache in a file beside the store: for the workers of one machine, and kept across restarts.

The format of the file is in cache_ring.py. The event loop reads from the page cache only: where the disk would have to
be read, a thread does it. Another thread writes.

A claim is a lock on one byte of a second file, at an offset made of the key. The kernel releases it when its owner
dies, however that happens.
"""

import asyncio
import contextlib
import errno
import fcntl
import os
import struct
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import structlog

from proxy import errors
from proxy.kit.clock import Clock
from proxy.stores import sqlite_schema
from proxy.stores.cache_ring import KEPT_MAX, CacheRing, DamagedError
from proxy.stores.protocols import CacheLookup, CacheRecord, CacheUsage

CLAIMS_SUFFIX = ".claims"
OPENED_MAX = 10  # attempts at opening a file that other processes delete meanwhile
LOOP_MAX = 64  # keys that the event loop looks up without a pause: about 0.3 ms if all of them are hits

_LOCK = struct.Struct("hhqqi0q")  # struct flock on 64-bit Linux: type, whence, start, length, process
_PAGE_CACHE_ONLY: int = getattr(os, "RWF_NOWAIT", 0)  # flag of a read; 0 where the system has none

_CLAIMED, _NOTHING = CacheLookup(None, True), CacheLookup(None, False)

R = TypeVar("R")

log = structlog.get_logger()


class CacheFile:
    """Cache of at most `size` bytes in a file, which is opened when it is first needed."""

    def __init__(self, path: Path, size: int, clock: Clock) -> None:
        self._path = path
        self._size = size
        self._clock = clock
        self._ring: CacheRing | None = None
        self._claims: _Claims | None = None
        self._opening = threading.Lock()
        self._readers = ThreadPoolExecutor(1, thread_name_prefix="cache reads")
        self._writers = ThreadPoolExecutor(1, thread_name_prefix="cache writes")
        self._has_put = False
        self._closed = False

    def look_up_now(self, keys: Sequence[bytes], fresh_from: float, claim: bool) -> list[CacheLookup] | None:
        ring, claims = self._ring, self._claims
        if ring is None or (claim and claims is None) or len(keys) > LOOP_MAX or not _PAGE_CACHE_ONLY:
            return None
        claimed: set[bytes] = set()
        try:
            if claim and claims is not None:
                claims.claim(keys, claimed)
            contents = [ring.content(key, _PAGE_CACHE_ONLY) for key in keys]
        except (
            OSError,
            DamagedError,
        ):  # not in the page cache, or trouble, which the thread that reads it then reports
            self._release(claimed)
            return None
        return self._lookups(keys, contents, claimed, fresh_from)

    async def look_up(self, keys: Sequence[bytes], fresh_from: float, claim: bool) -> list[CacheLookup]:
        claims = await self._in_thread(self._readers, self._opened_claims) if claim else None
        # Claimed before they are read: an owner releases a key after its entry is there, so that a key that can be
        # claimed has its final entry. The other order would miss what is stored in between.
        claimed: set[bytes] = set()
        try:
            if claims is not None:
                claims.claim(keys, claimed)
            contents = await self._in_thread(self._readers, lambda: [self._opened().content(key) for key in keys])
        except OSError as error:
            self._release(claimed)
            raise _unavailable(error) from error
        except BaseException:
            self._release(claimed)
            raise
        return self._lookups(keys, contents, claimed, fresh_from)

    async def put(self, records: Sequence[CacheRecord]) -> None:
        try:
            if records:
                await self._in_thread(self._writers, lambda: self._put(records))
            else:
                await self._in_thread(self._writers, lambda: self._write(lambda ring: ring.expire(self._clock.now())))
        finally:
            self._release(record.key for record in records)

    async def renew(self, keys: Sequence[bytes]) -> None:
        """Do nothing: a lock lasts as long as its owner."""

    async def release(self, keys: Sequence[bytes]) -> None:
        self._release(keys)

    async def cache_usage(self) -> list[CacheUsage]:
        def usage() -> dict[str, CacheUsage]:
            usages: dict[str, CacheUsage] = {}
            for entry in self._opened().entries(self._clock.now()):
                name = entry.application.decode(errors="replace")
                _, entries, size, oldest, newest = usages.get(name, CacheUsage(name, 0, 0, entry.stored, entry.stored))
                oldest, newest = min(oldest, entry.stored), max(newest, entry.stored)
                usages[name] = CacheUsage(name, entries + 1, size + entry.size, oldest, newest)
            return usages

        usages = await self._in_thread(self._readers, usage)
        return [usages[name] for name in sorted(usages)]

    async def clear(self, application: str | None) -> int:
        def clear(ring: CacheRing) -> int:
            if application is not None:
                return ring.forget(application, self._clock.now())
            deleted = sum(1 for _ in ring.entries(self._clock.now()))
            ring.unlink()  # gives the space back; other processes see that it is gone
            return deleted

        return await self._in_thread(self._writers, lambda: self._write(clear))

    async def aclose(self) -> None:
        self._closed = True
        for threads in (self._readers, self._writers):
            with contextlib.suppress(RuntimeError):  # closed before
                await asyncio.get_running_loop().run_in_executor(threads, int)  # waits for what runs in the thread
            threads.shutdown()
        if self._ring is not None:
            self._ring.close()
            self._ring = None
        if self._claims is not None:
            self._claims.close()
            self._claims = None

    def _lookups(
        self,
        keys: Sequence[bytes],
        contents: Sequence[tuple[float, float, bytes] | None],
        claimed: set[bytes],
        fresh_from: float,
    ) -> list[CacheLookup]:
        """Return what was found, and release the claims on keys that have a fresh entry."""
        lookups = []
        now = self._clock.now()
        for key, content in zip(keys, contents, strict=True):
            if content is None or not now < content[1] <= now + KEPT_MAX:
                lookups.append(_CLAIMED if key in claimed else _NOTHING)
                continue
            if content[0] >= fresh_from and key in claimed:
                claimed.discard(key)
                self._release((key,))
            lookups.append(CacheLookup(content[2], key in claimed))
        return lookups

    def _release(self, keys: Iterable[bytes]) -> None:
        if self._claims is not None:
            self._claims.release(keys)

    def _opened_claims(self) -> "_Claims":
        """Return the claims. For threads only."""
        if self._claims is None:
            self._claims = _Claims(self._path.with_name(self._path.name + CLAIMS_SUFFIX))
        return self._claims

    async def _in_thread(self, threads: ThreadPoolExecutor, work: Callable[[], R]) -> R:
        if self._closed:
            raise errors.StoreUnavailable("the shared cache is closed")
        try:
            return await asyncio.get_running_loop().run_in_executor(threads, work)
        except (OSError, DamagedError) as error:
            raise _unavailable(error) from error

    def _put(self, records: Sequence[CacheRecord]) -> None:
        ring = self._opened()
        if not self._has_put and ring.size != self._size:
            # The setting has changed. Each service applies it once, and only when it stores something: services with
            # different settings must not delete each other's file again and again.
            with ring.locked():
                ring.unlink()
        self._has_put = True
        self._write(lambda ring: ring.append(records))

    def _write(self, work: Callable[[CacheRing], R]) -> R:
        """Do work on the locked file; a second time, on a new file, if the file turns out to be damaged."""
        ring = self._opened()
        try:
            with ring.locked():
                return work(ring)
        except DamagedError as error:
            log.warning("shared cache deleted", file=str(self._path), exc_info=error)
            with ring.locked():
                ring.unlink()
        ring = self._opened()
        with ring.locked():
            return work(ring)

    def _opened(self) -> CacheRing:
        """Return the file, which is begun anew where it is missing or damaged. For threads only."""
        with self._opening:
            for _ in range(OPENED_MAX):
                try:
                    if self._ring is not None and not self._ring.is_deleted():
                        return self._ring
                    self._ring = CacheRing(self._path, self._size)
                except DamagedError as error:
                    log.warning("shared cache deleted", file=str(self._path), exc_info=error)
                    if self._ring is not None:  # a new one has been deleted by itself
                        with self._ring.locked():
                            self._ring.unlink()
                        self._ring = None
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))


class _Claims:
    """Claims of one process: a lock for each."""

    def __init__(self, path: Path) -> None:
        sqlite_schema.make(path)
        self._descriptor = os.open(path, os.O_RDWR)
        self._held: set[bytes] = set()

    def close(self) -> None:
        """Close the file, which releases every claim."""
        os.close(self._descriptor)

    def claim(self, keys: Iterable[bytes], claimed: set[bytes]) -> None:
        """Claim keys, and add those that no other owner has to `claimed`: also where an error ends it halfway."""
        for key in keys:
            if key not in self._held and self._lock(fcntl.F_WRLCK, _offset(key)):
                self._held.add(key)
                claimed.add(key)

    def release(self, keys: Iterable[bytes]) -> None:
        """Release claims."""
        for key in keys:
            if key in self._held:
                self._held.discard(key)
                with contextlib.suppress(OSError):
                    self._lock(fcntl.F_UNLCK, _offset(key))

    def _lock(self, kind: int, offset: int) -> bool:
        """Lock or unlock a byte; return False if another owner has it. Locks belong to the open file (OFD locks): to
        this object, not to the process."""
        try:
            if hasattr(fcntl, "F_OFD_SETLK"):
                fcntl.fcntl(self._descriptor, fcntl.F_OFD_SETLK, _LOCK.pack(kind, os.SEEK_SET, offset, 1, 0))
            else:  # other systems: the lock belongs to the process, which is enough for the service
                commands = {fcntl.F_WRLCK: fcntl.LOCK_EX | fcntl.LOCK_NB, fcntl.F_UNLCK: fcntl.LOCK_UN}
                fcntl.lockf(self._descriptor, commands[kind], 1, offset)
        except (BlockingIOError, PermissionError):
            return False
        return True


def _offset(key: bytes) -> int:
    return int.from_bytes(key[:7], "big")


def _unavailable(error: Exception) -> errors.StoreUnavailable:
    return errors.StoreUnavailable(f"the shared cache cannot be used: {error}")
