"""What the text of a cell says: quantities, designators, part numbers and SKUs, as people and programs write them. What
has two meanings, or none, is not guessed; and why a text is none of these."""

import math
import re
import unicodedata
from collections.abc import Iterable
from decimal import Decimal
from typing import Literal

from proxy.traffic.bom_columns import NOT_POPULATED, PLACEHOLDERS, is_one_of, plain

DecimalMark = Literal["point", "comma"]
Cell = str | int | float
"""A cell: text, or a number of a workbook."""

QUANTITY_MAX = 60  # characters of a quantity
DIGITS_MAX = 12  # a larger quantity is a mistake, such as a part number in the wrong column
DESIGNATORS_MAX = 20_000  # characters

# What stands for a cell of a workbook that cannot be read. No cell has a NUL.
NOT_CALCULATED, A_DATE, AN_ERROR = "\0formula", "\0date", "\0error"
UNREADABLE = {
    NOT_CALCULATED: "is a formula that was not calculated: open the file in a spreadsheet program and save it once",
    A_DATE: "is a date: the program that wrote it has converted the text",
    AN_ERROR: "is an error",
}

_NUMBER_AND_UNIT = re.compile(r"(\d(?:[\d.,'’\s]*\d)?)\s*([^\W\d_]*)\.?")
_MULTIPLIERS = frozenset(("k", "K", "M"))  # 10k may be 10 000 or 10 pieces of something
_PACKAGES = """
    reel reels roll rolls tray trays tube tubes box boxes bag bags pack packs dozen rolle rollen gurt packung packungen
    dutzend ve vpe
"""  # of a number of pieces that the list does not say
_NUMBERS: dict[DecimalMark, re.Pattern[str]] = {
    "point": re.compile(r"(\d+|[1-9]\d{0,2}(?:[,'’\s]\d{3})+)(?:\.(\d+))?"),
    "comma": re.compile(r"(\d+|[1-9]\d{0,2}(?:[.'’\s]\d{3})+)(?:,(\d+))?"),
}
_FITTED_NOTES = frozenset(("dnc", "donotchange", "fitted", "populated"))  # a part that must not be replaced is fitted
_NOTE = re.compile(r"[(\[{]\s*([^()\[\]{}]{2,30}?)\s*[)\]}]")
_WORDS = re.compile(r"[^\W\d_][^\d]*")

_DASHES = "-\u2010\u2011\u2012\u2013\u2014\u2015\u2212~\u301c\uff5e"
_RANGE_SIGNS = re.compile(
    rf"\s*(?:[{_DASHES}=]*>|→|⇒|\.\.+|…|:|[{_DASHES}]+)\s*|\s+(?:to|thru|through|till|until|up\s+to|bis|à|au|hasta|al?)\s+",
    re.IGNORECASE,
)
_SEPARATORS = re.compile(r"\s+(?:and|und|et)\s+|[,;&+|\s]+", re.IGNORECASE)
_DESIGNATOR = re.compile(r"([^\W\d]+[_.]?)(\d{1,5})[A-Za-z]?")
_ONE_WORD = re.compile(r"[^\W\d]{1,20}")
_RANGE = re.compile(r"([^\W\d]+[_.]?)(\d{1,5})\0(?:\1)?(\d{1,5})", re.IGNORECASE)

NUMBER_MAX = 200  # characters of a part number
SHOWN_MAX = 60  # characters of a text in a message
AGAIN = "format the column as text and enter it again"
LOST_DIGITS = f"a number that has lost digits: {AGAIN}"
CONVERTED = f"a date, which a program made of the text: {AGAIN}"
ERROR_VALUE = "an error of a spreadsheet program"
SEVERAL = "several part numbers in one cell: give each a line"

_MONTH = "(?:jan|feb|mar|mär|mrz|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez)"
_YEAR = r"(?:(?:19|20)?\d\d)"
_NO_NUMBERS = {
    LOST_DIGITS: re.compile(r"\d(?:[.,]\d+)?E\+?\d{2,3}", re.IGNORECASE),
    CONVERTED: re.compile(
        rf"\d{{1,2}}[-. ]{_MONTH}(?:[-. ]{_YEAR})?|{_MONTH}[- ]{_YEAR}|\d{{1,2}}([./])\d{{1,2}}\1(?:19|20)\d\d",
        re.IGNORECASE,
    ),
    "an address, and no part number": re.compile(r"(?:https?:|www\.).*", re.IGNORECASE | re.DOTALL),
    ERROR_VALUE: re.compile(r"#(?:REF|NAME|VALUE|NUM|NULL|DIV/0|N/A|NV|BEZUG|WERT)[!?]?|#{3,}", re.IGNORECASE),
}
# 10k, 4k7, 100nF/50V, 0.1uF 10%: what stands in a column of values, and would find and bill some part.
VALUE = re.compile(r"[\d.,]+ ?[pnuµμmkMGR]?\d{0,2} ?(?:[FHVAWΩR%]|Hz|ohm)?(?:[ /,;_].*)?", re.IGNORECASE)
_PRICE = re.compile(r"[$€£¥]?\s*\d+[.,]\d+\s*[$€£¥]?")
_TEXT_FORMULA = re.compile(r'="(.*)"')  # what keeps leading zeros in a CSV file, as an apostrophe does
_OR = re.compile(r"\s+(?:/|or|oder|ou)\s+|\s*\|\s*", re.IGNORECASE)
_AND = re.compile(r",\s+|\s*;\s*")
_ONE_OF_SEVERAL = re.compile(r"(?=\S*\d)\S{4,}")


class QuantityError(ValueError):
    """A text that is no quantity, or may be two of them; the message is a predicate."""


