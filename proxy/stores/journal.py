"""What a worker has booked and the store does not have yet, in files beside the store's: written before a reply leaves.

What is in a file's pages outlives the end of the process like a transaction does, and to put it there is no call of the
system: a write would cost ten times as much, and let another thread in. Each file is that of one settlement, and goes
once the store has it. Those of a worker that was killed are settled by whoever opens the store next; a settlement that
came through all the same is booked once, because it has the same number.

A file more holds the worker's intents: what each request under way may cost, in a slot of its own, written before the
request is sent and cleared when it is booked. Slots that a killed worker leaves filled become uncertain usage.
"""

import contextlib
import errno
import fcntl
import glob
import mmap
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from proxy.stores.protocols import LedgerEntry, Settlement, UsageIncrement

PAGES = 65_536  # bytes that a file grows by
SLOT = 1_024  # bytes of an intent: its parts and the lines it is booked on
LAST = 1 << 62  # the settlement that books what a dead worker's intents may have cost: no other comes after it
FREE = b"\0"  # what a slot without an intent begins with


class _File:
    """One settlement's notes, in memory that is the file's. Locked for as long as the process lives."""

    def __init__(self, path: Path) -> None:
        """Raises OSError, as does `append`."""
        self._path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        except OSError:
            os.close(self._descriptor)
            raise
        self._size = self._end = 0
        self._pages: mmap.mmap | None = None

    def append(self, text: bytes) -> None:
        """After what is there already."""
        self.write(self._end, text)

    def write(self, start: int, text: bytes) -> None:
        """At a place of its own."""
        end = start + len(text)
        if self._pages is None or end > self._size:
            self._pages = self._grown(end)
        self._pages[start:end] = text
        self._end = max(self._end, end)

    def close(self) -> None:
        """Leave it as it is."""
        if self._pages is not None:
            self._pages.close()
        os.close(self._descriptor)

    def remove(self) -> None:
        """It is no longer needed. One that stays does no harm: what is in it is booked once."""
        with contextlib.suppress(OSError):
            self._path.unlink()
        self.close()

    def _grown(self, least: int) -> mmap.mmap:
        """Space that is really there: pages of a full disk would end the process."""
        size = -(-least // PAGES) * PAGES
        more = size - self._size
        if os.pwrite(self._descriptor, bytes(more), self._size) < more:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        pages = mmap.mmap(self._descriptor, size)
        if self._pages is not None:
            self._pages.close()
        self._size = size
        return pages


class Journal:
    """The files of one worker, `owner` to the store. Names are those of `path` with the owner and a number after it."""

    def __init__(self, path: Path, owner: str) -> None:
        self._path = path
        self._owner = owner
        self._files: dict[int, _File] = {}
        self._known: dict[int, tuple[Sequence[LedgerEntry], bytes]] = {}
        self._intents: _File | None = None
        self._free: list[int] = []
        self._slots = 0

    def open_intent(self, parts: int, lines: Sequence[LedgerEntry]) -> int:
        """Record that a request is about to be sent, and return its number. Raises OSError, and then it is not."""
        if self._intents is None:
            self._intents = _File(self._path.with_name(f"{self._path.name}.{self._owner}.intents"))
        text = b"%d %s\n" % (parts, self._encoded(lines))
        if len(text) > SLOT:
            raise OSError(errno.EMSGSIZE, os.strerror(errno.EMSGSIZE))
        number = self._free[-1] if self._free else self._slots
        self._intents.write(number * SLOT, text)
        if self._free:
            self._free.pop()
        else:
            self._slots += 1
        return number

    def close_intent(self, number: int) -> None:
        """The request is booked."""
        if self._intents is not None:
            self._intents.write(number * SLOT, FREE)
            self._free.append(number)

    def note(self, sequence: int, lines: Sequence[LedgerEntry], used: int, doubtful: int) -> None:
        """These parts are in the settlement of that number. Raises OSError, and then they are not noted."""
        file = self._files.get(sequence)
        if file is None:
            file = self._files[sequence] = _File(self._name(sequence))
            self._known.clear()  # callers have other tuples every day
        file.append(b"[%d,%d,%s]\n" % (used, doubtful, self._encoded(lines)))

    def settled(self, sequence: int) -> None:
        """The store has the settlement of that number."""
        file = self._files.pop(sequence, None)
        if file is not None:
            file.remove()

    def close(self) -> None:
        """Leave what is not settled to whoever comes next."""
        for file in self._files.values():
            file.close()
        self._files.clear()
        if self._intents is not None:
            if len(self._free) == self._slots:
                self._intents.remove()
            else:
                self._intents.close()
            self._intents = None

    def _encoded(self, lines: Sequence[LedgerEntry]) -> bytes:
        known = self._known.get(id(lines))
        if known is None or known[0] is not lines:  # callers hand in the same tuple all day
            known = self._known[id(lines)] = lines, msgspec.json.encode(lines)
        return known[1]

    def _name(self, sequence: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{self._owner}.{sequence}.journal")


def left_behind(path: Path) -> Iterator[tuple[Path, Settlement]]:
    """The settlements of workers that are no more, each with its file; those of one worker in the order of their
    numbers, because the store books none after a later one. Others may do the same at this moment."""
    held: set[str] = set()
    for owner, sequence, file in sorted(_named(path)):
        if owner in held:
            continue
        with contextlib.suppress(FileNotFoundError), file.open("rb") as opened:  # it may be settled just now
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                held.add(owner)  # its worker lives, or somebody settles it
                continue
            content = opened.read()
            if bookings := _uncertain(content) if sequence == LAST else _bookings(content):
                yield file, Settlement(owner, sequence, (), bookings)
            elif content and sequence == LAST:  # an empty one may be that of a worker that begins just now
                file.unlink()


def _named(path: Path) -> Iterator[tuple[str, int, Path]]:
    """Owner and number of every file beside `path`; intents are the last of their owner."""
    for file in path.parent.glob(f"{glob.escape(path.name)}.*.journal"):
        owner, sequence = file.name.removeprefix(f"{path.name}.").split(".")[:2]
        yield owner, int(sequence), file
    for file in path.parent.glob(f"{glob.escape(path.name)}.*.intents"):
        yield file.name.removeprefix(f"{path.name}.").removesuffix(".intents"), LAST, file


def _uncertain(content: bytes) -> tuple[UsageIncrement, ...]:
    """What open intents may have cost, by line. A slot that is cut was never followed by a request."""
    sums: dict[LedgerEntry, int] = defaultdict(int)
    for start in range(0, len(content), SLOT):
        parts, _, lines = content[start : start + SLOT].partition(b"\n")[0].partition(b" ")
        with contextlib.suppress(ValueError, msgspec.MsgspecError):
            for line in msgspec.json.decode(lines, type=list[LedgerEntry]):
                sums[line] += int(parts)
    return tuple(UsageIncrement(line, 0, parts) for line, parts in sums.items())


def _bookings(content: bytes) -> tuple[UsageIncrement, ...]:
    """Summed up by line. After the last line there are zeros; one that is cut was not noted: nobody was told that it
    was."""
    sums: dict[LedgerEntry, list[int]] = defaultdict(lambda: [0, 0])
    for text in content.split(b"\n")[:-1]:
        try:
            used, doubtful, lines = msgspec.json.decode(text, type=tuple[int, int, list[LedgerEntry]])
        except msgspec.MsgspecError:
            break
        for line in lines:
            sums[line][0] += used
            sums[line][1] += doubtful
    return tuple(UsageIncrement(line, used, doubtful) for line, (used, doubtful) in sums.items())
