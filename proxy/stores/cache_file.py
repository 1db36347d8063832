"""Shared response cache in an SQLite file beside the store: for the workers of one machine, and kept across restarts.

The event loop reads by a connection of its own: a look-up takes some microseconds, and a thread would add fifty. It
waits for the disk where the system has no longer the pages in memory, but for no writer: where one is in its way, or
the file has to be opened, a thread reads. Another thread writes. Without SQLite's write-ahead log, whose index is
mapped into memory: a file that somebody truncates would kill the process.

A claim is a lock on one byte of a second file, at an offset made of the key. The kernel releases it when its owner
dies, however that happens.
"""

import asyncio
import contextlib
import fcntl
import os
import sqlite3
import struct
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import structlog

from proxy import errors
from proxy.kit.clock import Clock
from proxy.stores import sqlite_schema
from proxy.stores.protocols import CACHE_SHARE, CacheLookup, CacheRecord, CacheUsage

SUFFIX, CLAIMS_SUFFIX = ".cache", ".claims"
VERSION = 2
KEPT_MAX = 86_400.0  # seconds: an entry that ends later was stored before the clock was set back
LOOP_MAX = 64  # keys that the event loop looks up without a pause: about 1 ms if all of them are hits
BUSY_SECONDS = 4.0  # that a thread waits for a writer of another process
PAGE_BYTES, ROW_BYTES = 4_096, 200  # of the file; of an entry without its content, in table and indexes
ORPHANS_MAX = 1_000  # entries that may be deleted for others before their aliases are
DELETED_MAX = 3  # damaged files, or files that others delete, one after the other, before the cache is given up for now
PAGES_KIB = 256  # of the file that each connection keeps in memory; the system keeps the rest

_SCHEMA = (
    "CREATE TABLE entries (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, application TEXT NOT NULL, "
    "stored REAL NOT NULL, until REAL NOT NULL, size INTEGER NOT NULL, content BLOB NOT NULL)",
    "CREATE INDEX entries_by_end ON entries (until, application, stored, size)",
    "CREATE TABLE aliases (alias BLOB PRIMARY KEY, key BLOB NOT NULL) WITHOUT ROWID",
)
_READ = (
    "SELECT stored, until, content FROM entries WHERE key = ?1 UNION ALL "
    "SELECT stored, until, content FROM aliases JOIN entries USING (key) WHERE alias = ?1 ORDER BY stored DESC LIMIT 1"
)
_STORE = "INSERT OR REPLACE INTO entries (key, application, stored, until, size, content) VALUES "
_STORE_ALIAS = "INSERT OR REPLACE INTO aliases VALUES "
_ROWS_MAX = 1_000  # that one statement stores
_DAMAGES = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_ERROR", "SQLITE_IOERR_SHORT_READ")  # the third: no such table

_LOCK = struct.Struct("hhqqi0q")  # struct flock on 64-bit Linux: type, whence, start, length, process
_CLAIMED, _NOTHING = CacheLookup(None, True), CacheLookup(None, False)

R = TypeVar("R")

log = structlog.get_logger()


class _OtherVersionError(sqlite3.DatabaseError):
    """The file was made by another version: only a new file helps."""

    sqlite_errorname = "SQLITE_NOTADB"


def beside(store: Path) -> Path:
    """Return the cache's file beside that of a store."""
    return store.with_name(store.name + SUFFIX)


