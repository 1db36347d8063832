"""Lines of a list: the row of the headings, the numbers and the quantity of each line, and what is no line."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeVar

import msgspec

from proxy import errors, kit
from proxy.tools.sheet import cell_texts, headings
from proxy.tools.sheet.cell_texts import UNREADABLE, Cell, DecimalMark, QuantityError
from proxy.tools.sheet.headings import Columns
from proxy.traffic import bom_columns
from proxy.traffic.bom_columns import NOT_POPULATED, PLACEHOLDERS, is_one_of, plain

ROWS_MAX = 100_000  # a list is far shorter; without a limit a hostile file would fill the memory
COLUMNS_MAX = 16_384  # of a sheet (ECMA-376)
LABEL_CELLS = 2  # filled cells of a row that states something about the list

ABOVE, TOTAL, LABEL, AGAIN, OTHER_HEADINGS, NOT_FITTED, SECTION, SEPARATOR = NO_LINES = (
    *("above the headings", "a total", "a label", "the headings again", "other headings", "not populated"),
    *("a title without a part", "a separator"),
)
"""Why a row is no line, and nothing is missing without it."""
NO_NUMBER, WIDER, BELOW_OTHERS = "no part number", "wider than the headings", "below other headings"
UTF7 = "encoded as UTF-7: save the list as UTF-8"

# A line that begins with one of these adds up others.
_TOTALS = """
    total totals grandtotal subtotal sum summe gesamt gesamtsumme zwischensumme somme totalgeneral soustotal suma totale
    somma totaal soma razem łacznie celkem итого 合计 总计 小计 合計 總計 小計 합계
"""
TOTALS = frozenset(map(plain, _TOTALS.split()))
_YES = frozenset(("x", "1", "yes", "y", "true", "ja", "j", "oui", "sí", "si", *NOT_POPULATED))
_NO = frozenset(("0", "no", "n", "false", "nein", "non", *NOT_POPULATED))
_UTF7 = re.compile(r"\+A[A-P][A-Za-z0-9+/][A-Za-z0-9+/]*-|\+/v[89+/]")

Row = tuple[int, Sequence[Cell]]
T = TypeVar("T")


class Reading(NamedTuple):
    """How a list is read. `named` are headings by role; with `boards`, quantities are those of one."""

    named: Mapping[str, Sequence[str]] = {}
    boards: int | None = None


class Choice(NamedTuple):
    """A number that a line can be bought by: that of a manufacturer, or of a distributor."""

    mpn: str
    manufacturer: str = ""
    sku: str = ""


class Line(NamedTuple):
    """A line with its numbers, the best first. `quantity` is None where it is unclear, and `problem` says why."""

    row: int
    choices: tuple[Choice, ...]
    skus: tuple[str, ...]
    quantity: int | None
    problem: str = ""


class LeftOut(msgspec.Struct, frozen=True):
    """A row that is not read as a line, and why."""

    row: int
    reason: str


class NoNumbersError(errors.SheetError):
    """No column has part numbers, or the named ones are not there; `headings` of `row` may be named."""

    def __init__(self, message: str, row: int, headings: Sequence[str]) -> None:
        super().__init__(message)
        self.row, self.headings = row, headings


class PartsList(NamedTuple):
    """What was read. `cells`: those of each line's row; `problems`: what is not understood, or contradicts."""

    header_row: int
    headings: Sequence[str]
    columns: Columns
    lines: Sequence[Line]
    left_out: Sequence[LeftOut]
    problems: Sequence[str]
    cells: Mapping[int, Sequence[Cell]]
    width: int


def column_name(column: int) -> str:
    """Return the letters of a column: 0 is A, 26 is AA."""
    letters = ""
    column += 1
    while column:
        column, letter = divmod(column - 1, 26)
        letters = chr(65 + letter) + letters
    return letters


def text_of(cell: Cell) -> str:
    """Return a cell as text: a number as it is shown."""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15:
        return str(int(cell))
    return str(cell)


