"""Journal of the SQLite store: usage and intents of a worker, in files that are written before a response leaves.

What is written to a file outlives the process as a transaction does, and takes some microseconds. Files are written,
not mapped into memory: access to a page behind the end of a file that somebody has truncated would kill the process.
Whether somebody has is looked up after each settlement, five times a second: for each write it would take as long as
the write.
Each file holds the usage of one settlement, and is removed once the store has it. Files of a worker that was killed are
settled by the next process that opens the store; a settlement that had come through all the same has the same number,
and is booked once.

One more file holds the worker's intents: what each request in flight may cost, in a slot of its own, written before the
request is sent and cleared when it is booked. Slots that a killed worker leaves filled become uncertain usage. The
file has its room from the start, so that a disk that is full later loses no usage.
"""

import contextlib
import errno
import fcntl
import glob
import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import msgspec
import structlog

from proxy.stores.protocols import EntryGroup, LedgerEntry, Settlement, UsageIncrement

SLOT = 1_024  # bytes of an intent: its parts and the entries it is booked on
SLOTS_RESERVED = 256  # for which the disk has room, however full it is later
INTENTS_SEQUENCE = 1 << 62  # of the settlement of a dead worker's intents: its owner sends none after it
FREE = b"\0"  # first byte of a slot without an intent

log = structlog.get_logger()


class _File:
    """File of a worker. Locked for as long as the process lives."""

    def __init__(self, path: Path) -> None:
        """Raise OSError, as does `append`."""
        self.path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            # The lock tells left_behind() of another process that this worker lives; the kernel releases it with the
            # process.
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        except OSError:
            os.close(self._descriptor)
            raise
        self._end = 0

    def append(self, text: bytes) -> None:
        """Append after the existing content."""
        self.write(self._end, text)

    def is_truncated(self) -> bool:
        """Return whether something else has truncated the file: what was written is lost."""
        return os.fstat(self._descriptor).st_size < self._end

    def write(self, start: int, text: bytes) -> None:
        """Write at an offset."""
        if os.pwrite(self._descriptor, text, start) < len(text):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._end = max(self._end, start + len(text))

    def close(self) -> None:
        """Close the file, and leave its content."""
        os.close(self._descriptor)

    def remove(self) -> None:
        """Delete the file. If that fails, its content is still booked only once, by the settlement's number."""
        with contextlib.suppress(OSError):
            self.path.unlink()
        self.close()


class FileJournal:
    """Journal files of one worker. Their names are `path`, the owner and the number of the settlement."""

    def __init__(self, path: Path, owner: str) -> None:
        self._path = path
        self._owner = owner
        self._files: dict[int, _File] = {}
        self._intents: _File | None = None
        self._open: dict[int, bytes] = {}  # texts of open intents by slot
        self._free: list[int] = []  # other slots that were used before
        self._held: dict[EntryGroup, tuple[int, int]] = {}  # slot and parts of usage that is only in memory
        with contextlib.suppress(OSError):  # the first intent tries again
            self._opened_intents()

    def open_intent(self, parts: int, group: EntryGroup) -> int:
        number = self._free[-1] if self._free else len(self._open)
        self._fill_slot(number, parts, group)
        # Taken only now: a write that failed leaves the slot free.
        if self._free:
            self._free.pop()
        return number

    def close_intent(self, number: int) -> None:
        self._open.pop(number, None)
        self._free.append(number)
        with contextlib.suppress(OSError):  # it would become uncertain usage, which is the safe side
            self._write_slot(number, FREE)

    def hold_usage(self, number: int, group: EntryGroup, parts: int) -> None:
        slot, before = self._held.get(group, (number, 0))
        self._held[group] = slot, before + parts
        with contextlib.suppress(OSError):  # the intent stays as it is
            self._fill_slot(slot, before + parts, group)
            if slot != number:
                self.close_intent(number)

    def release_held(self) -> None:
        for slot, _ in self._held.values():
            self.close_intent(slot)
        self._held.clear()

    def record_usage(self, sequence: int, group: EntryGroup, used: int, uncertain: int) -> None:
        file = self._files.get(sequence)
        if file is None:
            file = self._files[sequence] = _File(
                self._path.with_name(f"{self._path.name}.{self._owner}.{sequence}.journal")
            )
        file.append(b"[%d,%d,%s]\n" % (used, uncertain, group.json))

    def settled(self, sequence: int) -> None:
        file = self._files.pop(sequence, None)
        if file is not None:
            file.remove()
        if self._intents is not None and self._intents.is_truncated():
            self._restore_intents(self._intents)

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        self._files.clear()
        if self._intents is not None:
            # No intent is open: there is nothing for the next process to book.
            if not self._open:
                self._intents.remove()
            else:
                self._intents.close()
            self._intents = None

    def _opened_intents(self) -> _File:
        if self._intents is None:
            self._intents = _File(self._path.with_name(f"{self._path.name}.{self._owner}.intents"))
            self._intents.write(0, bytes(SLOTS_RESERVED * SLOT))
        return self._intents

    def _fill_slot(self, number: int, parts: int, group: EntryGroup) -> None:
        text = b"%d %s\n" % (parts, group.json)
        # Only very long names of applications and keys; the caller then records the intent in the store.
        if len(text) > SLOT:
            raise OSError(errno.EMSGSIZE, os.strerror(errno.EMSGSIZE))
        self._write_slot(number, text)
        self._open[number] = text

    def _write_slot(self, number: int, text: bytes) -> None:
        self._opened_intents().write(number * SLOT, text)

    def _restore_intents(self, file: _File) -> None:
        slots = max(SLOTS_RESERVED, len(self._open) + len(self._free))
        with contextlib.suppress(OSError):  # the next settlement tries again
            file.write(0, b"".join(self._open.get(slot, FREE).ljust(SLOT, b"\0") for slot in range(slots)))
            log.warning("intents restored", file=str(file.path))


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
