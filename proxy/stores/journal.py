"""What a worker has booked and the store does not have yet, in files beside the store's: written before a reply leaves.

A write into a file outlives the end of the process like a transaction does, at a hundredth of its price. Each file is
that of one settlement, and goes once the store has it. Those of a worker that was killed are settled by whoever opens
the store next; a settlement that came through all the same is booked once, because it has the same number.
"""

import fcntl
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from proxy.stores.base import Booking, Line, Settlement


class Journal:
    """The files of one worker, `owner` to the store. Names are those of `path` with the owner and a number after it."""

    def __init__(self, path: Path, owner: str) -> None:
        self._path = path
        self._owner = owner
        self._files: dict[int, int] = {}
        self._known: dict[int, tuple[Sequence[Line], bytes]] = {}

    def note(self, sequence: int, lines: Sequence[Line], used: int, doubtful: int) -> None:
        """These parts are in the settlement of that number. Raises OSError, and then they are not noted."""
        descriptor = self._files.get(sequence)
        if descriptor is None:
            descriptor = self._files[sequence] = _create(self._name(sequence))
        known = self._known.get(id(lines))
        if known is None or known[0] is not lines:  # callers hand in the same tuple all day
            known = self._known[id(lines)] = lines, msgspec.json.encode(lines)
        os.write(descriptor, b"[%d,%d,%s]\n" % (used, doubtful, known[1]))

    def settled(self, sequence: int) -> None:
        """The store has the settlement of that number."""
        descriptor = self._files.pop(sequence, None)
        if descriptor is not None:
            self._name(sequence).unlink(missing_ok=True)
            os.close(descriptor)

    def close(self) -> None:
        """Leave what is not settled to whoever comes next."""
        for descriptor in self._files.values():
            os.close(descriptor)
        self._files.clear()

    def _name(self, sequence: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{self._owner}.{sequence}.journal")


def left_behind(path: Path) -> Iterator[tuple[Path, Settlement]]:
    """The settlements of workers that are no more, each with its file."""
    for file in sorted(path.parent.glob(f"{path.name}.*.journal")):
        owner, sequence = file.name.removeprefix(f"{path.name}.").split(".")[:2]
        with file.open("rb") as opened:
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                continue  # its worker lives
            if bookings := _bookings(opened.read()):  # without any it may be that of a worker that begins just now
                yield file, Settlement(owner, int(sequence), (), bookings)


def _create(file: Path) -> int:
    """Locked for as long as the process lives."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


def _bookings(content: bytes) -> tuple[Booking, ...]:
    """Summed up by line. A last line that is cut was not noted: nobody was told that it was."""
    sums: dict[Line, list[int]] = defaultdict(lambda: [0, 0])
    for text in content.split(b"\n")[:-1]:
        used, doubtful, lines = msgspec.json.decode(text, type=tuple[int, int, list[Line]])
        for line in lines:
            sums[line][0] += used
            sums[line][1] += doubtful
    return tuple(Booking(line, used, doubtful) for line, (used, doubtful) in sums.items())