def is_not_populated(text: str) -> bool:
    """Return whether a cell says that the part is not fitted: `DNP`, `10k (DNF)`, `2 DNP`."""
    if len(text) > QUANTITY_MAX:
        return False
    notes = (*_NOTE.findall(text), text, *_WORDS.findall(text if text[:1].isdecimal() else ""))
    return any(plain(note) in NOT_POPULATED for note in notes if len(note) > 1)


def decimal_mark(cells: Iterable[Cell]) -> DecimalMark | None:
    """Return the decimal mark that a column of quantities uses, by those that have one meaning only, such as `2,5`."""
    marks: set[DecimalMark] = set()
    for cell in cells:
        text = cell.strip() if isinstance(cell, str) and len(cell) <= QUANTITY_MAX else ""
        match = _NUMBER_AND_UNIT.fullmatch(text)
        if match is None or not any(mark in match[1] for mark in ".,"):
            continue
        possible = [mark for mark in _NUMBERS if _value(match[1], mark) is not None]
        if len(possible) == 1:
            marks.add(possible[0])
    return marks.pop() if len(marks) == 1 else None


def parse_quantity(cell: Cell, decimal: DecimalMark | None = None) -> int:
    """Return a quantity: `1 000`, `2.5 m` and `10 pcs` are 1000, 3 and 10; `decimal` decides on `2.500`; 0 is not
    fitted. Raises QuantityError."""
    if isinstance(cell, str):
        if cell in UNREADABLE:
            raise QuantityError(UNREADABLE[cell])
        text = cell.strip()
        if is_not_populated(text) or plain(re.sub(r"\d", "", text)) in NOT_POPULATED:
            return 0
        text = _NOTE.sub(lambda note: "" if plain(note[1]) in _FITTED_NOTES else note[0], text).strip()
        match = _NUMBER_AND_UNIT.fullmatch(text) if len(text) <= QUANTITY_MAX else None
        if match is None or match[2] in _MULTIPLIERS or match[2].lower() in _PACKAGES.split():
            raise QuantityError("is not a quantity")
        marks = (decimal,) if decimal else tuple(_NUMBERS)
        values = sorted({value for mark in marks if (value := _value(match[1], mark)) is not None})
    else:
        values = [Decimal(repr(cell))]
    if len(values) == 2:
        first, second = (value.normalize() for value in values)
        raise QuantityError(f"is {first:f} or {second:f}: no other quantity of the column says which")
    if not values or not values[0].is_finite() or not 0 <= values[0] < 10**DIGITS_MAX:
        raise QuantityError("is not a quantity")
    return math.ceil(values[0])


def _value(text: str, mark: DecimalMark) -> Decimal | None:
    match = _NUMBERS[mark].fullmatch(text)
    if match is None:
        return None
    whole = "".join(filter(str.isdecimal, match[1]))
    return Decimal(f"{whole}.{match[2] or 0}")


def count_designators(text: str) -> int:
    """Count designators such as `R1, R2`, `R4-R7`, `R1 to R5` and `D2-5`. Raises QuantityError."""
    text = text.strip()
    if len(text) > DESIGNATORS_MAX:
        raise QuantityError("is too long for designators")
    if _ONE_WORD.fullmatch(text):
        return 1  # PCB
    joined = _RANGE_SIGNS.sub("\0", text)
    words = [word for word in _SEPARATORS.split(joined) if word]
    designators = set[tuple[str, str]]()
    for word in words:
        if single := _DESIGNATOR.fullmatch(word):
            designators.add((single[1].casefold(), word.removeprefix(single[1]).casefold()))
        elif (span := _RANGE.fullmatch(word)) and int(span[2]) < int(span[3]):
            designators |= {(span[1].casefold(), str(number)) for number in range(int(span[2]), int(span[3]) + 1)}
        else:
            raise QuantityError(f"{word.replace(chr(0), '-')[:QUANTITY_MAX]!r} is not understood as designators")
    return len(designators)


def part_numbers(text: str, *, are_skus: bool, are_values: bool) -> tuple[list[str], str]:
    """Return the part numbers of a cell, the preferred first: several where it says `or`. Without one, also return why,
    such as that it is a dash, a placeholder or a paragraph. The column may be one of SKUs, or of values."""
    if not text.isascii():
        text = "".join(each for each in text if unicodedata.category(each) != "Cf")  # invisible
    text = text.strip()
    formula = _TEXT_FORMULA.fullmatch(text)
    text = (formula[1] if formula else text.removeprefix("'")).strip()
    form = next((reason for reason, form in _NO_NUMBERS.items() if form.fullmatch(text)), "")
    reasons = {
        f"the part number {UNREADABLE.get(text)}": text in UNREADABLE,
        form: form,
        "a price, and no part number": are_skus and _PRICE.fullmatch(text),
        "the value of a part, and no part number": are_values and VALUE.fullmatch(text),
        f"a part number of more than {NUMBER_MAX} characters": len(text) > NUMBER_MAX,
        "a part number with a line break": "\n" in text or "\r" in text,
        SEVERAL: _pieces(_AND, text),
        f"{text[:SHOWN_MAX]!r} is not a part number": not any(map(str.isalnum, text)) or is_one_of(PLACEHOLDERS, text),
    }
    why = next((reason for reason, is_so in reasons.items() if is_so), "")
    return ([] if why else _pieces(_OR, text) or [text]), why


def _pieces(separator: re.Pattern[str], text: str) -> list[str]:
    """Return the numbers of a text that consists of several, and of nothing else."""
    pieces = separator.split(text)
    is_list = len(pieces) > 1 and all(_ONE_OF_SEVERAL.fullmatch(each) and not VALUE.fullmatch(each) for each in pieces)
    return pieces if is_list else []
