"""The SQLite database that a catalog searches.

It holds figures of the parts, part numbers, order codes, listings, and a full-text index (FTS5). The parts themselves
are in memory.
"""

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from nexar_sandbox.catalog import listings, matching, offers, parts, records, reference_data, units

# `norm`: a part number or order code without punctuation, in upper case. `seller`: its id, in `listings` its position
# in the list of sellers.
_TABLES = """
CREATE TABLE parts (id INTEGER PRIMARY KEY, mpn TEXT, norm TEXT, maker TEXT, maker_name TEXT,
    category TEXT, cad INTEGER, offers INTEGER, authorized INTEGER, stocked INTEGER);
CREATE TABLE skus (norm TEXT, part INTEGER, seller TEXT);
CREATE TABLE names (norm TEXT, mpn TEXT, part INTEGER, aka INTEGER);
CREATE TABLE listings (seller INTEGER, part INTEGER, PRIMARY KEY (seller, part)) WITHOUT ROWID;
CREATE VIRTUAL TABLE words USING fts5 (mpn, maker, category, description, specs, content='');
CREATE VIRTUAL TABLE terms USING fts5vocab (words, 'row');
"""
_INDEXES = """
CREATE INDEX parts_best ON parts (offers DESC, id);
CREATE INDEX skus_norm ON skus (norm);
CREATE INDEX names_norm ON names (norm);
"""


def create(lines: Mapping[int, records.PartLine], reference: reference_data.ReferenceData) -> sqlite3.Connection:
    """The database of these parts in memory. One thread at a time may use it, not only the one that opened it. Its
    function `spec` has the value of an attribute of a part."""
    connection = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
    connection.create_function("spec", 2, lambda part, name: lines[part].specs.get(name), deterministic=True)
    connection.executescript(_TABLES)
    connection.execute("BEGIN")
    for id_, line in lines.items():
        _insert(connection.executemany, id_, line, reference)
    connection.execute("COMMIT")
    connection.executescript(_INDEXES)
    return connection


def _insert(
    execute: Callable[[str, Iterable[Any]], object],
    id_: int,
    line: records.PartLine,
    reference: reference_data.ReferenceData,
) -> None:
    part_listings = listings_of(line, reference)
    maker = reference.companies[line.manufacturer]
    first = id_, line.mpn, matching.normalize(line.mpn), maker.id, maker.name, line.category
    execute(
        "INSERT INTO parts VALUES (?,?,?,?,?,?,?,?,?,?)",
        [(*first, parts.cad_level(line), *_figures(part_listings))],
    )
    execute("INSERT INTO skus VALUES (?,?,?)", _order_codes(line, part_listings))
    names = enumerate((line.mpn, *line.aka))
    execute("INSERT INTO names VALUES (?,?,?,?)", [(matching.normalize(name), name, id_, n > 0) for n, name in names])
    execute("INSERT INTO listings VALUES (?,?)", {(listing.position, id_) for listing in part_listings})
    texts = id_, *searchable_texts(line, reference)
    execute("INSERT INTO words (rowid, mpn, maker, category, description, specs) VALUES (?,?,?,?,?,?)", [texts])


def listings_of(line: records.PartLine, reference: reference_data.ReferenceData) -> tuple[listings.CatalogListing, ...]:
    path = reference.categories[line.category].path
    return listings.listings(int(line.id), path, offer_terms(line), reference.sellers)


def offer_terms(line: records.PartLine) -> listings.OfferTerms:
    return listings.OfferTerms(line.offers, line.sku, line.codes)


def _figures(part_listings: Sequence[listings.CatalogListing]) -> tuple[int, int, bool]:
    """Offers, authorized sellers, and whether there is stock, without brokers' (contract graphql.md §2.6)."""
    plain = [listing for listing in part_listings if not listing.seller.is_broker]
    return (
        sum(len(listing.ladders) for listing in part_listings),
        sum(listing.seller.is_authorized for listing in part_listings),
        any(listing.stock > 0 or listing.stock == listings.SOME_STOCK for listing in plain),
    )


def _order_codes(
    line: records.PartLine, part_listings: Sequence[listings.CatalogListing]
) -> list[tuple[str, int, str]]:
    id_, maker, terms = int(line.id), int(line.manufacturer), offer_terms(line)
    return [
        (matching.normalize(code), id_, listing.seller.id)
        for listing in part_listings
        for code in offers.order_codes(id_, maker, line.mpn, terms, listing)
    ]


def searchable_texts(line: records.PartLine, reference: reference_data.ReferenceData) -> tuple[str, str, str, str, str]:
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
