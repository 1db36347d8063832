"""Journal of the SQLite store: usage and intents of a worker, in files that are written before a response leaves.

What is in the memory-mapped pages of a file outlives the process as a transaction does, and writing it needs no system
call: a write would cost ten times as much, and give up the interpreter lock. Each file holds the usage of one
settlement, and is removed once the store has it. Files of a worker that was killed are settled by the next process that
opens the store; a settlement that had come through all the same has the same number, and is booked once.

One more file holds the worker's intents: what each request in flight may cost, in a slot of its own, written before the
request is sent and cleared when it is booked. Slots that a killed worker leaves filled become uncertain usage.
"""

import contextlib
import errno
import fcntl
import glob
import mmap
import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import msgspec

from proxy.stores.protocols import EntryGroup, LedgerEntry, Settlement, UsageIncrement

GROWTH = 65_536  # bytes that a file grows by
SLOT = 1_024  # bytes of an intent: its parts and the entries it is booked on
INTENTS_SEQUENCE = 1 << 62  # of the settlement of a dead worker's intents: its owner sends none after it
FREE = b"\0"  # first byte of a slot without an intent


class _File:
    """Memory-mapped file that grows. Locked for as long as the process lives."""

    def __init__(self, path: Path) -> None:
        """Raises OSError, as does `append`."""
        self._path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            # The lock tells left_behind() of another process that this worker lives; the kernel releases it with the
            # process.
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        except OSError:
            os.close(self._descriptor)
            raise
        self._size = self._end = 0
        self._pages: mmap.mmap | None = None

    def append(self, text: bytes) -> None:
        """Append after the existing content."""
        self.write(self._end, text)

    def write(self, start: int, text: bytes) -> None:
        """Write at an offset."""
        end = start + len(text)
        if self._pages is None or end > self._size:
            self._pages = self._grow(end)
        self._pages[start:end] = text
        self._end = max(self._end, end)

    def close(self) -> None:
        """Close the file, and leave its content."""
        if self._pages is not None:
            self._pages.close()
        os.close(self._descriptor)

    def remove(self) -> None:
        """Delete the file. If that fails, its content is still booked only once, by the settlement's number."""
        with contextlib.suppress(OSError):
            self._path.unlink()
        self.close()

    def _grow(self, least: int) -> mmap.mmap:
        """Allocate space with a write: a page fault on a full disk would kill the process."""
        # Rounded up to whole steps: growing costs system calls, and appending must not.
        size = -(-least // GROWTH) * GROWTH
        added = size - self._size
        if os.pwrite(self._descriptor, bytes(added), self._size) < added:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        pages = mmap.mmap(self._descriptor, size)
        if self._pages is not None:
            self._pages.close()
        self._size = size
        return pages


class FileJournal:
    """Journal files of one worker. Their names are `path`, the owner and the number of the settlement."""

    def __init__(self, path: Path, owner: str) -> None:
        self._path = path
        self._owner = owner
        self._files: dict[int, _File] = {}
        self._intents: _File | None = None
        self._free_slots: list[int] = []
        self._slots = 0

    def open_intent(self, parts: int, group: EntryGroup) -> int:
        if self._intents is None:
            self._intents = _File(self._path.with_name(f"{self._path.name}.{self._owner}.intents"))
        text = b"%d %s\n" % (parts, group.json)
        # Only very long names of applications and keys; the caller then records the intent in the store.
        if len(text) > SLOT:
            raise OSError(errno.EMSGSIZE, os.strerror(errno.EMSGSIZE))
        number = self._free_slots[-1] if self._free_slots else self._slots
        self._intents.write(number * SLOT, text)
        # Taken only now: a write that failed leaves the slot free.
        if self._free_slots:
            self._free_slots.pop()
        else:
            self._slots += 1
        return number

    def close_intent(self, number: int) -> None:
        if self._intents is not None:
            self._intents.write(number * SLOT, FREE)
            self._free_slots.append(number)

    def record_usage(self, sequence: int, group: EntryGroup, used: int, uncertain: int) -> None:
        file = self._files.get(sequence)
        if file is None:
            file = self._files[sequence] = _File(self._name(sequence))
        file.append(b"[%d,%d,%s]\n" % (used, uncertain, group.json))

    def settled(self, sequence: int) -> None:
        file = self._files.pop(sequence, None)
        if file is not None:
            file.remove()

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        self._files.clear()
        if self._intents is not None:
            # No intent is open: there is nothing for the next process to book.
            if len(self._free_slots) == self._slots:
                self._intents.remove()
            else:
                self._intents.close()
            self._intents = None

    def _name(self, sequence: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{self._owner}.{sequence}.journal")


def left_behind(path: Path) -> Iterator[tuple[Path, Settlement]]:
    """Yield the settlements of dead workers, each with its file; those of one worker in the order of their numbers,
    because the store books none after a later one. Other processes may do the same at this moment."""
    skipped: set[str] = set()
    # INTENTS_SEQUENCE is the largest number: intents are settled after all usage of their owner.
    for owner, sequence, file in sorted(_files_beside(path)):
        if owner in skipped:
            continue
        with contextlib.suppress(FileNotFoundError), file.open("rb") as opened:  # it may be settled just now
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                skipped.add(owner)  # its worker lives, or another process settles it
                continue
            content = opened.read()
            if increments := _intents(content) if sequence == INTENTS_SEQUENCE else _usage(content):
                yield file, Settlement(owner, sequence, (), increments)
            elif content and sequence == INTENTS_SEQUENCE:  # an empty one may be that of a worker that starts just now
                file.unlink()


def _files_beside(path: Path) -> Iterator[tuple[str, int, Path]]:
    """Yield owner, number and path of every journal file beside `path`; intents are the last of their owner."""
    for file in path.parent.glob(f"{glob.escape(path.name)}.*.journal"):
        owner, sequence = file.name.removeprefix(f"{path.name}.").split(".")[:2]
        yield owner, int(sequence), file
    for file in path.parent.glob(f"{glob.escape(path.name)}.*.intents"):
        yield file.name.removeprefix(f"{path.name}.").removesuffix(".intents"), INTENTS_SEQUENCE, file


def _intents(content: bytes) -> tuple[UsageIncrement, ...]:
    """Sum up what open intents may have cost, by entry. A slot that is cut off was never followed by a request."""
    sums: dict[LedgerEntry, int] = defaultdict(int)
    for start in range(0, len(content), SLOT):
        parts, _, entries = content[start : start + SLOT].partition(b"\n")[0].partition(b" ")
        with contextlib.suppress(ValueError, msgspec.MsgspecError):
            for entry in msgspec.json.decode(entries, type=list[LedgerEntry]):
                sums[entry] += int(parts)
    return tuple(UsageIncrement(entry, 0, parts) for entry, parts in sums.items())


def _usage(content: bytes) -> tuple[UsageIncrement, ...]:
    """Sum up recorded usage, by entry. After the last record there are zeros; one that is cut off was not recorded: no
    response was sent after it."""
    sums: dict[LedgerEntry, list[int]] = defaultdict(lambda: [0, 0])
    for text in content.split(b"\n")[:-1]:
        try:
            used, uncertain, entries = msgspec.json.decode(text, type=tuple[int, int, list[LedgerEntry]])
        except msgspec.MsgspecError:
            # zeros, or a record that is cut off
            break
        for entry in entries:
            sums[entry][0] += used
            sums[entry][1] += uncertain
    return tuple(UsageIncrement(entry, used, uncertain) for entry, (used, uncertain) in sums.items())
