"""Lists of parts as CSV, whatever stands between the cells and however it is encoded."""

import csv
import io
from collections.abc import Iterator
from io import BufferedReader

from proxy.compare.sources import bom, lines
from proxy.compare.sources.entries import Item, Unreadable

SIZE_MAX = 1 << 26  # bytes; a list of parts is read whole to know how it is encoded
DELIMITERS = ",;\t|"
SAMPLE = 30  # rows by which the delimiter is known

LONG = f"is larger than a list of parts can be ({SIZE_MAX >> 20} MiB)"
BROKEN = "is no CSV from here on: a quote may not be closed"


def read(stream: BufferedReader, named: bom.Names = bom.NONE) -> Iterator[Item]:
    """Calls of parts/match for its rows; `named` are columns by v3's keys."""
    data = stream.read(SIZE_MAX + 1)
    if len(data) > SIZE_MAX:
        yield Unreadable(1, LONG)
        return
    text = decoded(data)
    broken: list[Unreadable] = []
    yield from bom.read(_rows(text, broken, named), named)
    yield from broken


def _rows(text: str, broken: list[Unreadable], named: bom.Names) -> Iterator[bom.Row]:
    """The rows by the lines they begin in, as far as they can be told apart."""
    begin = 1
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter(text, named))
    try:
        for row in reader:
            yield begin, row
            begin = reader.line_num + 1
    except csv.Error:
        broken.append(Unreadable(begin, BROKEN))


def decoded(data: bytes) -> str:
    """UTF-16 where it is marked, UTF-8 where it can be, else what Excel writes in Western Europe."""
    if lines.is_utf16(data):
        return data.decode("utf-16", "replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def delimiter(text: str, named: bom.Names = bom.NONE) -> str:
    """The one that cuts the first rows into the most cells that make a header, or into the most cells at all."""
    sample = "\n".join(text.splitlines()[:SAMPLE]) if len(text) < SIZE_MAX // 64 else text[: SIZE_MAX // 64]
    return max(DELIMITERS, key=lambda each: _fitness(sample, each, named))


def _fitness(sample: str, each: str, named: bom.Names) -> tuple[int, int]:
    try:
        rows = list(csv.reader(io.StringIO(sample, newline=""), delimiter=each))[:SAMPLE]
    except csv.Error:
        return 0, 0
    return max((len(bom.columns(row, named)) for row in rows), default=0), max(map(len, rows), default=0)
