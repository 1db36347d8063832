"""Calls of the add-in's functions in the formulas of a workbook (contract workbook.md, Functions). No I/O.

A formula is one call, whose arguments are literals and references to cells. Anything else is named, and left.
"""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import NamedTuple

import msgspec

from proxy.tools.sheet.cell_texts import NOT_CALCULATED, Cell
from proxy.tools.sheet.lines import column_name

Place = tuple[str, int, int]
"""Sheet, row and column of a cell, both from 1."""

A_CALL = "\0call"  # stands for the value of a cell that is a call itself
PREFIX = "NEXAR_SUPPLY_"

_PART = ("mpn", "manufacturer")
_OFFERS = (*_PART, "distributors", "authorized")

FUNCTIONS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("DETAIL_URL", "DATASHEET_URL", "SHORT_DESCRIPTION", "MANUFACTURER_NAME"), _PART),
    "DISTRIBUTOR_PRICE": (*_PART, "distributors", "quantity", "currency", "authorized"),
    "AVERAGE_PRICE": (*_PART, "quantity", "currency", "authorized"),
    **dict.fromkeys(("DISTRIBUTOR_STOCK", "DISTRIBUTOR_STOCK_UPDATED", "DISTRIBUTOR_MOQ"), _OFFERS),
    **dict.fromkeys(("DISTRIBUTOR_ORDER_MULTIPLE", "DISTRIBUTOR_LEAD_TIME", "DISTRIBUTOR_PACKAGING"), _OFFERS),
    **dict.fromkeys(("DISTRIBUTOR_URL", "DISTRIBUTOR_SKU"), _OFFERS),
    "LOGIN": ("client_id", "client_secret", "exclude_datasheets", "exclude_lead_time"),
    **dict.fromkeys(("VERSION", "DEV_TOKEN", "DEV_TOKEN_EXPIRES", "DEV_FEATURES", "FEATURES"), ()),
}
"""What the arguments of each function mean, in their order; by its name without the prefix."""


class FormulaError(Exception):
    """A formula cannot be filled. The message says why, without the formula: it may contain a client secret."""


class Area(NamedTuple):
    sheet: str
    left: int
    top: int
    right: int
    bottom: int

    def cells(self) -> Iterator[Place]:
        return product((self.sheet,), range(self.top, self.bottom + 1), range(self.left, self.right + 1))


class Call(msgspec.Struct, frozen=True):
    """A cell with one call. `arguments`: values of each."""

    sheet: str
    row: int
    column: int
    function: str
    formula: str
    arguments: list[list[Cell]] = []
    areas: dict[int, Area] = {}
    """Arguments that are references, until they have values."""

    @property
    def place(self) -> str:
        """The cell, as people name it."""
        return f"{self.sheet}!{column_name(self.column - 1)}{self.row}"

    @property
    def looks_up(self) -> bool:
        """Whether the function needs a part."""
        return FUNCTIONS[self.function][:1] == ("mpn",)

    def with_values(self, known: Mapping[Place, Cell]) -> "Call":
        """Return the call with the values of cells as its arguments. Raises FormulaError."""
        arguments = list(self.arguments)
        for index, area in self.areas.items():
            values = [known.get(cell, "") for cell in area.cells()]
            if A_CALL in values:
                raise FormulaError(f"argument {index + 1} is the result of another call")
            if NOT_CALCULATED in values:
                raise FormulaError(f"argument {index + 1} was not calculated: open the file and save it once")
            arguments[index] = values
        return msgspec.structs.replace(self, arguments=arguments, areas={})
