"""Files of lines, plain or compressed with zstd or gzip, that may be truncated; and a spool of lines by key.

An interrupted run leaves truncated files. Of those, everything up to the last whole line is read.
"""

import errno
import fcntl
import gzip
import io
import os
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Self

import zstandard

ZSTD, GZIP = b"\x28\xb5\x2f\xfd", b"\x1f\x8b"
CHUNK = 1 << 18
LINE_MAX = 256 << 20  # bytes; a longer line is nothing that this program wrote


class WholeLines:
    """The lines of a file, without their ends. After the last one `cut` says whether the file ends in the middle.

    Raises OSError where it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.cut = False

    def __iter__(self) -> Iterator[bytes]:
        with self._path.open("rb") as raw:
            rest = b""
            for chunk in self._chunks(raw):
                *whole, rest = (rest + chunk).split(b"\n")
                yield from whole
                if len(rest) > LINE_MAX:
                    break
            if rest:
                self.cut = True

    def _chunks(self, raw: io.BufferedReader) -> Iterator[bytes]:
        start = raw.peek(4)
        if start.startswith(ZSTD):
            frames = ZstdFrames(raw)
            yield from frames
            self.cut = frames.cut
            return
        plain = gzip.GzipFile(fileobj=raw) if start.startswith(GZIP) else raw
        try:
            while chunk := plain.read1(CHUNK):  # what can be had: `read` gives up what it has where more is missing
                yield chunk
        except (EOFError, zlib.error, gzip.BadGzipFile):
            self.cut = True


class ZstdFrames:
    """The text in the frames of a zstd file. After the last one `end` is how many bytes of the file are whole frames,
    and `cut` says whether there are more.
    """

    def __init__(self, raw: IO[bytes]) -> None:
        self._raw = raw
        self.end = 0
        self.cut = False

    def __iter__(self) -> Iterator[bytes]:
        frame, read, pending = zstandard.ZstdDecompressor().decompressobj(), 0, b""
        while chunk := pending or self._raw.read(CHUNK):
            pending = b""
            try:
                text = frame.decompress(chunk)
            except zstandard.ZstdError:
                self.cut = True
                return
            read += len(chunk)
            if frame.eof:
                pending = frame.unused_data
                self.end = read = read - len(pending)
                frame = zstandard.ZstdDecompressor().decompressobj()
            yield text
        self.cut = self.end < read


def whole_frames(path: Path) -> int:
    """How many bytes of a zstd file are whole frames: where more can be appended."""
    with path.open("rb") as file:
        frames = ZstdFrames(file)
        for _ in frames:
            pass
        return frames.end


def open_locked(path: Path) -> IO[bytes]:
    """A file to append to, for its owner alone if nothing is in it. Nobody else can hold it until it is closed.

    Raises OSError, also where another run holds it.
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
    """Kept compressed in a file without a name. Of two lines with one key the later counts."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._places: dict[str, tuple[int, int]] = {}
        self._end = 0
        self._compress = zstandard.ZstdCompressor(level=1).compress
        self._decompress = zstandard.ZstdDecompressor().decompress

    def add(self, key: str, line: bytes) -> None:
        """Keep a line."""
        packed = self._compress(line)
        self._file.seek(self._end)
        self._file.write(packed)
        self._places[key] = (self._end, len(packed))
        self._end += len(packed)

    def get(self, key: str) -> bytes | None:
        """The line of a key."""
        place = self._places.get(key)
        if place is None:
            return None
        self._file.seek(place[0])
        return self._decompress(self._file.read(place[1]))

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[bytes]:
        """All lines, in the order of their keys' first."""
        for key in self._places:
            line = self.get(key)
            if line is not None:
                yield line

    def close(self) -> None:
        """Forget all of it."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
