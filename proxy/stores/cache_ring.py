"""File of the shared response cache: an index and a ring of records.

Records are appended, each over the oldest ones, and the index says where the record of a key is. A cache needs no more
than that: a database would also sort keys, write each page twice, and look for space to use again.

Writers lock the file. Readers lock nothing, so that no look-up waits; a record may be overwritten while it is read. It
counts only if it has the key, and if the ring still began before it after it was read. A process that is killed while
it writes leaves a record that no slot of the index points to, or a slot that points to no record with its key.
"""

import contextlib
import errno
import fcntl
import os
import struct
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from proxy.stores import sqlite_schema
from proxy.stores.protocols import CACHE_SHARE, CacheRecord

SUFFIX = ".cache"
MAGIC = b"v3bridge cache 1"
KEPT_MAX = 86_400.0  # seconds: a record that ends later was stored before the clock was set back
SLOT_SHARE, SLOTS_MIN = 1024, 4096  # bytes of the file for each slot of the index; its least number of slots
WINDOW = 16  # slots that a key may be in, from the one that it determines
NAME_MAX = 200  # bytes of an application's name in a record
READ_BYTES = 16_384  # of a record that are read at once: most are shorter, and need no second read
RUN_BYTES = 1_048_576  # that are written at once
LOCK_SECONDS, LOCK_PAUSE = 4.0, 0.001  # that a writer waits for the lock, and between two attempts at it

_HEADER = struct.Struct("<16sQQQQ")  # MAGIC, slots, bytes of the ring, tail, head
_TAIL, _HEAD = 32, 40  # where they are in the header
_INDEX = 4_096  # where the index begins
_SLOT = struct.Struct("<8sQ")  # the second half of a key, and the place of its record
_WINDOW = struct.Struct("<" + "8xQ" * WINDOW)
_RECORD = struct.Struct("<16sddIH")  # key, stored, until, bytes of the content and of the application's name before it


def beside(store: Path) -> Path:
    """Return the cache's file beside that of a store."""
    return store.with_name(store.name + SUFFIX)


class DamagedError(Exception):
    """The file is none of this version, or its records contradict each other: only a new file helps."""


class RingEntry(NamedTuple):
    """Record at a place. Places are counted on around the ring: a larger one is a newer one."""

    place: int
    end: int
    key: bytes
    application: bytes
    stored: float
    until: float
    size: int


class _Index:
    """Header and index of the file: where the ring begins and ends, and the places of keys. Read and written, not
    mapped: access to a page behind the end of a file that somebody has truncated would kill the process."""

    def __init__(self, descriptor: int, slots: int) -> None:
        self._descriptor = descriptor
        self._slots = slots

    @property
    def head(self) -> int:
        """Place of the next record."""
        return int.from_bytes(self._read(8, _HEAD), "little")

    @head.setter
    def head(self, place: int) -> None:
        _write(self._descriptor, place.to_bytes(8, "little"), _HEAD)

    def tail(self, flags: int = 0) -> int:
        """Return the place of the oldest record."""
        return int.from_bytes(self._read(8, _TAIL, flags), "little")

    def set_tail(self, place: int) -> None:
        _write(self._descriptor, place.to_bytes(8, "little"), _TAIL)

    def place(self, key: bytes, flags: int = 0) -> int:
        """Return the place of a key's record, which may be overwritten; 0, which is none, without one."""
        window = self._read(_WINDOW.size, self._start(key), flags)
        slot = _slot_in(window, key)
        return int.from_bytes(window[slot + 8 : slot + 16], "little") if slot >= 0 else 0

    def point(self, key: bytes, place: int) -> None:
        """Set the place of a key's record, where needed instead of the oldest place in its window."""
        start = self._start(key)
        window = self._read(_WINDOW.size, start)
        slot = _slot_in(window, key)
        if slot < 0:
            places = _WINDOW.unpack(window)
            slot = places.index(min(places)) * _SLOT.size
        _write(self._descriptor, _SLOT.pack(key[8:], place), start + slot)

    def _start(self, key: bytes) -> int:
        return _INDEX + int.from_bytes(key, "big") % self._slots * _SLOT.size

    def _read(self, size: int, start: int, flags: int = 0) -> bytes:
        data = _read(self._descriptor, size, start, flags)
        if len(data) == size:
            return data
        raise BlockingIOError if flags else DamagedError("the file is too short")


