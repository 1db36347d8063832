"""Part numbers and SKUs as cells have them: without what programs add, several in one cell, and why a text is none."""

import re
import unicodedata

from proxy.tools.sheet.quantities import UNREADABLE
from proxy.traffic.bom_columns import is_placeholder

LENGTH_MAX = 200  # characters of a part number
SHOWN_MAX = 60  # characters of a text in a message
AGAIN = "format the column as text and enter it again"
LOST_DIGITS = f"a number that has lost digits: {AGAIN}"
A_DATE = f"a date, which a program made of the text: {AGAIN}"
AN_ERROR = "an error of a spreadsheet program"
SEVERAL = "several part numbers in one cell: give each a line"

_MONTH = "(?:jan|feb|mar|mär|mrz|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez)"
_YEAR = r"(?:(?:19|20)?\d\d)"
_NO_NUMBERS = {
    LOST_DIGITS: re.compile(r"\d(?:[.,]\d+)?E\+?\d{2,3}", re.IGNORECASE),
    A_DATE: re.compile(
        rf"\d{{1,2}}[-. ]{_MONTH}(?:[-. ]{_YEAR})?|{_MONTH}[- ]{_YEAR}|\d{{1,2}}([./])\d{{1,2}}\1(?:19|20)\d\d",
        re.IGNORECASE,
    ),
    "an address, and no part number": re.compile(r"(?:https?:|www\.).*", re.IGNORECASE | re.DOTALL),
    AN_ERROR: re.compile(r"#(?:REF|NAME|VALUE|NUM|NULL|DIV/0|N/A|NV|BEZUG|WERT)[!?]?|#{3,}", re.IGNORECASE),
}
# 10k, 4k7, 100nF/50V, 0.1uF 10%: what stands in a column of values, and would find and bill some part.
_VALUE = re.compile(r"[\d.,]+ ?[pnuµμmkMGR]?\d{0,2} ?(?:[FHVAWΩR%]|Hz|ohm)?(?:[ /,;_].*)?", re.IGNORECASE)
_PRICE = re.compile(r"[$€£¥]?\s*\d+[.,]\d+\s*[$€£¥]?")
_TEXT_FORMULA = re.compile(r'="(.*)"')  # what keeps leading zeros in a CSV file
_OR = re.compile(r"\s+(?:/|or|oder|ou)\s+|\s*\|\s*", re.IGNORECASE)
_AND = re.compile(r",\s+|\s*;\s*")
_ONE_OF_SEVERAL = re.compile(r"(?=\S*\d)\S{4,}")


def of_cell(text: str) -> list[str]:
    """Return the part numbers of a cell, the preferred first: several where it says `or`; none where it has none."""
    text = _cleaned(text)
    return [] if why_none(text) else _pieces(_OR, text) or [text]


def sku(text: str) -> str:
    """Return a distributor's number; empty for prices, too."""
    numbers = [] if _PRICE.fullmatch(text.strip()) else of_cell(text)
    return numbers[0] if numbers else ""


def is_value(number: str) -> bool:
    """Return whether a text is the value of a part, such as 100nF."""
    return _VALUE.fullmatch(number) is not None


def why_none(text: str, *, of_values: bool = False) -> str:
    """Return why a cell has no part number, such as a dash, a placeholder or a paragraph; empty where it has one.
    `of_values`: it is in a column of values."""
    text = _cleaned(text)
    form = next((reason for reason, form in _NO_NUMBERS.items() if form.fullmatch(text)), "")
    reasons = {
        f"the part number {UNREADABLE.get(text)}": text in UNREADABLE,
        form: form,
        "the value of a part, and no part number": of_values and is_value(text),
        f"a part number of more than {LENGTH_MAX} characters": len(text) > LENGTH_MAX,
        "a part number with a line break": "\n" in text or "\r" in text,
        SEVERAL: _pieces(_AND, text),
        f"{text[:SHOWN_MAX]!r} is not a part number": not any(map(str.isalnum, text)) or is_placeholder(text),
    }
    return next((reason for reason, is_so in reasons.items() if is_so), "")


def _cleaned(text: str) -> str:
    """Return a text without invisible characters, and what keeps a spreadsheet program from converting it."""
    if not text.isascii():
        text = "".join(each for each in text if unicodedata.category(each) != "Cf")
    text = text.strip()
    formula = _TEXT_FORMULA.fullmatch(text)
    return (formula[1] if formula else text.removeprefix("'")).strip()


def _pieces(separator: re.Pattern[str], text: str) -> list[str]:
    """Return the numbers of a text that consists of several, and of nothing else."""
    pieces = separator.split(text)
    is_list = len(pieces) > 1 and all(_ONE_OF_SEVERAL.fullmatch(each) and not is_value(each) for each in pieces)
    return pieces if is_list else []
