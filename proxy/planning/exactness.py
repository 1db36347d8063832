"""What v3 called a match. v3 never matched a part of an MPN, supSearchMpn does: the difference is taken out here.

Rules of contract v3-rest.md §4: punctuation and case are ignored, unless exact_only; `*` stands for anything.
The service ranks exact matches first, so the first part that is none ends the exact ones: that keeps `hits` honest.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from proxy.model import PartsMatchQuery
from proxy.planning import wildcards
from proxy.planning.operations import Found

WILDCARD = wildcards.ANY
LITERALS_MIN = 3  # characters beside wildcards: contract v3-rest.md §4

Keep = Callable[[Any, str | None], bool]


class Narrowed(NamedTuple):
    """The matches of one query. `certain`: whether `hits` is a count, not only the most there can be."""

    parts: list[Any]
    hits: int
    certain: bool


def normalise(number: str) -> str:
    """Letters and digits in upper case: what is compared when punctuation does not count."""
    return "".join(filter(str.isalnum, number)).upper()


def literal(pattern: str) -> str:
    """The longest piece of a number with wildcards: what a partial search is asked for."""
    return max(pattern.split(WILDCARD), key=lambda piece: len(normalise(piece)))


def keeper(query: PartsMatchQuery, exact_only: bool, partial: bool) -> Keep | None:
    """Which parts of an answer are matches; None where all are. `partial`: the answer may hold partial matches."""
    number = query.mpn or query.mpn_or_sku
    if not number:
        return None
    if WILDCARD in number:
        return _like(number, exact_only)
    if exact_only:
        return _equal(number) if query.mpn else _equal_or_sku(number)
    if not partial:
        return None
    wanted = normalise(number)
    return lambda part, aka: normalise(part.mpn) == wanted or (aka is not None and normalise(aka) == wanted)


def is_ranked(number: str) -> bool:
    """Whether matches come first in a partial search: not where a pattern begins or goes on after its wildcard."""
    return WILDCARD not in number.rstrip(WILDCARD)


def narrow(query: PartsMatchQuery, found: Found, keep: Keep | None, partial: bool) -> Narrowed:
    """The matches among what was found, and how many there are in all."""
    if keep is None:
        return Narrowed(found.parts, found.hits, certain=True)
    kept = [part for part, aka in found.with_akas() if keep(part, aka)]
    seen = query.start + len(found.parts)
    if not partial:
        return Narrowed(kept, found.hits - (len(found.parts) - len(kept)), certain=seen >= found.hits)
    if len(kept) == len(found.parts):
        return Narrowed(kept, found.hits, certain=seen >= found.hits)
    return Narrowed(kept, query.start + len(kept), certain=bool(kept) or query.start == 0)


def pick(query: PartsMatchQuery, found: Found, keep: Keep | None) -> Narrowed:
    """The asked for page of the matches among candidates; there are at least so many."""
    kept = [part for part, aka in found.with_akas() if keep is None or keep(part, aka)]
    return Narrowed(kept[query.start : query.start + query.limit], len(kept), certain=True)


def _equal(number: str) -> Keep:
    return lambda part, aka: number in (part.mpn, aka)


def _equal_or_sku(number: str) -> Keep:
    return lambda part, aka: (
        number in (part.mpn, aka) or any(offer.sku == number for seller in part.sellers for offer in seller.offers)
    )


def _like(pattern: str, exact_only: bool) -> Keep:
    prepare = str if exact_only else normalise
    matches = wildcards.matcher(WILDCARD.join(map(prepare, pattern.split(WILDCARD))))
    return lambda part, aka: matches(prepare(part.mpn)) or bool(aka and matches(prepare(aka)))
