"""Bytes and lines of a file, independent of its compression and encoding.

Log rotation produces .gz, .bz2 and .xz. Bytes that are not UTF-8 become surrogates. A crash or a rotation can leave
null bytes in a log: they are treated as blanks.
"""

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from proxy import errors
from proxy.traffic import bom_columns

CHUNK = 1 << 18  # bytes that are read at a time
LINE_MAX = 1 << 26  # characters; lines of recordings hold whole responses
UNPACKERS: dict[bytes, Callable[[Any], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
}


class TruncatedFile(Exception):  # noqa: N818  (named by what has happened)
    """Compressed data that is truncated or damaged, or a file that cannot be read further."""


@contextmanager
def open_file(path: Path) -> Iterator["io.BufferedReader[Any]"]:
    """Open a file, decompressed. Opening raises SourceError; reading raises TruncatedFile at damage or truncation."""
    try:
        if path.exists() and not path.is_file():
            raise errors.SourceError(f"{path}: is not a file")
        file = path.open("rb")
    except OSError as error:
        raise errors.SourceError(f"{path}: cannot be read: {error.strerror}") from None
    with file:
        start = file.peek(6)
        unpack = next((unpack for mark, unpack in UNPACKERS.items() if start.startswith(mark)), None)
        yield io.BufferedReader(_CheckedStream(file if unpack is None else unpack(file)), CHUNK)


class _CheckedStream(io.RawIOBase):
    """Stream that converts the errors of all decompressors to TruncatedFile."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        try:
            data = self._inner.read1(len(buffer))  # `read` would discard the data before a truncation
        except EOFError:
            raise TruncatedFile("the compressed file is cut") from None
        except (OSError, zlib.error, lzma.LZMAError) as error:
            raise TruncatedFile("the file is damaged") from error
        buffer[: len(data)] = data
        return len(data)


def read_lines(stream: io.BufferedReader) -> Iterator[tuple[int, str]]:
    """Yield number and stripped text of each non-blank line, whose text ends at LINE_MAX."""
    encoding, mistakes = (
        ("utf-16", "replace") if stream.peek(2).startswith(bom_columns.UTF16) else ("utf-8", "surrogateescape")
    )
    text = io.TextIOWrapper(stream, encoding, mistakes, newline="\n")
    try:
        number = 0
        while line := text.readline(LINE_MAX):
            number += 1
            rest = line
            while not rest.endswith("\n") and (rest := text.readline(LINE_MAX)):
                pass
            if kept := line.strip("\r\n\t \ufeff\0"):
                yield number, kept
    finally:
        text.detach()