class CacheRing:
    """The open file. Readers of other processes and threads may use it at any moment, writers hold its lock."""

    def __init__(self, path: Path, size: int) -> None:
        """Open a file, and make it with `size` bytes at most where it is missing. Raises DamagedError."""
        self._descriptor = -1
        sqlite_schema.make(path)
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)  # another process may just have deleted it
        self._path = path
        try:
            slots, self._bytes = self._begun(size)
            self._start = ring_start(slots)  # of the ring
            self._index = _Index(self._descriptor, slots)
        except BaseException:
            self.close()
            raise

    # Not closed by whoever finds that the file has been deleted: another thread may be using it.
    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    @property
    def size(self) -> int:
        """Bytes of the file once the ring is full."""
        return self._start + self._bytes

    def is_deleted(self) -> bool:
        """Return whether the file has no name any more: what is stored in it, nobody else would find. Raises
        DamagedError where it was truncated."""
        status = os.fstat(self._descriptor)
        if status.st_nlink and status.st_size < self._start:
            raise DamagedError("the file was truncated")
        return status.st_nlink == 0

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of writers. Raises OSError while another process holds it for long."""
        end = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise
                time.sleep(LOCK_PAUSE)
        try:
            yield
        finally:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def content(self, key: bytes, flags: int = 0) -> tuple[float, float, bytes] | None:
        """Return when the entry of a key was stored, its end, and its content. Raises OSError where the file has been
        deleted, and where `flags` forbid to read the disk."""
        place = self._index.place(key, flags)
        if place < self._index.tail(flags):
            return None
        start = self._start + place % self._bytes
        block = self._read(READ_BYTES, start, flags)
        begin = end = _RECORD.size
        if len(block) >= _RECORD.size:
            found, stored, until, size, name = _RECORD.unpack_from(block)
            begin, end = _RECORD.size + name, _RECORD.size + name + size
            if found != key or end > self._bytes:
                return None
            if end > len(block):
                block += self._read(end - len(block), start + len(block), flags)
        if len(block) < end and flags:
            raise BlockingIOError  # the rest is not in the page cache
        if self.is_deleted():  # checked here only, because a miss is followed by a write, which checks it, too
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        if len(block) < end or place < self._index.tail(flags):
            return None
        return stored, until, block[begin:end]

    def entries(self, now: float) -> Iterator[RingEntry]:
        """Yield the entries that a look-up would find."""
        for entry in self._records(_RECORD.size + NAME_MAX):
            if now < entry.until <= now + KEPT_MAX and self._index.place(entry.key) == entry.place:
                yield entry

    def append(self, records: Iterable[CacheRecord]) -> None:
        """Store entries over the oldest ones, except those that would replace too many."""
        largest = self._bytes // CACHE_SHARE
        run: list[bytes] = []
        places: list[tuple[bytes, int]] = []
        head = self._index.head
        for record in records:
            data = _packed(record)
            if len(data) > largest:
                continue
            room = self._bytes - head % self._bytes
            if len(data) > room:  # a record never continues at the beginning of the ring
                run.append(_filler(room))
                head += room
            if len(data) > room or head - self._index.head > min(largest, RUN_BYTES):
                self._append_run(run, places)
                run, places = [], []
            places.append((record.key, head))
            run.append(data)
            head += len(data)
        self._append_run(run, places)

    def expire(self, now: float) -> None:
        """Overwrite the oldest records that have expired with zeros, up to the first that has not."""
        first = tail = self._index.tail()
        for entry in self._records(_RECORD.size + NAME_MAX):
            if now < entry.until <= now + KEPT_MAX:
                break
            tail = entry.end
        self._index.set_tail(tail)
        self._clear(first, tail - first)

    def forget(self, application: str, now: float) -> int:
        """Delete the entries of an application, and what newer ones have replaced; return how many a look-up would
        have found."""
        found = 0
        for entry in self._records(_RECORD.size + NAME_MAX):
            if entry.application == application_name(application):
                if self._index.place(entry.key) == entry.place:
                    self._index.point(entry.key, 0)
                    found += now < entry.until <= now + KEPT_MAX
                self._clear(entry.end - entry.size, entry.size)
        # Behind the newest record lies what is left of an evicted one.
        head = self._index.head
        written = os.fstat(self._descriptor).st_size - self._start - head % self._bytes
        self._clear(head, min(self._index.tail() + self._bytes - head, self._bytes // CACHE_SHARE, written))
        return found

    def _begun(self, size: int) -> tuple[int, int]:
        """Return the slots and the bytes of the ring, of a new file if this one is empty; delete a damaged one."""
        with self.locked():
            if not os.fstat(self._descriptor).st_size:
                _begin(self._descriptor, size)
            layout = _layout(self._descriptor)
            if layout is None:
                self.unlink()
        if layout is None:
            raise DamagedError("it is no cache of this version")
        return layout

    def _append_run(self, run: list[bytes], places: list[tuple[bytes, int]]) -> None:
        """Store records side by side. The index entries are last: nothing points to what is not written."""
        data, head = b"".join(run), self._index.head
        end = head + len(data)
        if self._index.tail() < end - self._bytes:
            ends = (entry.end for entry in self._records(RUN_BYTES // 16))
            self._index.set_tail(next(each for each in ends if each >= end - self._bytes))
        _write(self._descriptor, data, self._start + head % self._bytes)
        self._index.head = end
        for key, place in places:
            self._index.point(key, place)

    def _records(self, chunk: int) -> Iterator[RingEntry]:
        """Yield all records, replaced ones too, from the oldest to the newest; the file is read in pieces of `chunk`
        bytes. Raises DamagedError."""
        block, block_place, place = b"", 0, self._index.tail()
        while place < self._index.head:
            if (room := self._bytes - place % self._bytes) < _RECORD.size:
                place += room
                continue
            start = place - block_place
            if start + _RECORD.size + NAME_MAX > len(block):
                block, block_place, start = self._read(min(chunk, room), self._start + place % self._bytes), place, 0
            if place < (tail := self._index.tail()):  # overwritten, perhaps before it was read
                place = tail
                continue
            if len(block) < _RECORD.size:
                raise DamagedError("the file is too short")
            key, stored, until, size, name = _RECORD.unpack_from(block, start)
            end = place + _RECORD.size + name + size
            if end > min(self._index.head, place + room):
                raise DamagedError("a record is too long")
            begin = start + _RECORD.size
            yield RingEntry(place, end, key, block[begin : begin + name], stored, until, size)
            place = end

    def unlink(self) -> None:
        """Delete the file, unless another process has done so and has begun a new one. For the lock's owner."""
        if sqlite_schema.has_path(self._descriptor, self._path):
            self._path.unlink(missing_ok=True)

    def _clear(self, place: int, size: int) -> None:
        """Overwrite a part of the ring with zeros."""
        while size > 0:
            start = place % self._bytes
            length = min(size, self._bytes - start, RUN_BYTES)
            _write(self._descriptor, bytes(length), self._start + start)
            place, size = place + length, size - length

    def _read(self, size: int, start: int, flags: int = 0) -> bytes:
        return _read(self._descriptor, size, start, flags)


