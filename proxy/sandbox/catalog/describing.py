"""What searches need to know of parts: figures of their offers, and the tokens of their text.

A pure function of the parts' lines, used by building.py; of a large catalog several processes do it.
"""

from array import array
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from proxy.sandbox.catalog import lines, listing, matching, offers, pricing, text, tokens, units, vocabulary


class Figures(NamedTuple):
    """What sorting and filtering need of a part's offers; prices are in USD, None where nobody prices."""

    offers: int
    authorized: int
    stocked: bool
    median: float | None
    average: float | None
    sellers: bytes


class Described(NamedTuple):
    """Some parts. `words` are the different tokens of them all; `said` is for every token its place among those,
    `places` where it stands, part by part as `lengths` says."""

    figures: list[Figures]
    words: list[str]
    said: "array[int]"
    places: "array[int]"
    lengths: "array[int]"


def describe(found: Sequence[lines.PartLine], words: vocabulary.Vocabulary, seed: int) -> Described:
    """Checked lines with every id filled in."""
    heard: dict[str, array[int]] = {}
    numbers: dict[str, int] = {}
    said, places, lengths = array("I"), array("H"), array("I")
    for line in found:
        before = len(said)
        for field, texts in enumerate(searched(line, words)):
            start = len(said)
            for each in texts:
                if each not in heard:
                    heard[each] = array("I", [numbers.setdefault(one, len(numbers)) for one in tokens.tokens(each)])
                said.extend(heard[each])
            places.extend(_places(field, len(said) - start))
        lengths.append(len(said) - before)
    return Described([figures(line, words, seed) for line in found], list(numbers), said, places, lengths)


def figures(line: lines.PartLine, words: vocabulary.Vocabulary, seed: int) -> Figures:
    """The figures of the offers that the part's US variant has; the same ones that `pricing` finds in the
    records."""
    path = words.categories[line.category].path
    found = listing.listings(int(line.id), path, terms(line), words.sellers, seed)
    plain = [one for one in found if not one.seller.company.is_broker]
    priced = (listing.price_for(one, pricing.BULK, offers.variant_for(one.seller, "US")[1]) for one in plain)
    prices = [price for price in priced if price is not None]
    return Figures(
        offers=sum(len(one.ladders) for one in found),
        authorized=sum(one.seller.authorized for one in found),
        stocked=any(one.stock > 0 or one.stock == listing.SOME_STOCK for one in plain),
        median=pricing.median(prices),
        average=pricing.mean(prices),
        sellers=bytes(one.position for one in found),
    )


def terms(line: lines.PartLine) -> listing.Terms:
    """What the line says about its own offers."""
    return listing.Terms(line.offers, line.sku, line.codes)


def searched(line: lines.PartLine, words: vocabulary.Vocabulary) -> tuple[tuple[str, ...], ...]:
    """The texts of the five fields of `text.WEIGHTS`; no token goes from one text to the next."""
    maker = words.companies[line.manufacturer]
    branch = [*words.ancestors(line.category), words.categories[line.category]]
    specs = (
        value if isinstance(value, str) else spoken(value, words.attributes[name].units_symbol)
        for name, value in line.specs.items()
    )
    return (
        (line.mpn, matching.normalise(line.mpn), *line.aka, *map(matching.normalise, line.aka)),
        (maker.name, *maker.aliases),
        tuple(one.name for one in branch[1:]),
        (line.description,),
        tuple(specs),
    )


def _places(field: int, count: int) -> Sequence[int]:
    """Where the tokens of a field stand; the last place is for all that are further on."""
    first, last = field << text.PLACE_BITS, (field << text.PLACE_BITS) + text.LAST_PLACE
    return range(first, first + count) if count <= text.LAST_PLACE else [min(first + i, last) for i in range(count)]


@lru_cache(maxsize=1 << 14)
def spoken(number: float, symbol: str) -> str:
    """A number in the ways people type it: "4.7 kΩ 4.7kΩ 4.7k"."""
    shown = units.shown(number, symbol)
    short = f"{shown.value}{shown.units.removesuffix(symbol)}" if symbol else ""
    return f"{shown.display} {shown.value}{shown.units} {short}"
