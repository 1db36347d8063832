"""Bytes and lines of a file, whatever its compression and encoding.

Log rotation leaves .gz, .bz2 and .xz, recordings are .zst. Bytes that are not UTF-8 are kept as surrogates. A crash or
a rotation can leave zeros in a log: they count as blank.
"""

import bz2
import codecs
import gzip
import io
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from proxy import errors

_ZSTANDARD = b"\x28\xb5\x2f\xfd"


class TruncatedFile(Exception):  # noqa: N818  (named by what has happened)
    """A file that ends in the middle of its compressed data, is damaged, or cannot be read on."""


@contextmanager
def open_file(path: Path) -> Iterator["io.BufferedReader[Any]"]:
    """The bytes of a file. Reading raises Cut where they end too early; opening raises SourceError."""
    try:
        if path.exists() and not path.is_file():
            raise errors.SourceError(f"{path}: is no file")
        file = path.open("rb")
    except OSError as error:
        raise errors.SourceError(f"{path}: cannot be read: {error.strerror}") from None
    with file, io.BufferedReader(_Careful(_unpacked(file, path))) as stream:
        yield stream


def _unpacked(file: io.BufferedReader, path: Path) -> Any:
    start = file.peek(6)
    if start.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=file)
    if start.startswith(b"BZh"):
        return bz2.BZ2File(file)
    if start.startswith(b"\xfd7zXZ\x00"):
        return lzma.LZMAFile(file)
    return _zstandard(file, path) if start.startswith(_ZSTANDARD) else file


def _zstandard(file: io.BufferedReader, path: Path) -> Any:
    try:
        import zstandard
    except ImportError:
        raise errors.SourceError(f"{path}: is compressed with zstd: pip install zstandard reads it") from None
    return zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)


class _Careful(io.RawIOBase):
    """One kind of error, whoever unpacks."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        try:
            data = self._inner.read1(len(buffer))  # read would lose what comes just before a cut
        except EOFError:
            raise TruncatedFile("the compressed file is cut") from None
        except (OSError, zlib.error, lzma.LZMAError) as error:
            raise TruncatedFile("the file is damaged") from error
        except Exception as error:  # zstandard's own, which is not there to be named
            raise TruncatedFile("the compressed file is damaged") from error
        buffer[: len(data)] = data
        return len(data)


LOG_LINE = 1 << 18  # characters; servers refuse request lines long before
JSON_LINE = 1 << 26  # lines of recordings hold whole answers

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read_lines(stream: io.BufferedReader, longest: int = LOG_LINE) -> Iterator[tuple[int, str | None]]:
    """Number and text of each line that is not blank, without its end; None for one that is too long to be read."""
    encoding, mistakes = ("utf-16", "replace") if is_utf16(stream.peek(2)) else ("utf-8", "surrogateescape")
    text = io.TextIOWrapper(stream, encoding, mistakes, newline="\n")
    try:
        number = 0
        while line := text.readline(longest + 1):
            number += 1
            if len(line) > longest and not line.endswith("\n"):
                _pass_over(text, longest)
                yield number, None
            elif kept := line.strip("\r\n\t \ufeff\0"):
                yield number, kept
    finally:
        text.detach()


def is_utf16(start: bytes) -> bool:
    """What Windows writes where it is not told otherwise."""
    return start.startswith(_UTF16)


def _pass_over(text: io.TextIOWrapper, longest: int) -> None:
    """The rest of a line."""
    while (more := text.readline(longest)) and not more.endswith("\n"):
        pass
