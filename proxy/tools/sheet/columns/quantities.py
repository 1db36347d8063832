"""Quantities as people and programs write them. What has two meanings, or none, is not guessed."""

import math
import re
from decimal import Decimal
from typing import Literal, NamedTuple

from proxy.kit.wording import counted

DecimalMark = Literal["point", "comma"]
LENGTH_MAX = 40  # characters
DIGITS_MAX = 12  # a larger quantity is a mistake, such as a part number in the wrong column
STAY_EMPTY = "columns at the quantity of the line stay empty"

_NUMBER_AND_UNIT = re.compile(r"(\d(?:[\d.,'’\s]*\d)?)\s*([^\W\d_]*)\.?")
_MULTIPLIERS = frozenset(("k", "K", "M"))  # 10k may be 10 000 or 10 pieces of something
_PACKAGES = frozenset(  # of a number of pieces that the list does not say
    (
        *("reel", "reels", "roll", "rolls", "tray", "trays", "tube", "tubes", "box", "boxes", "bag", "bags"),
        *("pack", "packs", "dozen", "rolle", "rollen", "gurt", "packung", "packungen", "dutzend", "ve", "vpe"),
    )
)
_NUMBERS: dict[DecimalMark, re.Pattern[str]] = {
    "point": re.compile(r"(\d+|[1-9]\d{0,2}(?:[,'’\s]\d{3})+)(?:\.(\d+))?"),
    "comma": re.compile(r"(\d+|[1-9]\d{0,2}(?:[.'’\s]\d{3})+)(?:,(\d+))?"),
}


class NumberText(str):
    """Text of a cell that holds a number; its decimal mark is a point."""

    __slots__ = ()


class Attrition(NamedTuple):
    """What is lost in assembly: a share of what is placed, and a number of pieces."""

    share: Decimal = Decimal(0)
    pieces: int = 0


class Build(NamedTuple):
    """What a list is bought for; its quantities are those of one board. `attrition` is that of lines without one."""

    boards: int = 1
    attrition: Attrition = Attrition()

    @property
    def note(self) -> str:
        """What happens to quantities."""
        share, pieces = self.attrition
        lost = f"{(share * 100).normalize():f}%" if share else counted(pieces, "piece")
        return f"quantities are those of {counted(self.boards, 'board')}, with an attrition of {lost} unless stated"

    def needed(self, quantity: int, attrition: Attrition) -> int:
        """Return how many pieces are needed of a line."""
        return math.ceil(quantity * self.boards * (1 + attrition.share)) + attrition.pieces


class QuantityError(ValueError):
    """A text that is no quantity, or may be two of them; the message is a predicate."""


def parse(text: str, decimal: DecimalMark | None = None) -> int:
    """Return a quantity: `1 000`, `2.5 m` and `10 pcs` are 1000, 3 and 10. `decimal` decides what `2.500` is. Raises
    QuantityError."""
    match = _NUMBER_AND_UNIT.fullmatch(text.strip()) if len(text) <= LENGTH_MAX else None
    if match is None or match[2] in _MULTIPLIERS or match[2].lower() in _PACKAGES:
        raise QuantityError("is not a quantity")
    marks = (decimal,) if decimal else ("point",) if isinstance(text, NumberText) else tuple(_NUMBERS)
    values = sorted({value for mark in marks if (value := _value(match[1], mark)) is not None})
    if len(values) == 2:
        first, second = (value.normalize() for value in values)
        raise QuantityError(f"is {first:f} or {second:f} (--decimal point or comma says which)")
    if not values or not 0 < values[0] < 10**DIGITS_MAX:
        raise QuantityError("is not a quantity")
    return math.ceil(values[0])


def parse_attrition(text: str) -> Attrition:
    """Return what `3%`, `2,5 %` or `20` pieces are. Raises QuantityError."""
    number, percent, rest = text.strip().partition("%")
    if percent and not rest and re.fullmatch(r"\d{1,3}(?:[.,]\d{1,6})?", number.strip()):
        return Attrition(Decimal(number.strip().replace(",", ".")) / 100)
    try:
        if not percent and "." not in text and "," not in text:
            return Attrition(pieces=parse(text))
    except QuantityError:
        pass
    raise QuantityError("is neither a share such as 3% nor a number of pieces")


def _value(text: str, mark: DecimalMark) -> Decimal | None:
    match = _NUMBERS[mark].fullmatch(text)
    if match is None:
        return None
    whole = "".join(filter(str.isdecimal, match[1]))
    return Decimal(f"{whole}.{match[2] or 0}")
