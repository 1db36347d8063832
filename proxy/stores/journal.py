"""What a worker has booked and the store does not have yet, in files beside the store's: written before a reply leaves.

What is in a file's pages outlives the end of the process like a transaction does, and to put it there is no call of the
system: a write would cost ten times as much, and let another thread in. Each file is that of one settlement, and goes
once the store has it. Those of a worker that was killed are settled by whoever opens the store next; a settlement that
came through all the same is booked once, because it has the same number.
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

from proxy.stores.base import Booking, Line, Settlement

PAGES = 65_536  # bytes that a file grows by


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
        end = self._end + len(text)
        if self._pages is None or end > self._size:
            self._pages = self._grown(end)
        self._pages[self._end : end] = text
        self._end = end

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
        self._known: dict[int, tuple[Sequence[Line], bytes]] = {}

    def note(self, sequence: int, lines: Sequence[Line], used: int, doubtful: int) -> None:
        """These parts are in the settlement of that number. Raises OSError, and then they are not noted."""
        file = self._files.get(sequence)
        if file is None:
            file = self._files[sequence] = _File(self._name(sequence))
            self._known.clear()  # callers have other tuples every day
        known = self._known.get(id(lines))
        if known is None or known[0] is not lines:  # callers hand in the same tuple all day
            known = self._known[id(lines)] = lines, msgspec.json.encode(lines)
        file.append(b"[%d,%d,%s]\n" % (used, doubtful, known[1]))

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
            if bookings := _bookings(opened.read()):  # without any it may be that of a worker that begins just now
                yield file, Settlement(owner, sequence, (), bookings)


def _named(path: Path) -> Iterator[tuple[str, int, Path]]:
    """Owner and number of every file beside `path`."""
    for file in path.parent.glob(f"{glob.escape(path.name)}.*.journal"):
        owner, sequence = file.name.removeprefix(f"{path.name}.").split(".")[:2]
        yield owner, int(sequence), file


def _bookings(content: bytes) -> tuple[Booking, ...]:
    """Summed up by line. After the last line there are zeros; one that is cut was not noted: nobody was told that it
    was."""
    sums: dict[Line, list[int]] = defaultdict(lambda: [0, 0])
    for text in content.split(b"\n")[:-1]:
        try:
            used, doubtful, lines = msgspec.json.decode(text, type=tuple[int, int, list[Line]])
        except msgspec.MsgspecError:
            break
        for line in lines:
            sums[line][0] += used
            sums[line][1] += doubtful
    return tuple(Booking(line, used, doubtful) for line, (used, doubtful) in sums.items())
