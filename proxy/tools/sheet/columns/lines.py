"""Lines of a table that have a part number: the header row, the columns that are used, and the values of each line."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, dropwhile, islice
from typing import NamedTuple

from proxy import errors
from proxy.tools.sheet.columns import quantities
from proxy.tools.sheet.package.cells import COLUMNS_MAX, column_name, column_number
from proxy.traffic import bom_columns
from proxy.traffic.bom_columns import NOT_POPULATED, is_one_of, plain

LINES_MAX = 100_000  # a BOM is far shorter; without a limit a hostile file would fill the memory
NUMBER_MAX = 200  # characters of a part number
NAME_MAX = 60  # characters of a heading in a message
OPTIONS = {
    "mpn": "--mpn-column",
    "brand": "--manufacturer-column",
    "sku": "--sku-column",
    "quantity": "--quantity-column",
}

# Stands for a cell whose text is unknown: a part number that Excel has converted to a date, an error, or a formula that
# was never calculated.
UNREADABLE = "…"
_UNREADABLE_CELLS = {
    "mpn": "part number: the line is left out",
    "sku": "SKU: the line is left out",
    "brand": "manufacturer: any is taken",
    "quantity": f"quantity: {quantities.STAY_EMPTY}",
}

# A line that begins with one of these adds up others, and what stands below the part numbers is no part.
TOTALS = frozenset(
    map(
        plain,
        (
            *("total", "totals", "grand total", "subtotal", "sub total", "sum", "Summe", "Gesamt", "Gesamtsumme"),
            *("Zwischensumme", "somme", "total général", "sous-total", "suma", "totale", "somma", "totaal", "soma"),
            *("razem", "łącznie", "celkem", "итого", "合计", "总计", "小计", "合計", "總計", "小計", "합계"),
        ),
    )
)
_YES = frozenset(("x", "1", "yes", "y", "true", "ja", "j", "oui", "sí", "si", *NOT_POPULATED))
_NO = frozenset(("0", "no", "n", "false", "nein", "non", *NOT_POPULATED))
_LETTERS = re.compile(r"[A-Za-z]{1,3}")
_RANGE = re.compile(r"([A-Za-z]+)(\d{1,5})-(?:\1)?(\d{1,5})")
# 10k, 4k7, 100nF/50V, 0.1uF 10%: what stands in a column of values, and would find and bill some part.
_VALUE = re.compile(r"[\d.,]+ ?[pnuµμmkMGR]?\d{0,2} ?(?:[FHVAWΩR%]|Hz|ohm)?(?:[ /,;_].*)?", re.IGNORECASE)

TableRow = tuple[int, Sequence[str]]


class TableReading(NamedTuple):
    """How a table is read. `named` are columns by role: headings, or letters; `header_row` is that of the headings.
    Without a `build`, quantities are those that are stated."""

    named: Mapping[str, str] = bom_columns.NONE
    header_row: int | None = None
    decimal: quantities.DecimalMark | None = None
    build: quantities.Build | None = None


AS_RECOGNIZED = TableReading()
NO_NUMBER = "no part number"


class TableHeader(NamedTuple):
    """Header row of a table. `places` are column indexes by role; `below` are the first rows below it, and `score` says
    how well it explains them."""

    row: int
    cells: Sequence[str]
    places: Mapping[str, int]
    below: Sequence[TableRow]
    score: int


class Line(NamedTuple):
    """Line with a part number. `quantity` is what is needed: None where it is unclear; where none is stated, the number
    of designators, or 1. `width` is the number of its last column."""

    row: int
    mpn: str
    manufacturer: str
    sku: str
    quantity: int | None
    width: int


@dataclass
class LeftOut:
    """Rows that are no lines by the reason, cells that cannot be read, and lines whose quantity is empty."""

    rows: dict[str, list[int]] = field(default_factory=dict)
    cells: list[str] = field(default_factory=list)
    quantities: list[int] = field(default_factory=list)

    def add(self, reason: str, row: int) -> None:
        """Add a row."""
        self.rows.setdefault(reason, []).append(row)


def read(
    rows: Iterable[TableRow], reading: TableReading, place: str, left_out: LeftOut
) -> tuple[TableHeader, Iterator[tuple[Line, Sequence[str]]]]:
    """Find the header, and return it with the lines below it and their cells. What is not read is added to `left_out`.

    Raises SheetError, which begins with `place`, for a table without a column of part numbers.
    """
    filled = _filled(rows, reading)
    first = list(islice(filled, bom_columns.EXAMINED_ROWS))
    header = _header(first, reading)
    if header is None:
        raise errors.SheetError(_no_column(first[: bom_columns.HEADER_ROWS], reading, place))
    for number, _ in first[: len(first) - len(header.below) - 1]:
        left_out.add("above the headings", number)
    return header, _lines(chain(header.below, filled), header, place, reading, left_out)


def find_header(rows: Iterable[TableRow], reading: TableReading) -> TableHeader | None:
    """Return the header; None for a table without a column of part numbers."""
    return _header(list(islice(_filled(rows, reading), bom_columns.EXAMINED_ROWS)), reading)


def _filled(rows: Iterable[TableRow], reading: TableReading) -> Iterator[TableRow]:
    filled = ((number, row) for number, row in rows if any(map(str.strip, row)))
    return dropwhile(lambda each: each[0] < (reading.header_row or 0), filled)


def _header(first: Sequence[TableRow], reading: TableReading) -> TableHeader | None:
    cells = [row for _, row in first]
    searched = cells[: bom_columns.HEADER_ROWS]
    if reading.header_row is not None:
        searched = [row for number, row in first[:1] if number == reading.header_row]
    named = reading.named
    possible = (
        bom_columns.possible_headers(searched, named)
        or _headers_by_letter(searched, named)
        or _headers_of_values(searched, named)
    )
    if not possible:
        return None
    index, score = bom_columns.best_header(cells, possible)
    places = {role: at for role, at in possible[index].items() if role != "attrition" or reading.build}
    return TableHeader(first[index][0], cells[index], places, first[index + 1 :], score)


def _headers_by_letter(rows: Sequence[Sequence[str]], named: Mapping[str, str]) -> dict[int, dict[str, int]]:
    by_letter = {key: column_number(text) - 1 for key, text in named.items() if _LETTERS.fullmatch(text.strip())}
    rest = {key: text for key, text in named.items() if key not in by_letter}
    possible = {}
    for index, cells in enumerate(rows if by_letter else ()):
        places = bom_columns.known_columns(cells, rest) | by_letter
        in_row = all(at < len(cells) and cells[at].strip() for at in by_letter.values())
        if in_row and rest.keys() <= places.keys() and any(key in places for key in bom_columns.NUMBERS):
            possible[index] = places
    return possible


def _headers_of_values(rows: Sequence[Sequence[str]], named: Mapping[str, str]) -> dict[int, dict[str, int]]:
    """Take values for part numbers: many exports have no other column for them."""
    known = {index: bom_columns.known_columns(cells, named) for index, cells in enumerate(rows)}
    return {
        index: places | {"mpn": places["value"]}
        for index, places in known.items()
        if "value" in places and named.keys() <= places.keys()
    }


def _no_column(first: Sequence[TableRow], reading: TableReading, place: str) -> str:
    """List the headings that are there, because the missing one may be among them under another name."""
    if reading.header_row is not None and (not first or first[0][0] != reading.header_row):
        return f"{place}: row {reading.header_row} is empty; --header-row is the number of the row with the headings"
    if not first:
        return f"{place}: is empty"
    if reading.header_row is not None:
        first = first[:1]
    number, row = max(first, key=lambda each: sum(bool(cell.strip()) for cell in each[1]))
    headings = list(map(plain, row))
    missing = [f"{OPTIONS[key]} {text!r}" for key, text in reading.named.items() if plain(text) not in headings]
    there = ", ".join(
        f"{column_name(index + 1)} {cell.strip()[:NAME_MAX]!r}"
        for index, cell in enumerate(row[:COLUMNS_MAX])
        if cell.strip()
    )
    if missing:
        return f"{place}: no column {', '.join(missing)}; the columns of row {number} are {there}"
    names = ", ".join(bom_columns.HEADINGS["mpn"][:4])
    return (
        f"{place}: no column of part numbers, which are named like {names}, in many languages; "
        f"--mpn-column names another, by heading or letter; the columns of row {number} are {there}"
    )


def _lines(
    rows: Iterable[TableRow], header: TableHeader, place: str, reading: TableReading, left_out: LeftOut
) -> Iterator[tuple[Line, Sequence[str]]]:
    count = 0
    for number, row in rows:
        cells = {role: row[at] for role, at in header.places.items() if at < len(row)}
        reason = _why_no_line(row, cells, header)
        is_unreadable = reason == NO_NUMBER and UNREADABLE in [cells.get(key) for key in bom_columns.NUMBERS]
        count += reason is None or is_unreadable
        if count > LINES_MAX:
            raise errors.SheetError(f"{place}: has more than {LINES_MAX} lines with a part number; split the file")
        roles = bom_columns.NUMBERS if is_unreadable else ("brand", "quantity") if reason is None else ()
        _add_unreadable(number, cells, header, roles, left_out)
        if reason is None:
            quantity = _quantity(number, cells, header, reading, left_out)
            if reading.build is not None and quantity is not None:
                attrition = _attrition(number, cells, header, reading.build, left_out)
                quantity = None if attrition is None else reading.build.needed(quantity, attrition)
            yield _line(number, row, cells, quantity), row
        elif not is_unreadable:
            left_out.add(reason, number)


def _line(number: int, row: Sequence[str], cells: Mapping[str, str], quantity: int | None) -> Line:
    mpn, sku = (_part_number(cells.get(key, "")) for key in bom_columns.NUMBERS)
    manufacturer = "" if bom_columns.is_placeholder(cells.get("brand", "")) else cells.get("brand", "").strip()
    width = max(index + 1 for index, cell in enumerate(row) if cell.strip())
    return Line(number, mpn, manufacturer if mpn else "", "" if mpn else sku, quantity, width)


def _why_no_line(row: Sequence[str], cells: Mapping[str, str], header: TableHeader) -> str | None:
    """Return why a row is no line with a part; None if it is one."""
    mpn = cells.get("mpn", "")
    first = next(cell for cell in row if cell.strip())
    if {plain(first), plain(mpn)} & TOTALS:
        return "a total"
    # A second block of the sheet begins with the same headings.
    if "mpn" in cells and plain(mpn) == plain(header.cells[header.places["mpn"]]):
        return "the headings again"
    if (
        any(is_one_of(NOT_POPULATED, cell) for cell in row)
        or is_one_of(_YES, cells.get("dnp", ""))
        or is_one_of(_NO, cells.get("fitted", ""))
    ):
        return "not populated (DNP)"
    if header.places.get("mpn") == header.places.get("value", -1) and _VALUE.fullmatch(mpn.strip()):
        return "the value of a part, and no part number"
    return _why_no_number([cells.get(key, "").strip() for key in bom_columns.NUMBERS])


def _why_no_number(numbers: Sequence[str]) -> str | None:
    if any(map(_part_number, numbers)):
        return None
    text = next(filter(None, numbers), "")
    if bom_columns.is_placeholder(text):
        return f"{text!r} is not a part number"
    if len(text) > NUMBER_MAX:
        return f"a part number of more than {NUMBER_MAX} characters"
    return "a part number with a line break" if "\n" in text or "\r" in text else NO_NUMBER


def _part_number(text: str) -> str:
    """Return a part number; empty for text that cannot be one, such as a dash, a placeholder or a paragraph."""
    text = text.strip()
    usable = any(map(str.isalnum, text)) and len(text) <= NUMBER_MAX and "\n" not in text and "\r" not in text
    return text if usable and not bom_columns.is_placeholder(text) else ""


def _quantity(
    number: int, cells: Mapping[str, str], header: TableHeader, reading: TableReading, left_out: LeftOut
) -> int | None:
    text, designators = cells.get("quantity", ""), "" if "quantity" in header.places else cells.get("designator", "")
    if not text.strip():
        if "quantity" in header.places:
            left_out.quantities.append(number)
        return max(1, _count(designators))
    try:
        return quantities.parse(text, reading.decimal)
    except quantities.QuantityError as error:
        if text != UNREADABLE:
            place = f"{column_name(header.places['quantity'] + 1)}{number}"
            left_out.cells.append(f"{place}: {text.strip()[:NAME_MAX]!r} {error}: {quantities.STAY_EMPTY}")
        return None


def _attrition(
    number: int, cells: Mapping[str, str], header: TableHeader, build: quantities.Build, left_out: LeftOut
) -> quantities.Attrition | None:
    """Return the attrition of a line; None if it is unclear."""
    text = cells.get("attrition", "").strip()
    if not text:
        return build.attrition
    place = header.places["attrition"]
    try:
        return quantities.parse_attrition(f"{text}%" if "%" in header.cells[place] and "%" not in text else text)
    except quantities.QuantityError as error:
        left_out.cells.append(f"{column_name(place + 1)}{number}: {text[:NAME_MAX]!r} {error}: {quantities.STAY_EMPTY}")
        return None


def _count(designators: str) -> int:
    """Count designators such as `R1, R2` and `R4-R7`."""
    ranges = (_RANGE.fullmatch(word) for word in re.split(r"[,;\s]+", designators) if word)
    return sum(1 if each is None else max(1, int(each[3]) - int(each[2]) + 1) for each in ranges)


def _add_unreadable(
    number: int, cells: Mapping[str, str], header: TableHeader, roles: Sequence[str], left_out: LeftOut
) -> None:
    """Describe the cells of a line that cannot be read, or the number that would have made it one."""
    for role in roles:
        if cells.get(role) == UNREADABLE:
            place = f"{column_name(header.places[role] + 1)}{number}"
            what = _UNREADABLE_CELLS[role]
            left_out.cells.append(f"{place}: a date, an error or a formula without a value is no {what}")