def read(rows: Iterable[Row], reading: Reading, place: str, *, is_csv: bool) -> PartsList:
    """Read a list. Raises SheetError, which begins with `place`, without a column of part numbers."""
    filled: list[Row] = []
    for number, cells in rows:
        if any(cell != "" and text_of(cell).strip() for cell in cells):
            filled.append((number, cells))
        if len(filled) > ROWS_MAX:
            raise errors.SheetError(f"{place}: has more than {ROWS_MAX:,} rows; split the file")
    found = find_header(filled, reading)
    if found is not None:
        return _read_below(filled, *found[:2], reading, is_csv=is_csv)
    if not filled:
        raise errors.SheetError(f"{place}: is empty")
    # The missing column may be among those that are there, under another name.
    texts = [(number, [text_of(cell).strip() for cell in row]) for number, row in filled[: bom_columns.HEADER_ROWS]]
    number, headings = max(texts, key=lambda each: sum(map(bool, each[1])))
    shown = [f"{column_name(at)} {cell[: cell_texts.SHOWN_MAX]!r}" for at, cell in enumerate(headings) if cell]
    what = "no column of part numbers; --read mpn=NAME names one by its heading, or add a row of headings"
    if reading.named:
        what = "no row has the columns " + ", ".join(repr(name) for names in reading.named.values() for name in names)
    message = f"{place}: {what}; the columns of row {number} are {', '.join(shown)}"
    raise NoNumbersError(message, number, headings)


def find_header(filled: Sequence[Row], reading: Reading) -> tuple[int, Columns, int] | None:
    """Return the index of the row with the headings, its columns, and how well it explains the rows below; or None."""
    first = [[text_of(cell) for cell in row] for _, row in filled[: bom_columns.EXAMINED_ROWS]]
    searched = first[: bom_columns.HEADER_ROWS]
    possible: dict[int, Columns] = {}
    for index, cells in enumerate(searched):
        texts = [*map(plain, cells)]
        if any(plain(name) not in texts for names in reading.named.values() for name in names):
            continue
        named = {role: [texts.index(plain(name)) for name in names] for role, names in reading.named.items()}
        columns = headings.recognize(cells, named, per_board=reading.boards is not None)
        if columns is not None:
            possible[index] = columns
    possible = {index: columns for index, columns in possible.items() if not columns.from_values} or possible
    if not possible:
        return None
    index, score = bom_columns.best_header(first, {index: columns.flat for index, columns in possible.items()})
    return index, possible[index], score


def _read_below(filled: Sequence[Row], index: int, columns: Columns, reading: Reading, *, is_csv: bool) -> PartsList:
    """Read the rows below the headings, which are at `index`."""
    (header_row, header), below = filled[index], filled[index + 1 :]
    names = [text_of(cell).strip() for cell in header]
    decimal = cell_texts.decimal_mark(_at(row, columns.places.get("quantity")) for _, row in below)
    reader = _Reader(names, columns, len(header) if is_csv else None, decimal)
    left_out = [LeftOut(number, ABOVE) for number, _ in filled[:index]]
    lines: list[Line] = []
    problems: list[str] = []
    shown: dict[int, Sequence[Cell]] = {}
    below_others = False
    for number, cells in below:
        row = [text_of(cell) for cell in cells]
        reason = reader.why_no_line(row)
        below_others = reason == OTHER_HEADINGS or (below_others and reason != AGAIN)
        if below_others and reason != OTHER_HEADINGS:
            reason = BELOW_OTHERS
        if reason:
            left_out.append(LeftOut(number, reason))
            continue
        quantity, unclear, problem = reader.quantity(cells)
        choices, skus, missing = reader.numbers(row)
        if quantity == 0 or missing:
            left_out.append(LeftOut(number, NOT_FITTED if quantity == 0 else missing))
            continue
        needed = quantity and quantity * (reading.boards or 1)
        lines.append(Line(number, choices, skus, needed, "" if quantity else problem))
        shown[number] = cells
        if problem:
            problems.append(f"{column_name(unclear)}{number}: {problem}")
    width = max((len(row) for _, row in below), default=0)
    return PartsList(header_row, names, columns, lines, left_out, problems, shown, width)