class CacheFile:
    """Cache of at most `size` bytes in a file, which is opened when it is first needed."""

    def __init__(self, path: Path, size: int, clock: Clock) -> None:
        self._path = path
        self._size = size
        self._clock = clock
        self._opening = threading.Lock()
        self._files: dict[ThreadPoolExecutor, _File] = {}
        self._loop_file: _File | None = None
        self._claims: _Claims | None = None
        self._readers = ThreadPoolExecutor(1, thread_name_prefix="cache reads")
        self._writers = ThreadPoolExecutor(1, thread_name_prefix="cache writes")
        self._closed = False

    def look_up_now(self, keys: Sequence[bytes], fresh_from: float, claim: bool) -> list[CacheLookup] | None:
        file, claims = self._loop_file, self._claims
        if file is None or claims is None or len(keys) > LOOP_MAX:
            return None
        claimed: set[bytes] = set()
        try:
            if claim:
                claims.claim(keys, claimed)
            contents = file.contents(keys)
        except (OSError, sqlite3.Error):  # a writer, or trouble, which the thread then reports
            self._release(claimed)
            return None
        return self._lookups(keys, contents, claimed, fresh_from)

    async def look_up(self, keys: Sequence[bytes], fresh_from: float, claim: bool) -> list[CacheLookup]:
        # Claimed before they are read: an owner releases a key after its entry is there, so that a key that can be
        # claimed has its final entry. The other order would miss what is stored in between.
        claimed: set[bytes] = set()
        try:
            claims = await self._in_thread(self._readers, self._opened_claims)
            if claim:
                claims.claim(keys, claimed)
            contents = await self._with_file(self._readers, lambda file: file.contents(keys))
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
                await self._with_file(self._writers, lambda file: file.store(records, self._size))
            else:
                await self._with_file(self._writers, lambda file: file.expire(self._clock.now()))
        finally:
            self._release(record.key for record in records)

    async def renew(self, keys: Sequence[bytes]) -> None:
        """Do nothing: a lock lasts as long as its owner."""

    async def release(self, keys: Sequence[bytes]) -> None:
        self._release(keys)

    async def cache_usage(self) -> list[CacheUsage]:
        return await self._with_file(self._readers, lambda file: file.usage(self._clock.now()))

    async def clear(self, application: str | None) -> int:
        return await self._with_file(self._writers, lambda file: file.clear(application, self._clock.now()))

    async def aclose(self) -> None:
        self._closed = True
        for threads in (self._readers, self._writers):
            with contextlib.suppress(RuntimeError):  # closed before
                await asyncio.get_running_loop().run_in_executor(threads, int)  # waits for what runs in the thread
            threads.shutdown()
        for file in filter(None, (*self._files.values(), self._loop_file)):
            file.close()
        self._files, self._loop_file = {}, None
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

    async def _with_file(self, threads: ThreadPoolExecutor, work: Callable[["_File"], R]) -> R:
        """Do work in a thread, with its connection to the file; once more, with a new file, where it is damaged."""

        def in_thread() -> R:
            for _ in range(DELETED_MAX):
                try:
                    return work(self._opened(threads))
                except FileNotFoundError:  # another process has just deleted a damaged one
                    continue
                except sqlite3.DatabaseError as error:
                    if not _is_damage(error):
                        raise
                    log.warning("shared cache deleted", file=str(self._path), exc_info=error)
                    if (damaged := self._files.pop(threads, None)) is not None:
                        damaged.delete()
            return work(self._opened(threads))

        return await self._in_thread(threads, in_thread)

    async def _in_thread(self, threads: ThreadPoolExecutor, work: Callable[[], R]) -> R:
        if self._closed:
            raise errors.StoreUnavailable("the shared cache is closed")
        try:
            return await asyncio.get_running_loop().run_in_executor(threads, work)
        except (OSError, sqlite3.Error) as error:
            raise _unavailable(error) from error

    def _opened(self, threads: ThreadPoolExecutor) -> "_File":
        """Return a thread's connection to the file, which is begun anew where it is missing."""
        with self._opening:
            file = self._files.get(threads)
            if file is None or file.is_replaced():
                # The connections before are not closed: the event loop may be reading by one.
                file = self._files[threads] = _File(self._path)
                self._loop_file = _File(self._path, waits=False)
            return file


