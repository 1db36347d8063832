"""The SQLite database that a catalog searches: creating, filling and opening it.

It holds the lines of the parts, of which whole records are built on demand, and what searches need: figures, part
numbers, listings, values of attributes, and a full-text index (FTS5).
"""

import sqlite3
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from nexar_sandbox.catalog import listings, matching, offers, parts, pricing, reference_data, source_files, units

# `norm`: a part number without punctuation, in upper case. `seller`: its position in the list of sellers. `code`: the
# place of a value among the sorted values of its attribute.
_TABLES = """
CREATE TABLE parts (id INTEGER PRIMARY KEY, uid TEXT, line TEXT, mpn TEXT, norm TEXT, maker TEXT, maker_name TEXT,
    category TEXT, cad INTEGER, offers INTEGER, authorized INTEGER, stocked INTEGER, median REAL, average REAL);
CREATE TABLE uids (uid TEXT PRIMARY KEY, part INTEGER) WITHOUT ROWID;
CREATE TABLE skus (norm TEXT, part INTEGER);
CREATE TABLE names (norm TEXT, mpn TEXT, part INTEGER, aka INTEGER);
CREATE TABLE listings (seller INTEGER, part INTEGER, PRIMARY KEY (seller, part)) WITHOUT ROWID;
CREATE TABLE spec_values (attribute TEXT, code INTEGER, value, PRIMARY KEY (attribute, code)) WITHOUT ROWID;
CREATE TABLE specs (attribute TEXT, part INTEGER, code INTEGER, PRIMARY KEY (attribute, part)) WITHOUT ROWID;
CREATE VIRTUAL TABLE words USING fts5 (mpn, maker, category, description, specs, content='');
CREATE VIRTUAL TABLE terms USING fts5vocab (words, 'row');
CREATE TABLE properties (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
"""
INDEXES = """
CREATE UNIQUE INDEX parts_uid ON parts (uid);
CREATE INDEX parts_best ON parts (offers DESC, id);
CREATE INDEX skus_norm ON skus (norm);
CREATE INDEX names_norm ON names (norm);
"""


def create(path: Path | None = None) -> sqlite3.Connection:
    """A new, empty database, in memory or in a file. One thread at a time may use it, not only the one that opened
    it."""
    database = sqlite3.connect(path or ":memory:", check_same_thread=False, isolation_level=None)
    # A half-filled database is thrown away, so neither a journal nor fsync is needed.
    database.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;")
    database.executescript(_TABLES)
    return database


def open_read_only(path: Path) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    return sqlite3.connect(uri, uri=True, check_same_thread=False, isolation_level=None)


class OfferFigures(NamedTuple):
    """Figures of a part's offers for sorting and filtering. Prices are in USD, None without a priced offer; `sellers`
    are positions in the list of sellers."""

    offers: int
    authorized: int
    stocked: bool
    median: float | None
    average: float | None
    sellers: tuple[int, ...]


class DatabaseBuilder:
    """Fills one database: `add` parts in batches, then `finish` once."""

    def __init__(self, connection: sqlite3.Connection, reference: reference_data.ReferenceData, seed: int) -> None:
        self._connection, self._reference, self._seed = connection, reference, seed
        self._specs: dict[str, list[tuple[int, float | str]]] = {}
        self._encode = msgspec.json.Encoder().encode
        connection.execute("BEGIN")

    def add(self, batch: Sequence[source_files.PartLine]) -> None:
        """Add validated lines, with every id filled in."""
        for line in batch:
            self._add_part(line, int(line.id))
        execute = self._connection.executemany
        execute("INSERT INTO uids VALUES (?,?)", [(uid, int(line.id)) for line in batch for uid in line.redirected])
        codes = [(matching.normalize(code), int(line.id)) for line in batch for code in line.sku.values()]
        execute("INSERT INTO skus VALUES (?,?)", codes)
        names = [
            (matching.normalize(name), name, int(line.id), number > 0)
            for line in batch
            for number, name in enumerate((line.mpn, *line.aka))
        ]
        execute("INSERT INTO names VALUES (?,?,?,?)", names)
        texts = [(int(line.id), *searchable_texts(line, self._reference)) for line in batch]
        execute("INSERT INTO words (rowid, mpn, maker, category, description, specs) VALUES (?,?,?,?,?,?)", texts)

    def finish(self) -> None:
        """Write the values of attributes, which are sorted among all parts, and the indexes."""
        for name, having in self._specs.items():
            values = sorted({value for _, value in having})  # all numbers or all texts
            codes = {value: code for code, value in enumerate(values)}
            self._connection.executemany(
                "INSERT INTO spec_values VALUES (?,?,?)", [(name, code, value) for value, code in codes.items()]
            )
            self._connection.executemany(
                "INSERT INTO specs VALUES (?,?,?)", [(name, part, codes[value]) for part, value in having]
            )
        self._connection.execute("INSERT INTO words (words) VALUES ('optimize')")
        self._connection.execute("COMMIT")
        self._connection.executescript(INDEXES)

    def _add_part(self, line: source_files.PartLine, id_: int) -> None:
        figures = offer_figures(line, self._reference, self._seed)
        row = (
            id_,
            line.v3uid,
            self._encode(line).decode(),
            line.mpn,
            matching.normalize(line.mpn),
            line.manufacturer,
            self._reference.companies[line.manufacturer].name,
            line.category,
            parts.cad_level(line),
            figures.offers,
            figures.authorized,
            figures.stocked,
            figures.median,
            figures.average,
        )
        self._connection.execute(f"INSERT INTO parts VALUES ({','.join('?' * len(row))})", row)  # noqa: S608 - marks
        self._connection.executemany(
            "INSERT INTO listings VALUES (?,?)", [(seller, id_) for seller in set(figures.sellers)]
        )
        for name, value in line.specs.items():
            self._specs.setdefault(name, []).append((id_, value))


def offer_figures(line: source_files.PartLine, reference: reference_data.ReferenceData, seed: int) -> OfferFigures:
    """The figures of the part's offers in the US; equal to those that `pricing` computes from the records."""
    path = reference.categories[line.category].path
    part_listings = listings.listings(int(line.id), path, offer_terms(line), reference.sellers, seed)
    plain = [listing for listing in part_listings if not listing.seller.is_broker]
    priced = (
        listings.price_for(listing, pricing.BULK, offers.variant_for(listing.seller, "US")[1]) for listing in plain
    )
    prices = [price for price in priced if price is not None]
    return OfferFigures(
        offers=sum(len(listing.ladders) for listing in part_listings),
        authorized=sum(listing.seller.is_authorized for listing in part_listings),
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