def _begin(descriptor: int, size: int) -> None:
    """Write an empty index, and the header last."""
    slots = max(SLOTS_MIN, size // SLOT_SHARE)
    ring = size - ring_start(slots)
    _write(descriptor, bytes(ring_start(slots)), 0)
    _write(descriptor, _HEADER.pack(MAGIC, slots, ring, ring, ring), 0)  # place 0 means none


def _layout(descriptor: int) -> tuple[int, int] | None:
    """Return the slots and the bytes of the ring; None of a file that is none of this version."""
    header = os.pread(descriptor, _HEADER.size, 0)
    if len(header) == _HEADER.size:
        magic, slots, ring, tail, head = _HEADER.unpack(header)
        is_whole = os.fstat(descriptor).st_size >= ring_start(slots)
        if magic == MAGIC and is_whole and slots and ring and tail <= head <= tail + ring:
            return slots, ring
    return None


def _read(descriptor: int, size: int, start: int, flags: int) -> bytes:
    if not flags:
        return os.pread(descriptor, size, start)
    block = bytearray(size)
    return bytes(block[: os.preadv(descriptor, [block], start, flags)])


def _write(descriptor: int, data: bytes, start: int) -> None:
    if os.pwrite(descriptor, data, start) < len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def ring_start(slots: int) -> int:
    """Return where the ring begins, behind an index of so many slots."""
    return _INDEX + (slots + WINDOW) * _SLOT.size


def _slot_in(window: bytes, key: bytes) -> int:
    """Return where in a window of the index the slot of a key begins; -1 without one."""
    slot = window.find(key[8:])
    while slot >= 0 and slot % _SLOT.size:  # the same bytes by chance, beside the beginning of a slot
        slot = window.find(key[8:], slot + 1)
    return slot


def _packed(record: CacheRecord) -> bytes:
    key, application, stored, until, content = record
    name = application_name(application)
    return _RECORD.pack(key, stored, until, len(content), len(name)) + name + content


def _filler(size: int) -> bytes:
    """Return a record of nobody, which fills the end of the ring."""
    head = _RECORD.pack(bytes(16), 0.0, 0.0, size - _RECORD.size, 0) if size >= _RECORD.size else b""
    return head.ljust(size, b"\0")


def application_name(application: str) -> bytes:
    return application.encode()[:NAME_MAX]