@dataclass(frozen=True)
class _Reader:
    """Reads a row below the headings. `width`: of these in a CSV file; `decimal`: mark of the column of quantities."""

    headings: Sequence[str]
    columns: Columns
    width: int | None
    decimal: DecimalMark | None

    def why_no_line(self, row: Sequence[str]) -> str:
        filled = [cell.strip() for cell in row if cell.strip()]
        numbers = [_at(row, each.column).strip() for each in self.columns.numbers]
        first, places = plain(filled[0]), self.columns.places
        is_short = len(filled) <= LABEL_CELLS
        # A row that heads other columns has a name of a column as its number, and mostly such names, or no figures.
        is_part = any(any(map(str.isdigit, number)) for number in numbers)
        named = 0 if is_part else sum(headings.role_of(cell) is not None for cell in row)
        names_numbers = any((headings.role_of(number) or "")[:1] == ("mpn",) for number in numbers)
        heads = (named > 1 and 2 * named > len(filled)) or (names_numbers and not any(map(str.isdigit, filled)))
        others = headings.recognize(row, {}, per_board=False) if heads else None
        is_word = not any(map(str.isdigit, filled[0]))
        is_remark = is_word and (" " in filled[0] or (filled[0].isalpha() and "quantity" in places))
        reasons = {
            SEPARATOR: not any(map(str.isalnum, "".join(filled))),
            TOTAL: {first, *map(plain, numbers)} & TOTALS or (first.startswith("total") and is_short),
            LABEL: any(cell.endswith((":", "：")) for cell in (filled[0], *numbers))
            or (is_short and re.search(r"[:：]\s", filled[0])),
            AGAIN: [*map(plain, filled)] == [plain(cell) for cell in self.headings if cell]
            or (others is not None and others.flat == self.columns.flat),
            OTHER_HEADINGS: heads,
            SECTION: len(filled) == 1 and is_remark,
            UTF7: any(_UTF7.search(cell) for cell in filled),
            WIDER: self.width is not None and any(cell.strip() for cell in row[self.width :]),
            NOT_FITTED: any(map(cell_texts.is_not_populated, filled))
            or is_one_of(_YES, _at(row, places.get("dnp")))
            or is_one_of(_NO, _at(row, places.get("fitted"))),
        }
        return next((reason for reason, is_so in reasons.items() if is_so), "")

    def numbers(self, row: Sequence[str]) -> tuple[tuple[Choice, ...], tuple[str, ...], str]:
        """Return the numbers that a line can be bought by, the best first, and all SKUs; or why it has no number."""
        choices: dict[Choice, None] = {}
        skus: list[str] = []
        reasons: list[str] = []
        for column in self.columns.numbers:
            cell = _at(row, column.column)
            are_values = self.columns.from_values and column is self.columns.numbers[0]
            numbers, reason = cell_texts.part_numbers(cell, are_skus=column.is_sku, are_values=are_values)
            if cell.strip():
                reasons.append(reason)
            if column.is_sku:
                skus += numbers[:1]
                if not choices:
                    choices = {Choice("", sku=sku): None for sku in numbers[:1]}
                continue
            brand = _at(row, column.brand).strip()
            brand = "" if is_one_of(PLACEHOLDERS, brand) or brand in UNREADABLE else brand
            choices |= {Choice(number, brand): None for number in numbers}
        if not choices and not reasons:
            used = (_at(row, self.columns.places.get(role)) for role in ("quantity", "designator"))
            is_line = any(cell.strip() for cell in used) or sum(bool(cell.strip()) for cell in row) > 1
            reasons.append(NO_NUMBER if is_line else SECTION)
        return tuple(choices), tuple(skus), "" if choices else reasons[0]

    def quantity(self, cells: Sequence[Cell]) -> tuple[int | None, int, str]:
        """Return the quantity, and the column that is not understood or contradicts, and why."""
        places = self.columns.places
        designators = text_of(_at(cells, places.get("designator"))).strip()
        counted = reason = None
        try:
            counted = cell_texts.count_designators(designators) if designators else None
        except QuantityError as error:
            reason = str(error)
        stated = _at(cells, places.get("quantity"))
        text = text_of(stated).strip()
        if not text:
            if reason:
                return None, places["designator"], reason
            is_empty = counted is None and "quantity" in places
            problem = "is empty: 1 is taken" if is_empty else ""
            return 1 if counted is None else counted, places.get("quantity", 0), problem
        try:
            quantity = cell_texts.parse_quantity(stated, self.decimal)
        except QuantityError as error:
            shown = "the quantity " if stated in UNREADABLE else f"{text[: cell_texts.SHOWN_MAX]!r} "
            return None, places["quantity"], f"{shown}{error}"
        of_all = plain(self.headings[places["quantity"]]).startswith(headings.OF_ALL)
        contradicts = counted is not None and quantity not in (0, counted) and not of_all
        problem = f"{text} is stated for {kit.counted(counted or 0, 'designator')}" if contradicts else ""
        return quantity, places["quantity"], problem


def _at(row: Sequence[T], place: int | None) -> T | Literal[""]:
    return row[place] if place is not None and place < len(row) else ""
