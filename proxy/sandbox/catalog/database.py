"""The SQLite database that a catalog searches: its tables and how a part becomes rows.

Used by the loader (writing) and the store (reading). It holds lines and the figures that searches sort and
filter by; whole records are put together from the lines on demand.
"""
# ruff: noqa: S608  the SQL is put together from pieces written here; what users write travels as parameters

import itertools
import sqlite3
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import msgspec

from proxy.sandbox.catalog import lines, listing, matching, offers, parts, pricing, units, vocabulary

_TABLES = """
CREATE TABLE parts (
  id INTEGER PRIMARY KEY, uid TEXT, mpn TEXT, norm TEXT, maker TEXT, category TEXT, line TEXT, cad INTEGER,
  offers INTEGER, authorized INTEGER, stocked INTEGER, median REAL, average REAL, sellers BLOB);
CREATE TABLE names (norm TEXT, mpn TEXT, part INTEGER, aka INTEGER);
CREATE TABLE uids (uid TEXT PRIMARY KEY, part INTEGER) WITHOUT ROWID;
CREATE TABLE skus (norm TEXT, part INTEGER);
CREATE TABLE makers (id TEXT PRIMARY KEY, name TEXT) WITHOUT ROWID;
CREATE VIRTUAL TABLE words USING fts5 (mpn, maker, category, description, specs, content='');
CREATE VIRTUAL TABLE terms USING fts5vocab (words, 'row');
"""
_INDEXES = """
CREATE UNIQUE INDEX parts_uid ON parts (uid);
CREATE INDEX parts_maker ON parts (maker);
CREATE INDEX parts_category ON parts (category, offers DESC);
CREATE INDEX names_norm ON names (norm);
CREATE INDEX skus_norm ON skus (norm);
ANALYZE;
"""
# How much a hit in each column of `words` weighs.
WEIGHTS = "10.0, 4.0, 3.0, 2.0, 1.0"
_BATCH = 2000


class Figures(NamedTuple):
    """What sorting and filtering need of a part's offers; prices are in USD, None where nobody prices."""

    offers: int
    authorized: int
    stocked: bool
    median: float | None
    average: float | None
    sellers: bytes


def empty() -> sqlite3.Connection:
    """A new database in memory. One thread at a time may use it, not only the one that made it."""
    database = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
    database.executescript(_TABLES)
    return database


def fill(
    database: sqlite3.Connection, found: Iterable[lines.PartLine], words: vocabulary.Vocabulary, seed: int
) -> None:
    """Write all parts of `found`, checked lines with every id filled in, then index them."""
    source = iter(found)
    database.execute("BEGIN")
    while batch := list(itertools.islice(source, _BATCH)):
        _write(database, batch, words, seed)
    makers = ((company.id, company.name) for company in words.companies.values())
    database.executemany("INSERT INTO makers VALUES (?,?)", makers)
    database.execute("COMMIT")
    database.executescript(_INDEXES)


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


def _write(database: sqlite3.Connection, batch: list[lines.PartLine], words: vocabulary.Vocabulary, seed: int) -> None:
    encode = msgspec.json.Encoder().encode
    rows = [
        (int(one.id), one.v3uid, one.mpn, matching.normalise(one.mpn), one.manufacturer, one.category,
         encode(one).decode(), parts.cad_level(one), *figures(one, words, seed))
        for one in batch
    ]  # fmt: skip
    database.executemany(f"INSERT INTO parts VALUES ({','.join('?' * 14)})", rows)
    names = [(row[3], row[2], row[0], 0) for row in rows]
    names += [(matching.normalise(aka), aka, int(one.id), 1) for one in batch for aka in one.aka]
    database.executemany("INSERT INTO names VALUES (?,?,?,?)", names)
    database.executemany(
        "INSERT INTO uids VALUES (?,?)", ((uid, int(one.id)) for one in batch for uid in one.redirected)
    )
    codes = ((matching.normalise(code), int(one.id)) for one in batch for code in one.sku.values())
    database.executemany("INSERT INTO skus VALUES (?,?)", codes)
    searched = ((row[0], *_searched(one, row[3], words)) for one, row in zip(batch, rows, strict=True))
    database.executemany(
        "INSERT INTO words (rowid, mpn, maker, category, description, specs) VALUES (?,?,?,?,?,?)", searched
    )


def _searched(line: lines.PartLine, norm: str, words: vocabulary.Vocabulary) -> tuple[str, str, str, str, str]:
    maker = words.companies[line.manufacturer]
    branch = [*words.ancestors(line.category), words.categories[line.category]]
    specs = (
        value if isinstance(value, str) else _spoken(value, words.attributes[name].units_symbol)
        for name, value in line.specs.items()
    )
    return (
        " ".join((line.mpn, norm, *line.aka, *map(matching.normalise, line.aka))),
        " ".join((maker.name, *maker.aliases)),
        " ".join(one.name for one in branch[1:]),
        line.description,
        " ".join(specs),
    )


@lru_cache(maxsize=1 << 14)
def _spoken(number: float, symbol: str) -> str:
    """A number in the ways people type it: "4.7 kΩ 4.7kΩ 4.7k"."""
    shown = units.shown(number, symbol)
    short = f"{shown.value}{shown.units.removesuffix(symbol)}" if symbol else ""
    return f"{shown.display} {shown.value}{shown.units} {short}"
