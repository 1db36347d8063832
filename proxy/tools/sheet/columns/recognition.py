"""What was recognized of a table: said before parts are spent, because a wrong column costs real money."""

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

import msgspec

from proxy.kit.wording import counted
from proxy.tools.sheet.columns.lines import NAME_MAX, OPTIONS, LeftOut, TableHeader
from proxy.tools.sheet.columns.specs import PREFIX
from proxy.tools.sheet.package.cells import column_name
from proxy.traffic.bom_columns import plain

ROLES = {
    "mpn": "part number",
    "brand": "manufacturer",
    "sku": "SKU",
    "quantity": "quantity",
    "attrition": "attrition",
    "dnp": "not populated",
    "fitted": "populated",
    "designator": "designators",
}
WITHOUT = {"brand": "any is taken", "quantity": "1 is taken"}
UPDATED = "filled before"
SHOWN_MAX = 20  # columns, ranges of rows and reasons in a message

_AMOUNT = re.compile("qty|qte|quan|menge|anz|stuck|stk|pcs|piece|unit|need|requir|build|amount|数")
_OTHER = re.compile("price|cost|value|weight|preis|prix|pin|moq|min|stock|lager")
_NUMERIC = re.compile(r"\d{1,9}(?:[.,]\d+)?")


class RecognizedColumn(msgspec.Struct, frozen=True):
    """A column with a heading; `role` is None if it is not used."""

    column: str
    heading: str
    role: str | None


class LeftOutRows(msgspec.Struct, frozen=True):
    """Rows that are no lines with a part."""

    reason: str
    rows: Sequence[int]


class Recognized(msgspec.Struct, frozen=True):
    """Row of the headings, use of each column, and rows that are left out. `unused_quantities` are columns that look
    like quantities, `without_quantity` rows that have none. `numbers_from_values`: no other column has part numbers;
    `counts_designators`: none has quantities."""

    sheet: str | None
    header_row: int
    columns: Sequence[RecognizedColumn]
    unused_quantities: Sequence[str]
    without_quantity: Sequence[int]
    left_out: Sequence[LeftOutRows]
    numbers_from_values: bool
    counts_designators: bool

    def messages(self) -> Iterator[str]:
        """Yield the lines that are printed."""
        of_sheet = "" if self.sheet is None else f" of sheet {self.sheet!r}"
        yield f"headings: row {self.header_row}{of_sheet}"
        for role, name in ROLES.items():
            used = [_shown(column) for column in self.columns if column.role == name]
            if used or role in WITHOUT:
                without = (
                    "designators are counted" if role == "quantity" and self.counts_designators else WITHOUT.get(role)
                )
                yield f"  {name}: {', '.join(used) or f'no column, {without}; {OPTIONS[role]} names one'}"
        for label, role_name in (("updated", UPDATED), ("not used", None)):
            names = [_shown(column) for column in self.columns if column.role == role_name]
            if names:
                yield f"  {label}: {_some(names)}"
        if self.numbers_from_values:
            yield "note: no column of part numbers: values are taken for them; --mpn-column names another"
        for column in self.unused_quantities[:SHOWN_MAX]:
            yield f"note: column {column} looks like a quantity and is not used: --quantity-column {column} uses it"
        if self.without_quantity:
            lines = counted(len(self.without_quantity), "line")
            yield f"note: {lines} without a quantity, {WITHOUT['quantity']}: {_some(_ranges(self.without_quantity))}"
        for each in self.left_out[:SHOWN_MAX]:
            yield f"left out: {counted(len(each.rows), 'row')}, {each.reason}: {_some(_ranges(each.rows))}"
        if len(self.left_out) > SHOWN_MAX:
            yield f"left out: rows for {len(self.left_out) - SHOWN_MAX} more reasons; --json lists all"


def recognize(sheet: str | None, header: TableHeader, left_out: LeftOut, updated: Collection[int]) -> Recognized:
    """Return what was recognized; `updated` are indexes of columns that an earlier run has filled."""
    roles = {index: ROLES[role] for role, index in header.places.items() if role in ROLES}
    roles |= dict.fromkeys(updated, UPDATED)
    named = {index: text.strip() for index, text in enumerate(header.cells) if text.strip() or index in roles}
    columns = [RecognizedColumn(column_name(index + 1), text, roles.get(index)) for index, text in named.items()]
    unused = [
        column_name(index + 1)
        for index, text in named.items()
        if index not in roles and _looks_like_quantity(index, text, header)
    ]
    rows = [LeftOutRows(reason, numbers) for reason, numbers in left_out.rows.items()]
    from_values = "value" in header.places and header.places["value"] == header.places.get("mpn")
    counts = "designator" in header.places and "quantity" not in header.places
    return Recognized(sheet, header.row, columns, unused, left_out.quantities, rows, from_values, counts)


def _looks_like_quantity(index: int, heading: str, header: TableHeader) -> bool:
    """Return whether numbers stand below a heading like that of a quantity; where there is no quantity, whole numbers
    that do not number the lines."""
    name = plain(heading)
    if heading.startswith(PREFIX) or _OTHER.search(name):
        return False
    texts = [row[index].strip() for _, row in header.below if index < len(row) and row[index].strip()]
    if not texts or 5 * sum(_NUMERIC.fullmatch(text) is not None for text in texts) < 4 * len(texts):
        return False
    if _AMOUNT.search(name):
        return True
    numbers = [int(text) for text in texts if text.isdecimal()]
    is_count = any(after != before + 1 for before, after in pairwise(numbers))
    return "quantity" not in header.places and is_count and len(numbers) == len(texts)


def _shown(column: RecognizedColumn) -> str:
    return f"{column.column} {column.heading[:NAME_MAX]!r}"


def _ranges(rows: Sequence[int]) -> list[str]:
    """Return row numbers as text, such as 3-5."""
    starts = [row for before, row in pairwise((-1, *rows)) if row != before + 1]
    ends = [row for row, after in pairwise((*rows, -1)) if after != row + 1]
    return [str(first) if first == last else f"{first}-{last}" for first, last in zip(starts, ends, strict=True)]


def _some(texts: Sequence[str]) -> str:
    more = len(texts) - SHOWN_MAX
    return ", ".join(texts[:SHOWN_MAX]) + (f" and {more} more" if more > 0 else "")
