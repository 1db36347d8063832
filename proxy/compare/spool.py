"""Lines by key, on disk: what is too much for memory and has to be found again. Gone when the program ends."""

import tempfile
from collections.abc import Iterator
from typing import Self

import zstandard


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
