"""Columns of a list by their headings: several of a role, with numbers inside them, and named by distributors alone."""

import re
from collections.abc import Mapping, Sequence
from itertools import product
from typing import NamedTuple

from proxy.traffic.bom_columns import HEADINGS, plain

ROLES = {
    "mpn": "part number",
    "brand": "manufacturer",
    "sku": "SKU",
    "quantity": "quantity",
    "dnp": "not populated",
    "fitted": "populated",
    "designator": "designators",
}
"""Roles of columns, and what they are called."""

_NAMES = {role: [plain(name) for name in names] for role, names in HEADINGS.items()}
_ANY_NUMBER = _NAMES["mpn"].index(plain("part number"))  # before it are the names of manufacturers' numbers
_KNOWN = {name: (role, rank) for role in (*ROLES, "value") for rank, name in reversed([*enumerate(_NAMES[role])])}
_MAKERS = ("manufacturer", "manuf", "manf", "mfr", "mfg", "maker", "oem")
_SELLERS = ("supplier", "distributor", "distrib", "vendor", "dist", "seller")
_KNOWN_SELLERS = """
    digikey mouser lcsc jlcpcb jlc farnell newark element arrow avnet tme rs rscomponents futureelectronics future tti
    rutronik verical conrad reichelt distrelec buerklin chipstop onlinecomponents masterelectronics sager allied schukat
"""
_NUMBER_WORDS = """
    no nr pn sku part parts partno partnr partnumber number code ordercode orderno ordernumber ref reference id stockno
    stockcode artikelnr artikelnummer bestellnr bestellnummer symbol catno catalogno
"""
# Names of two words, such as `supplier MPN`, `Digi-Key SKU` and `Bestell-Nr. Mouser`, and of a distributor alone.
for _first, _second, _role in (
    (_KNOWN_SELLERS.split(), ["", *_NUMBER_WORDS.split()], "sku"),
    (_NUMBER_WORDS.split(), _KNOWN_SELLERS.split(), "sku"),
    (_SELLERS, _NUMBER_WORDS.split(), "sku"),
    (_SELLERS, ["mpn"], "mpn"),
    (_MAKERS, ["mpn", *_NUMBER_WORDS.split()], "mpn"),
):
    for _words in product(_first, _second):
        _KNOWN.setdefault("".join(_words), (_role, 0))
_ALTERNATIVE = re.compile(
    r"\b(?:alternativ\w*|alternate|alt|2nd|3rd|second(?:ary)?|third|substitute|replacement|ersatz|backup)\b\.?"
    r"(?:\s+source)?",
    re.IGNORECASE,
)
_ONE_COLUMN = ("quantity", "dnp", "fitted", "designator", "value")
OF_ALL = ("total", "order", "build", "gesamt", "bestell")  # boards: such a quantity is not multiplied


class NumberColumn(NamedTuple):
    """A column of part numbers or SKUs. `brand` is that of the manufacturers of these numbers."""

    column: int
    is_sku: bool = False
    brand: int | None = None


class Columns(NamedTuple):
    """Columns of a list, from 0; a line takes the first number that it has. `from_values`: the first are values."""

    numbers: tuple[NumberColumn, ...]
    places: Mapping[str, int]
    from_values: bool = False

    @property
    def roles(self) -> dict[int, str]:
        """What each column that is used is called."""
        used = {place: ROLES[role] for role, place in self.places.items() if role in ROLES}
        for each in self.numbers:
            if each.brand is not None:
                used[each.brand] = ROLES["brand"]
            used[each.column] = ROLES["sku" if each.is_sku else "mpn"]
        return used

    @property
    def flat(self) -> dict[str, int]:
        """One column of each role, by which rows of headings are compared."""
        flat = {"sku" if each.is_sku else "mpn": each.column for each in reversed(self.numbers)}
        return flat | {role: place for role, place in self.places.items() if role == "quantity"}


