"""How hits spread over makers, sellers, categories, stock, CAD models and values: the aggregations of a
search.

Used by the store only. Every count is over all hits of a `Ranked`, not over a page; most frequent first.
"""
# ruff: noqa: S608  the SQL is put together from pieces written here; what users write travels as parameters

import sqlite3
from collections import Counter
from collections.abc import Iterable
from typing import Any

from proxy.sandbox.catalog import filters, records, units, vocabulary

Pairs = list[tuple[str, int]]


def makers(database: sqlite3.Connection, hits: records.Ranked) -> Pairs:
    """(maker id, parts)."""
    return _grouped(database, "maker", hits)


def categories(database: sqlite3.Connection, hits: records.Ranked) -> Pairs:
    """(category id, parts) for the categories the parts are in themselves."""
    return _grouped(database, "category", hits)


def sellers(database: sqlite3.Connection, hits: records.Ranked, words: vocabulary.Vocabulary) -> Pairs:
    """(seller id, parts it lists)."""
    blobs = (blob for (blob,) in _of(database, "SELECT sellers FROM parts p", hits))
    positions = Counter(b"".join(blobs))
    return [(words.sellers[position].company.id, count) for position, count in positions.most_common()]


def stock(database: sqlite3.Connection, hits: records.Ranked) -> list[tuple[bool, int]]:
    """(somebody has it in stock, parts)."""
    return [(value == "1", count) for value, count in _grouped(database, "stocked", hits)]


def cad(database: sqlite3.Connection, hits: records.Ranked) -> Pairs:
    """(state of `filters.CAD_STATES`, parts)."""
    names = {str(level): name for name, level in filters.CAD_STATES.items()}
    return [(names[level], count) for level, count in _grouped(database, "cad", hits)]


def values(database: sqlite3.Connection, hits: records.Ranked, attribute: records.Attribute) -> records.SpecCounts:
    """The values of one property among the hits that have it."""
    path = filters.path(attribute.shortname)
    counted: Counter[float | str] = Counter(
        value
        for (value,) in _of(database, "SELECT json_extract(p.line, ?) FROM parts p", hits, path)
        if value is not None
    )
    numbers = [value for value in counted if not isinstance(value, str)]
    return records.SpecCounts(
        attribute,
        tuple(_bucket(value, count, attribute) for value, count in counted.most_common()),
        min(numbers, default=None),
        max(numbers, default=None),
    )


def _bucket(value: float | str, count: int, attribute: records.Attribute) -> tuple[str, float | None, int]:
    if isinstance(value, str):
        return value, None, count
    return units.shown(value, attribute.units_symbol).display, value, count


def _grouped(database: sqlite3.Connection, column: str, hits: records.Ranked) -> Pairs:
    found = Counter(str(value) for (value,) in _of(database, f"SELECT p.{column} FROM parts p", hits))
    return found.most_common()


def _of(database: sqlite3.Connection, select: str, hits: records.Ranked, *params: str) -> Iterable[tuple[Any, ...]]:
    ids = filters.among("p.id", map(int, hits.ids))
    return database.execute(f"{select} WHERE {ids.sql}", (*params, *ids.params))
