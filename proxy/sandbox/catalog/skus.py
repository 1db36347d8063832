"""The order codes of the sellers, made from the part so that they can be read backwards.

A hundred thousand parts at ten sellers are a million order codes: instead of storing them, `sku` makes one in
the seller's style and `readings` says which parts a given code could mean. The caller checks the candidates.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from proxy.sandbox.catalog import matching


class Numbered(NamedTuple):
    """What an order code is made from; `variant` counts the seller's packagings of the part from 0."""

    part_id: int
    maker_id: int
    mpn: str
    variant: int


class Readings(NamedTuple):
    """Ids and normalised MPNs of the parts that an order code could mean."""

    ids: frozenset[int]
    mpns: frozenset[str]


def sku(seller_id: str, of: Numbered) -> str:
    """The order code of a part at a seller, in the seller's own style; most sellers use the MPN itself."""
    style = _STYLES.get(seller_id)
    return style(of) if style else of.mpn


def readings(code: str) -> Readings:
    """What the normalised order code `code` could mean in any style."""
    ids = {id_ for pattern, undo in _READERS if (hit := pattern.fullmatch(code)) and (id_ := undo(hit)) is not None}
    tail = re.fullmatch(r"[1-9]\d\d(.+)", code)
    return Readings(frozenset(ids), frozenset({code, tail[1]} if tail else {code}))


def _prefix(of: Numbered) -> int:
    return 100 + of.maker_id % 900


def _digikey(of: Numbered) -> str:
    return f"{_prefix(of)}-{of.part_id}-{(1, 2, 6)[of.variant % 3]}-ND"


def _mouser(of: Numbered) -> str:
    return f"{_prefix(of)}-{matching.normalise(of.mpn)}"


def _newark(of: Numbered) -> str:
    lead, rest = divmod(of.part_id, 260_000)
    return f"{lead:02}{chr(ord('A') + rest // 10_000)}{rest % 10_000:04}"


def _from_newark(hit: re.Match[str]) -> int:
    return int(hit[1]) * 260_000 + (ord(hit[2]) - ord("A")) * 10_000 + int(hit[3])


def _farnell(of: Numbered) -> str:
    return f"{of.part_id + 1_000_000}{'RL' if of.variant else ''}"


def _rs(of: Numbered) -> str:
    return f"{of.part_id // 10_000:03}-{of.part_id % 10_000:04}"


def _future(of: Numbered) -> str:
    return str(of.part_id * 3 + 7)


def _from_future(hit: re.Match[str]) -> int | None:
    whole, rest = divmod(int(hit[0]) - 7, 3)
    return None if rest else whole


def _lcsc(of: Numbered) -> str:
    return f"C{of.part_id}"


_STYLES: dict[str, Callable[[Numbered], str]] = {
    "459": _digikey,
    "2401": _mouser,
    "2402": _newark,
    "819": _farnell,
    "3702": _farnell,
    "3261": _rs,
    "2454": _future,
    "11779": _lcsc,
}

# A code of more digits is no id: it would not fit the database's integers.
_READERS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], int | None]], ...] = (
    (re.compile(r"[0-9]{3}([0-9]{1,15})[126]ND"), lambda hit: int(hit[1])),
    (re.compile(r"([0-9]{2,10})([A-Z])([0-9]{4})"), _from_newark),
    (re.compile(r"([0-9]{1,15})(RL)?"), lambda hit: int(hit[1]) - 1_000_000),
    (re.compile(r"[0-9]{1,15}"), lambda hit: int(hit[0])),
    (re.compile(r"[0-9]{1,15}"), _from_future),
    (re.compile(r"C([0-9]{1,15})"), lambda hit: int(hit[1])),
)
