"""What searches need of a part: figures of its offers, and its text. Pure functions of the parts' lines."""

from functools import lru_cache
from typing import NamedTuple

from nexar_sandbox.catalog import listings, matching, offers, pricing, reference_data, source_files, units


class OfferFigures(NamedTuple):
    """Figures of a part's offers for sorting and filtering. Prices are in USD, None without a priced offer; `sellers`
    are positions in the list of sellers."""

    offers: int
    authorized: int
    stocked: bool
    median: float | None
    average: float | None
    sellers: tuple[int, ...]


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
        sellers=tuple(listing.position for listing in part_listings),
    )


def offer_terms(line: source_files.PartLine) -> listings.OfferTerms:
    return listings.OfferTerms(line.offers, line.sku, line.codes)


def searchable_texts(
    line: source_files.PartLine, reference: reference_data.ReferenceData
) -> tuple[str, str, str, str, str]:
    """The texts by which a part is found: its numbers, maker, category, description and values."""
    maker = reference.companies[line.manufacturer]
    numbers = (line.mpn, matching.normalize(line.mpn), *line.aka, *map(matching.normalize, line.aka))
    branch = [*reference.ancestors(line.category), reference.categories[line.category]]
    specs = (
        value if isinstance(value, str) else number_spellings(value, reference.attributes[name].units_symbol)
        for name, value in line.specs.items()
    )
    return (
        " ".join(numbers),
        " ".join((maker.name, *maker.aliases)),
        " ".join(category.name for category in branch[1:]),
        line.description,
        " ".join(specs),
    )


@lru_cache(maxsize=1 << 14)
def number_spellings(number: float, symbol: str) -> str:
    """A number in the ways people type it: "4.7 kΩ 4.7kΩ 4.7k"."""
    displayed = units.displayed(number, symbol)
    # People leave the unit out: 4.7k.
    short = f"{displayed.value}{displayed.units.removesuffix(symbol)}" if symbol else ""
    return f"{displayed.display} {displayed.value}{displayed.units} {short}"
