"""Columns of bills of materials: their names in several languages and programs, the header row, words that stand for no
part, encoding and delimiter of CSV.

`compare` reads such tables into requests, `sheet` fills them. Names are compared without case, accents, spaces and
punctuation, so that one name stands for many spellings.
"""

import codecs
import contextlib
import csv
import io
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from proxy.kit import located_yaml

HEADER_ROWS = 30  # rows in which the header is searched for, because exports begin with titles
EXAMINED_ROWS = 200  # that a header may explain
DELIMITERS = ",;\t|"
SAMPLE = 30  # rows that are examined to detect the delimiter
SAMPLE_CHARACTERS = 1 << 20
NUMBERS = ("mpn", "sku")  # keys of the columns of which a table needs one
WORD_MAX = 40  # characters of a word that stands for no part
BROKEN = 'is not valid CSV from here on: a quote (") that begins a cell may not be closed; close or delete it'
_FIRST = re.compile(r"\D1$")
UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

_GROUPS = located_yaml.load(Path(__file__).with_name("bom_headings.yaml"), ValueError).data
HEADINGS: dict[str, list[str]] = {
    role: [name for group in groups for name in group] for role, groups in _GROUPS.items()
}
"""Headings by role: those of bom_headings.yaml."""


class BrokenRow(Exception):  # noqa: N818  (named by what has happened)
    """The row of a table that is BROKEN."""

    def __init__(self, row: int) -> None:
        super().__init__(BROKEN)
        self.row = row


def plain(name: str) -> str:
    """Normalize a column name: no case, accents, spaces or punctuation; a name of punctuation alone is unchanged."""
    letters = (each for each in unicodedata.normalize("NFKD", name) if not unicodedata.combining(each))
    return "".join(filter(str.isalnum, letters)).lower() or name.strip()


_KNOWN = {role: [plain(name) for name in names] for role, names in HEADINGS.items()}
_ALL_KNOWN = {name for names in _KNOWN.values() for name in names}

# Of a line that is not populated, any cell may say so, in the words that head such a column.
NOT_POPULATED = frozenset(_KNOWN["dnp"])
_NO_PARTS = "n/a none null nil nan 0 tbd tbc tba unknown undefined not-applicable to-be-determined to-be-defined"
# Words that stand for no part or manufacturer, or head their column. A query for `N/A` may find a part, and cost it.
PLACEHOLDERS = NOT_POPULATED.union(map(plain, _NO_PARTS.split()), _KNOWN["mpn"])


def is_one_of(words: frozenset[str], text: str) -> bool:
    """Return whether a cell is one of some words in plain spelling."""
    return 0 < len(text) <= WORD_MAX and plain(text) in words


def columns(row: Sequence[str]) -> dict[str, int]:
    """Return the column index of each role if this row is the header; empty without a number. `designator` is there
    where nothing else tells quantities."""
    own = list(map(plain, row))
    # Of `Supplier 1` and `Supplier 2`, the first is used; `Supplier` comes before both.
    places = {name.removesuffix("1"): index for index, name in reversed(list(enumerate(own))) if _FIRST.search(name)}
    # `Mfr #` is a number where `Mfr` would be a name.
    numbered = (plain(cell.replace("#", " no").replace("№", " no")) for cell in row)
    names = [given if given in _ALL_KNOWN else name for given, name in zip(numbered, own, strict=True)]
    places |= {name: index for index, name in reversed(list(enumerate(names)))}
    first = {role: next(filter(places.__contains__, names), None) for role, names in _KNOWN.items()}
    entry = {role: places[name] for role, name in first.items() if name is not None and role != "value"}
    if "quantity" in entry:
        entry.pop("designator", None)
    return entry if any(key in entry for key in NUMBERS) else {}


def best_header(rows: Sequence[Sequence[str]], possible: Mapping[int, Mapping[str, int]]) -> tuple[int, int]:
    """Return the index of the row that explains the rows below it best, and how well.

    A title such as `Part Number:` names a column, too, but what is below it is no line of parts. Each row counts by the
    square of the number of its cells that fit. Of equals, the last is nearest to the parts.
    """
    scores: dict[int, int] = {}
    seen = set[tuple[str, ...]]()
    for index, places in possible.items():
        headings = tuple(plain(rows[index][at]) for at in sorted(places.values()))
        if headings in seen:  # those of a second block
            continue
        seen.add(headings)
        scores[index] = 0
        for at, row in enumerate(rows[index + 1 :], index + 1):
            cells = {role: row[place].strip() for role, place in places.items() if place < len(row)}
            fitting = {role for role, text in cells.items() if any(map(str.isalnum, text)) and not text.endswith(":")}
            if not cells.get("quantity", "")[:1].isdecimal():
                fitting.discard("quantity")
            if at not in possible and fitting.intersection(NUMBERS):
                scores[index] += len(fitting) ** 2
    best = max(scores, key=lambda index: (scores[index], len(possible[index]), index))
    return best, scores[best]


def encoding(data: bytes) -> str:
    """Detect the encoding; for UTF-8 and UTF-16 with a byte order mark, one that removes it."""
    if data.startswith(UTF16):
        return "utf-16"
    try:
        data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8-sig"


def delimiter(text: str) -> str:
    """Detect the delimiter: the one whose first rows have the most header cells, then the most cells."""
    few = len(text) < SAMPLE_CHARACTERS
    sample = "\n".join(text.splitlines()[:SAMPLE]) if few else text[:SAMPLE_CHARACTERS]
    fitness: dict[str, tuple[int, int]] = dict.fromkeys(DELIMITERS, (0, 0))
    for each in DELIMITERS:
        with contextlib.suppress(csv.Error):
            rows = list(csv.reader(io.StringIO(sample, newline=""), delimiter=each))[:SAMPLE]
            fitness[each] = max((len(columns(row)) for row in rows), default=0), max(map(len, rows), default=0)
    return max(DELIMITERS, key=fitness.__getitem__)


def rows(text: Iterable[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of the lines of a CSV file, with the numbers of their first lines. A quote inside a cell is text,
    as in `1/4" spacer`. Raises BrokenRow where a cell would swallow other rows."""
    taken: list[str] = []

    def lines() -> Iterator[str]:
        for line in chain(text, [""]):  # the end, which a quote that stays open takes, too
            taken.append(line)
            yield line

    begin = 1
    try:
        for row in csv.reader(lines(), delimiter=delimiter):
            if taken == [""]:
                return
            if len(taken) > 1:
                _check_lines(taken, len(row), delimiter)
            yield begin, row
            begin += len(taken)
            taken.clear()
    except csv.Error:
        raise BrokenRow(begin) from None


def _check_lines(lines: Sequence[str], width: int, delimiter: str) -> None:
    """Raise csv.Error if the quotes of a row of several lines are wrong, or if each of them would be a row, with a
    number such as a quantity."""
    for _ in csv.reader(lines, delimiter=delimiter, strict=True):
        pass
    each = [line.split(delimiter) for line in lines]
    if all(len(cells) == width and any(cell.strip().isdecimal() for cell in cells) for cells in each):
        raise csv.Error