class _File:
    """Connection to the file, for one thread. All methods raise sqlite3.Error."""

    def __init__(self, path: Path, *, waits: bool = True) -> None:
        """Open a file, and make it where it is missing. Unless it `waits`, a writer in the way is an error later on."""
        sqlite_schema.make(path)
        self._path = path
        self._status = path.stat()
        self._orphaned = 0  # entries that were deleted, but not their aliases
        self._connection = sqlite3.connect(path, BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            self._prepare()
            if not waits:
                self._connection.execute("PRAGMA busy_timeout = 0")
        except BaseException as error:
            if _is_damage(error):
                self.delete()
            self.close()
            raise

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def delete(self) -> None:
        """Delete the file, unless another process has done so and has begun a new one. To be called while it is open:
        no new file has its inode."""
        with contextlib.suppress(FileNotFoundError):
            if self.is_replaced():
                return
            with self._path.open("rb") as damaged:
                fcntl.flock(damaged, fcntl.LOCK_EX)  # until it is closed: no two processes compare and delete
                if not self.is_replaced():
                    self._path.unlink()

    def is_replaced(self) -> bool:
        """Return whether the file was deleted: what is stored in it, nobody else would find."""
        try:
            return not os.path.samestat(self._status, self._path.stat())
        except OSError:
            return True

    def contents(self, keys: Sequence[bytes]) -> list[tuple[float, float, bytes] | None]:
        """Return when the entry of each key was stored, its end, and its content."""
        if len(keys) == 1:
            return [self._connection.execute(_READ, keys).fetchone()]
        with self._transaction("DEFERRED"):  # one lock for all
            return [self._connection.execute(_READ, (key,)).fetchone() for key in keys]

    def store(self, records: Sequence[CacheRecord], size: int) -> None:
        """Store entries, except those that would replace too many; delete those that end first beyond `size` bytes."""
        stored = [record for record in records if len(record.content) <= size // CACHE_SHARE]
        with self._transaction("IMMEDIATE"):
            self._make_room(size - sum(_bytes_of(record.content) for record in stored))
            self._insert(_STORE, [(*each[:4], len(each.content), each.content) for each in stored])
            self._insert(_STORE_ALIAS, [(alias, each.key) for each in stored for alias in each.aliases])
        if self._pragma("page_count") * PAGE_BYTES > size:  # it was made for another size
            self._connection.execute("VACUUM")

    def _insert(self, statement: str, rows: Sequence[Sequence[object]]) -> None:
        """Insert rows by one statement. With one for each the event loop would wait for this thread each time."""
        for first in range(0, len(rows), _ROWS_MAX):
            some = rows[first : first + _ROWS_MAX]
            values = ", ".join([f"({', '.join('?' * len(some[0]))})"] * len(some))
            self._connection.execute(statement + values, [value for row in some for value in row])

    def expire(self, now: float) -> None:
        """Delete what has expired, and what was stored before the clock was set back."""
        statement = "DELETE FROM entries WHERE until <= ? OR until > ?"
        if self._connection.execute(statement, (now, now + KEPT_MAX)).rowcount:
            self._delete_orphans()

    def usage(self, now: float) -> list[CacheUsage]:
        """Return the usage of every application with entries, by name."""
        statement = (
            "SELECT application, count(*), sum(size), min(stored), max(stored) FROM entries "
            "WHERE until > ? AND until <= ? GROUP BY application ORDER BY application"
        )
        return [CacheUsage(*row) for row in self._connection.execute(statement, (now, now + KEPT_MAX))]

    def clear(self, application: str | None, now: float) -> int:
        """Delete the entries of an application, or all; return how many had not expired."""
        self.expire(now)
        if application is not None:
            deleted = self._connection.execute("DELETE FROM entries WHERE application = ?", (application,)).rowcount
            self._delete_orphans()
            return deleted
        deleted = self._connection.execute("DELETE FROM entries").rowcount
        self._connection.execute("DELETE FROM aliases")
        self._connection.execute("VACUUM")  # gives the space back
        return deleted

    def _delete_orphans(self) -> None:
        """Delete the aliases of entries that are gone."""
        self._connection.execute("DELETE FROM aliases WHERE key NOT IN (SELECT key FROM entries)")
        self._orphaned = 0

    def _make_room(self, size: int) -> None:
        """Delete the entries that end first, until the others take at most `size` bytes."""
        while (excess := (self._pragma("page_count") - self._pragma("freelist_count")) * PAGE_BYTES - size) > 0:
            ids = []
            for id_, content in self._connection.execute("SELECT id, size FROM entries ORDER BY until, id"):
                ids.append((id_,))
                excess -= content
                if excess <= 0:
                    break
            if not ids:
                return
            self._connection.executemany("DELETE FROM entries WHERE id = ?", ids)
            self._orphaned += len(ids)
            if self._orphaned >= ORPHANS_MAX:
                self._delete_orphans()

    def _prepare(self) -> None:
        for setting in (
            f"cache_size = -{PAGES_KIB}",
            "journal_mode = TRUNCATE",
            "synchronous = OFF",  # a cache may be lost with the machine
            "secure_delete = ON",  # what has expired is overwritten
        ):
            self._connection.execute(f"PRAGMA {setting}")
        if (version := self._pragma("user_version")) == VERSION:
            return
        with self._transaction("IMMEDIATE"):
            if (version := self._pragma("user_version")) not in (0, VERSION):
                raise _OtherVersionError(f"its version is {version}")
            if version == 0:
                for statement in _SCHEMA:
                    self._connection.execute(statement)
                self._connection.execute(f"PRAGMA user_version = {VERSION}")

    def _pragma(self, name: str) -> int:
        return int(self._connection.execute(f"PRAGMA {name}").fetchone()[0])

    @contextlib.contextmanager
    def _transaction(self, kind: str) -> Iterator[None]:
        self._connection.execute(f"BEGIN {kind}")
        try:
            yield
            self._connection.execute("COMMIT")
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")


def _is_damage(error: BaseException) -> bool:
    return isinstance(error, sqlite3.DatabaseError) and getattr(error, "sqlite_errorname", "").startswith(_DAMAGES)


def _bytes_of(content: bytes) -> int:
    """Return the most bytes that an entry takes: in the pages of others, or in pages of its own."""
    return len(content) + (ROW_BYTES if len(content) < PAGE_BYTES // 4 else PAGE_BYTES)


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
