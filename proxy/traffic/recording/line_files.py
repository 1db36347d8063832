"""Line-based files, plain or compressed, that may be truncated; and a spool of lines by key.

An interrupted run leaves truncated files, of which everything up to the last whole line is read.
"""

import errno
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Self

import msgspec

from proxy.kit import zstd
from proxy.traffic import files

CHUNK = 1 << 18
LINE_MAX = 256 << 20  # bytes; this program writes no longer lines


class WholeLines:
    """Whole lines of a file, without line ends. After iteration, `cut` tells whether the file ends within a line.

    Raises OSError where the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.cut = False
        self._rest = b""

    def __iter__(self) -> Iterator[bytes]:
        with self._path.open("rb") as raw, files.unpacked(raw) as stream:
            try:
                while (line := stream.readline(LINE_MAX)).endswith(b"\n"):
                    yield line[:-1]
                self.cut, self._rest = bool(line), line
            except files.TruncatedFile:
                self.cut = True

    def with_last(self) -> Iterator[bytes]:
        """Yield also a last line that lacks its line end, as in files that people edit: one that is cut is not JSON."""
        yield from self
        if _is_json(self._rest):
            self.cut = False
            yield self._rest


def _is_json(text: bytes) -> bool:
    try:
        msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return False
    return True


class ZstdFrames:
    """Decompressed frames of a zstd file. After iteration, `end` is the length of the whole frames in the file, in
    bytes, and `cut` tells whether more data follows."""

    def __init__(self, raw: IO[bytes]) -> None:
        self._raw = raw
        self.end = 0
        self.cut = False

    def __iter__(self) -> Iterator[bytes]:
        frame, read, pending = zstd.ZstdDecompressor(), 0, b""
        while chunk := pending or self._raw.read(CHUNK):
            pending = b""
            try:
                text = frame.decompress(chunk)
            except zstd.ZstdError:
                self.cut = True
                return
            read += len(chunk)
            if frame.eof:
                pending = frame.unused_data
                self.end = read = read - len(pending)
                frame = zstd.ZstdDecompressor()
            yield text
        self.cut = self.end < read


def whole_frames(path: Path) -> int:
    """Return the length of a zstd file's whole frames, in bytes: new frames can be appended there."""
    with path.open("rb") as file:
        frames = ZstdFrames(file)
        for _ in frames:
            pass
        return frames.end


def open_locked(path: Path) -> IO[bytes]:
    """Open a file for appending, exclusively locked until it is closed; a new file is readable by its owner alone.

    Raises OSError, also where another run holds the lock.
    """
    file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise OSError(errno.EBUSY, "another run is writing to it") from None
    if not path.stat().st_size:
        os.fchmod(file.fileno(), 0o600)
    return file


class Spool:
    """Map of lines by key, compressed in an anonymous temporary file, because recordings may exceed memory."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._places: dict[str, tuple[int, int]] = {}
        self._end = 0

    def add(self, key: str, line: bytes) -> None:
        """Store a line; it replaces an earlier one with the same key."""
        packed = zstd.compress(line, 1)
        self._file.seek(self._end)
        self._file.write(packed)
        self._places[key] = (self._end, len(packed))
        self._end += len(packed)

    def get(self, key: str) -> bytes | None:
        place = self._places.get(key)
        if place is None:
            return None
        self._file.seek(place[0])
        return zstd.decompress(self._file.read(place[1]))

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[bytes]:
        """Yield all lines, in the order in which their keys were first added."""
        for key in self._places:
            line = self.get(key)
            if line is not None:
                yield line

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
