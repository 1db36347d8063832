"""Index entries of parts for searching: figures of their offers, and the tokens of their text.

A pure function of the parts' lines; for a large catalog it runs in several processes (loader.py).
"""

from array import array
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from nexar_sandbox.catalog import full_text, listings, matching, offers, pricing, reference_data, source_files, units


class OfferFigures(NamedTuple):
    """Figures of a part's offers for sorting and filtering. Prices are in USD, None without a priced offer; `sellers`
    are positions in the list of sellers, one byte each."""

    offers: int
    authorized: int
    stocked: bool
    median: float | None
    average: float | None
    sellers: bytes


class IndexedParts(NamedTuple):
    """Index entries of a batch of parts. `tokens` are its distinct tokens; for each occurrence of a token,
    `token_numbers` has its index in `tokens` and `positions` its position in the part. `lengths` is the number of
    occurrences in each part."""

    offer_figures: list[OfferFigures]
    tokens: list[str]
    token_numbers: "array[int]"
    positions: "array[int]"
    lengths: "array[int]"


def index_parts(
    parts: Sequence[source_files.PartLine], reference: reference_data.ReferenceData, seed: int
) -> IndexedParts:
    """The index entries of validated lines, with every id filled in."""
    # Texts such as category names repeat, so each is tokenized once a batch.
    tokenized: dict[str, array[int]] = {}
    numbers: dict[str, int] = {}
    token_numbers, positions, lengths = array("I"), array("H"), array("I")
    for line in parts:
        before = len(token_numbers)
        for field, texts in enumerate(searchable_texts(line, reference)):
            start = len(token_numbers)
            for text in texts:
                if text not in tokenized:
                    tokenized[text] = array(
                        "I", [numbers.setdefault(token, len(numbers)) for token in full_text.tokens(text)]
                    )
                token_numbers.extend(tokenized[text])
            positions.extend(_positions(field, len(token_numbers) - start))
        lengths.append(len(token_numbers) - before)
    return IndexedParts(
        [offer_figures(line, reference, seed) for line in parts], list(numbers), token_numbers, positions, lengths
    )


def offer_figures(line: source_files.PartLine, reference: reference_data.ReferenceData, seed: int) -> OfferFigures:
    """The figures of the part's offers in the US; equal to those that `pricing` computes from the records."""
    path = reference.categories[line.category].path
    part_listings = listings.listings(int(line.id), path, offer_terms(line), reference.sellers, seed)
    plain = [listing for listing in part_listings if not listing.seller.company.is_broker]
    priced = (
        listings.price_for(listing, pricing.BULK, offers.variant_for(listing.seller, "US")[1]) for listing in plain
    )
    prices = [price for price in priced if price is not None]
    return OfferFigures(
        offers=sum(len(listing.ladders) for listing in part_listings),
        authorized=sum(listing.seller.authorized for listing in part_listings),
        stocked=any(listing.stock > 0 or listing.stock == listings.SOME_STOCK for listing in plain),
        median=pricing.median(prices),
        average=pricing.mean(prices),
        sellers=bytes(listing.position for listing in part_listings),
    )


def offer_terms(line: source_files.PartLine) -> listings.OfferTerms:
    """The offer terms of the line."""
    return listings.OfferTerms(line.offers, line.sku, line.codes)


def searchable_texts(
    line: source_files.PartLine, reference: reference_data.ReferenceData
) -> tuple[tuple[str, ...], ...]:
    """The texts of the five fields of `full_text.WEIGHTS`. A token never spans two texts."""
    maker = reference.companies[line.manufacturer]
    branch = [*reference.ancestors(line.category), reference.categories[line.category]]
    specs = (
        value if isinstance(value, str) else number_spellings(value, reference.attributes[name].units_symbol)
        for name, value in line.specs.items()
    )
    return (
        (line.mpn, matching.normalize(line.mpn), *line.aka, *map(matching.normalize, line.aka)),
        (maker.name, *maker.aliases),
        tuple(category.name for category in branch[1:]),
        (line.description,),
        tuple(specs),
    )


def _positions(field: int, count: int) -> Sequence[int]:
    """The positions of the tokens of a field; all beyond the last position share it."""
    first, last = field << full_text.POSITION_BITS, (field << full_text.POSITION_BITS) + full_text.LAST_POSITION
    return (
        range(first, first + count)
        if count <= full_text.LAST_POSITION
        else [min(first + i, last) for i in range(count)]
    )


@lru_cache(maxsize=1 << 14)
def number_spellings(number: float, symbol: str) -> str:
    """A number in the ways people type it: "4.7 kΩ 4.7kΩ 4.7k"."""
    displayed = units.displayed(number, symbol)
    # People leave the unit out: 4.7k.
    short = f"{displayed.value}{displayed.units.removesuffix(symbol)}" if symbol else ""
    return f"{displayed.display} {displayed.value}{displayed.units} {short}"
