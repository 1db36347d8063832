"""Order codes (SKUs) of the sellers, generated from the part in a reversible format.

A hundred thousand parts at ten sellers are a million order codes. They are not stored: `sku` generates one in the
seller's format and `candidates` gives the parts that a code may belong to. The caller checks the candidates.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from nexar_sandbox.catalog import matching


class SkuInput(NamedTuple):
    """Input of order code generation; `variant` counts the seller's packagings of the part from 0."""

    part_id: int
    maker_id: int
    mpn: str
    variant: int


class SkuCandidates(NamedTuple):
    """Ids and normalized MPNs of the parts that an order code may belong to."""

    ids: frozenset[int]
    mpns: frozenset[str]


def sku(seller_id: str, source: SkuInput) -> str:
    """The order code of a part at a seller, in the seller's format; most sellers use the MPN itself."""
    format_sku = _FORMATS.get(seller_id)
    return format_sku(source) if format_sku else source.mpn


def candidates(code: str) -> SkuCandidates:
    """The parts that the normalized order code `code` may belong to, in any format."""
    ids = {id_ for pattern, parse in _PARSERS if (hit := pattern.fullmatch(code)) and (id_ := parse(hit)) is not None}
    tail = re.fullmatch(r"[1-9]\d\d(.+)", code)
    return SkuCandidates(frozenset(ids), frozenset({code, tail[1]} if tail else {code}))


def _prefix(source: SkuInput) -> int:
    return 100 + source.maker_id % 900


def _newark(source: SkuInput) -> str:
    lead, rest = divmod(source.part_id, 260_000)
    return f"{lead:02}{chr(ord('A') + rest // 10_000)}{rest % 10_000:04}"


def _farnell(source: SkuInput) -> str:
    return f"{source.part_id + 1_000_000}{'RL' if source.variant else ''}"


def _from_future(hit: re.Match[str]) -> int | None:
    whole, rest = divmod(int(hit[0]) - 7, 3)
    return None if rest else whole


# By seller id: Digi-Key, Mouser, Newark, Farnell, element14, RS, Future, LCSC.
_FORMATS: dict[str, Callable[[SkuInput], str]] = {
    "459": lambda source: f"{_prefix(source)}-{source.part_id}-{(1, 2, 6)[source.variant % 3]}-ND",
    "2401": lambda source: f"{_prefix(source)}-{matching.normalize(source.mpn)}",
    "2402": _newark,
    "819": _farnell,
    "3702": _farnell,
    "3261": lambda source: f"{source.part_id // 10_000:03}-{source.part_id % 10_000:04}",
    "2454": lambda source: str(source.part_id * 3 + 7),
    "11779": lambda source: f"C{source.part_id}",
}

# A code with more digits is no id: it would not fit the database's integers.
_PARSERS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], int | None]], ...] = (
    (re.compile(r"[0-9]{3}([0-9]{1,15})[126]ND"), lambda hit: int(hit[1])),
    (
        re.compile(r"([0-9]{2,10})([A-Z])([0-9]{4})"),
        lambda hit: int(hit[1]) * 260_000 + (ord(hit[2]) - ord("A")) * 10_000 + int(hit[3]),
    ),
    (re.compile(r"([0-9]{1,15})(RL)?"), lambda hit: int(hit[1]) - 1_000_000),
    (re.compile(r"[0-9]{1,15}"), lambda hit: int(hit[0])),
    (re.compile(r"[0-9]{1,15}"), _from_future),
    (re.compile(r"C([0-9]{1,15})"), lambda hit: int(hit[1])),
)
