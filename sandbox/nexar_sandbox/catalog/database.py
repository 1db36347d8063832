"""The SQLite database that a catalog searches: creating and filling it.

It holds the lines of the parts, of which whole records are built on demand, and what searches need: figures, part
numbers, order codes, listings, values of attributes, and a full-text index (FTS5).
"""

import sqlite3
from collections.abc import Sequence
from functools import lru_cache

import msgspec

from nexar_sandbox.catalog import listings, matching, offers, parts, pricing, records, reference_data, units

# `norm`: a part number or order code without punctuation, in upper case. `seller`: its id, in `listings` its position
# in the list of sellers. `code`: the place of a value among the sorted values of its attribute. Prices are in USD, NULL
# without a priced offer.
_TABLES = """
CREATE TABLE parts (id INTEGER PRIMARY KEY, uid TEXT, line TEXT, mpn TEXT, norm TEXT, maker TEXT, maker_name TEXT,
    category TEXT, cad INTEGER, offers INTEGER, authorized INTEGER, stocked INTEGER, median REAL, average REAL);
CREATE TABLE uids (uid TEXT PRIMARY KEY, part INTEGER) WITHOUT ROWID;
CREATE TABLE skus (norm TEXT, part INTEGER, seller TEXT);
CREATE TABLE names (norm TEXT, mpn TEXT, part INTEGER, aka INTEGER);
CREATE TABLE listings (seller INTEGER, part INTEGER, PRIMARY KEY (seller, part)) WITHOUT ROWID;
CREATE TABLE spec_values (attribute TEXT, code INTEGER, value, PRIMARY KEY (attribute, code)) WITHOUT ROWID;
CREATE TABLE specs (attribute TEXT, part INTEGER, code INTEGER, PRIMARY KEY (attribute, part)) WITHOUT ROWID;
CREATE VIRTUAL TABLE words USING fts5 (mpn, maker, category, description, specs, content='');
CREATE VIRTUAL TABLE terms USING fts5vocab (words, 'row');
"""
_INDEXES = """
CREATE UNIQUE INDEX parts_uid ON parts (uid);
CREATE INDEX parts_best ON parts (offers DESC, id);
CREATE INDEX skus_norm ON skus (norm);
CREATE INDEX names_norm ON names (norm);
"""


def create() -> sqlite3.Connection:
    """A new, empty database in memory. One thread at a time may use it, not only the one that opened it."""
    database = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
    database.executescript(_TABLES)
    return database


def fill(
    connection: sqlite3.Connection,
    lines: Sequence[records.PartLine],
    reference: reference_data.ReferenceData,
) -> None:
    """Add validated lines, with every id filled in, and the indexes."""
    execute, encode = connection.executemany, msgspec.json.Encoder().encode
    connection.execute("BEGIN")
    for line in lines:
        part_listings = listings_of(line, reference)
        id_, maker = int(line.id), reference.companies[line.manufacturer]
        first = id_, line.v3uid, encode(line).decode(), line.mpn, matching.normalize(line.mpn), maker.id, maker.name
        row = (*first, line.category, parts.cad_level(line), *_figures(part_listings))
        connection.execute("INSERT INTO parts VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)", row)
        execute("INSERT INTO uids VALUES (?,?)", [(uid, id_) for uid in line.redirected])
        execute("INSERT INTO skus VALUES (?,?,?)", _order_codes(line, part_listings))
        names = enumerate((line.mpn, *line.aka))
        rows = [(matching.normalize(name), name, id_, number > 0) for number, name in names]
        execute("INSERT INTO names VALUES (?,?,?,?)", rows)
        execute("INSERT INTO listings VALUES (?,?)", {(listing.position, id_) for listing in part_listings})
    texts = [(int(line.id), *searchable_texts(line, reference)) for line in lines]
    execute("INSERT INTO words (rowid, mpn, maker, category, description, specs) VALUES (?,?,?,?,?,?)", texts)
    for attribute in {name for line in lines for name in line.specs}:
        having = [(int(line.id), line.specs[attribute]) for line in lines if attribute in line.specs]
        values = sorted({value for _, value in having})  # all numbers or all texts
        codes = {value: code for code, value in enumerate(values)}
        execute("INSERT INTO spec_values VALUES (?,?,?)", [(attribute, code, value) for value, code in codes.items()])
        execute("INSERT INTO specs VALUES (?,?,?)", [(attribute, part, codes[value]) for part, value in having])
    connection.execute("COMMIT")
    connection.executescript(_INDEXES)


def listings_of(line: records.PartLine, reference: reference_data.ReferenceData) -> tuple[listings.CatalogListing, ...]:
    path = reference.categories[line.category].path
    return listings.listings(int(line.id), path, offer_terms(line), reference.sellers)


def offer_terms(line: records.PartLine) -> listings.OfferTerms:
    return listings.OfferTerms(line.offers, line.sku, line.codes)


def _figures(part_listings: Sequence[listings.CatalogListing]) -> tuple[int, int, bool, float | None, float | None]:
    """Figures of the offers in the US for sorting and filtering: offers, authorized sellers, whether there is stock,
    median and average price; equal to those that `pricing` computes from the records."""
    plain = [listing for listing in part_listings if not listing.seller.is_broker]
    priced = (
        listings.price_for(listing, pricing.BULK, offers.variant_for(listing.seller, "US")[1]) for listing in plain
    )
    prices = [price for price in priced if price is not None]
    return (
        sum(len(listing.ladders) for listing in part_listings),
        sum(listing.seller.is_authorized for listing in part_listings),
        any(listing.stock > 0 or listing.stock == listings.SOME_STOCK for listing in plain),
        pricing.median(prices),
        pricing.mean(prices),
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
