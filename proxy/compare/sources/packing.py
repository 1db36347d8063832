"""A file's bytes, unpacked where it is compressed: log rotation leaves .gz, .bz2 and .xz, recordings are .zst."""

import bz2
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


class Cut(Exception):  # noqa: N818  (named by what has happened)
    """A file that ends in the middle of its compressed data, is damaged, or cannot be read on."""


@contextmanager
def opened(path: Path) -> Iterator["io.BufferedReader[Any]"]:
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
            raise Cut("the compressed file is cut") from None
        except (OSError, zlib.error, lzma.LZMAError) as error:
            raise Cut("the file is damaged") from error
        except Exception as error:  # zstandard's own, which is not there to be named
            raise Cut("the compressed file is damaged") from error
        buffer[: len(data)] = data
        return len(data)