class _Heading(NamedTuple):
    column: int
    role: str
    rank: int
    number: int
    """That inside the heading; 0 without one."""


def recognize(cells: Sequence[str], named: Mapping[str, Sequence[int]], *, per_board: bool) -> Columns | None:
    """Return the columns that a row of headings names; None without a column of numbers. `named` are those that the
    user has named, by role; `per_board`: of several quantities that of one board."""
    found = [_Heading(column, *known) for column, cell in enumerate(cells) if (known := role_of(cell))]
    found = [each for each in found if each.role not in named]
    found += [_Heading(column, role, 0, 0) for role, columns in named.items() for column in columns]
    mpns = [each for each in found if each.role == "mpn"]
    others = [each for each in mpns if each.number > 1 or _ALTERNATIVE.search(cells[each.column])]
    others = [] if "mpn" in named else others
    first = [each for each in mpns if each not in others] or mpns
    own = [each for each in first if each.rank < _ANY_NUMBER]
    if not own and first:  # a company's own numbers may be called so, too: one name only
        best = min(each.rank for each in first)
        own = [each for each in first if each.rank == best]
    # An alternative of any name follows any number; beside a manufacturer's, it may be a company's own.
    own += [each for each in mpns if each not in first and (each.rank < _ANY_NUMBER or own[0].rank >= _ANY_NUMBER)]
    own.sort(key=lambda each: (each in others, each.number, plain(cells[each.column]).startswith(_SELLERS)))
    skus = [NumberColumn(each.column, is_sku=True) for each in found if each.role == "sku"]
    places = _places(found, per_board=per_board)
    # Numbers that are all alternatives follow the SKU, or else the value.
    has_first = any(each not in others for each in own)
    from_values = {"value", "designator"} <= places.keys() and not (has_first or skus)
    if from_values:
        own.insert(0, _Heading(places["value"], "value", 0, 0))
    brands = sorted((each for each in found if each.role == "brand"), key=lambda each: each.number)
    numbers = [NumberColumn(each.column, brand=_brand(place, own, brands)) for place, each in enumerate(own)]
    numbers = [*numbers, *skus] if has_first else [*skus, *numbers]
    return Columns(tuple(numbers), places, from_values) if numbers else None


def _places(found: Sequence[_Heading], *, per_board: bool) -> dict[str, int]:
    """Return the best column of each role of which a list has one."""
    places: dict[str, int] = {}
    ranked = []
    for each in found:
        of_all = per_board and each.role == "quantity" and _NAMES["quantity"][each.rank].startswith(OF_ALL)
        ranked.append((of_all, each.rank, each.number, each.column, each.role))
    for *_, column, role in sorted(ranked):
        if role in _ONE_COLUMN:
            places.setdefault(role, column)
    return places


def _brand(place: int, mpns: Sequence[_Heading], brands: Sequence[_Heading]) -> int | None:
    mpn = mpns[place]
    numbered = next((each.column for each in brands if mpn.number and each.number == mpn.number), None)
    if numbered is not None:
        return numbered
    if len(mpns) == len(brands):
        return brands[place].column
    beside = next((each.column for each in brands if each.column in (mpn.column - 1, mpn.column + 1)), None)
    first = min((each.column for each in brands), default=None)
    if place == 0:
        return first if beside is None else beside
    return beside if beside != first else None


def role_of(cell: str) -> tuple[str, int, int] | None:
    """Return the role of a heading, how well its name says that (0 is best), and the number inside it."""
    if not cell.strip() or len(cell) > 80:
        return None
    digits = re.search(r"\d+", cell)
    number = int(digits[0][:3]) if digits else 2 if _ALTERNATIVE.search(cell) else 0
    text = cell.replace("#", " no ").replace("№", " no ")
    for each in (text, cell, _ALTERNATIVE.sub(" ", text)):
        name = plain(each)
        for spelled in (name, re.sub(r"\d", "", name)):
            if spelled in _KNOWN:
                return *_KNOWN[spelled], number
    return None
