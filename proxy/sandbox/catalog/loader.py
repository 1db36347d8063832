"""From JSON Lines files to a filled database: the shipped parts, a user's own, generated ones.

Used by the store when a catalog is opened. It only strings the steps together: `lines` reads, `checking`
checks, `generated` makes more, `database` writes.
"""

import itertools
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

from proxy.sandbox.catalog import (
    building,
    checking,
    crowd,
    database,
    generated,
    lines,
    listing,
    money,
    records,
    vocabulary,
)

Progress = Callable[[int, int], None]
SHIPPED = Path(__file__).parent / "data"
# A seller's position is kept in one byte.
_MOST_SELLERS = 255
# Parts that are described together.
_BATCH = 2000


def load(
    parts: int | None, extra: Path | None, seed: int, data: Path = SHIPPED
) -> tuple[sqlite3.Connection, vocabulary.Vocabulary]:
    """The filled database and the vocabulary of its parts.

    `parts`: fill up with generated parts to this number in all; `extra`: a parts file of one's own.
    Raises lines.CatalogError for a line that cannot be used and ValueError for more parts than can be made.
    """
    opened = database.empty()
    return opened, fill(opened, parts, extra, seed, data)


def fill(
    connection: sqlite3.Connection,
    parts: int | None,
    extra: Path | None,
    seed: int,
    data: Path,
    *,
    processes: int = 1,
    progress: Progress | None = None,
) -> vocabulary.Vocabulary:
    """Fill an empty database, as `load` says; more `processes` than one describe the parts. `progress` hears how many
    parts there are so far and will be."""
    words = _vocabulary(data)
    check = checking.Check(words)
    real = list(check.file(data / "parts.jsonl"))
    if extra is not None:
        real += check.file(extra)
    more = _generated(words, check, (parts or 0) - len(real))
    builder, made, wanted = building.Builder(connection, words), 0, max(parts or 0, len(real))
    for batch, described in crowd.described(_batches(real, more), words, seed, processes):
        builder.add(batch, described)
        made += len(batch)
        if progress is not None:
            progress(made, wanted)
    builder.finish()
    return words


def _batches(real: list[lines.PartLine], more: Iterator[lines.PartLine]) -> Iterator[list[lines.PartLine]]:
    source = itertools.chain(real, more)
    while batch := list(itertools.islice(source, _BATCH)):
        yield batch


def _generated(words: vocabulary.Vocabulary, check: checking.Check, wanted: int) -> Iterator[lines.PartLine]:
    """So many generated parts. Their makers and categories are in `words` when this returns."""
    return _first(generated.parts(words, check.taken) if wanted > 0 else iter(()), check, wanted)


def _first(source: Iterator[lines.PartLine], check: checking.Check, wanted: int) -> Iterator[lines.PartLine]:
    made = 0
    for line in source:
        yield line
        made += 1
        if made == wanted:
            return
    if wanted > 0:
        have = len(check.taken)
        raise ValueError(f"parts: {wanted + have} were asked for, at most {made + have} can be made")


def _vocabulary(data: Path) -> vocabulary.Vocabulary:
    path = data / "companies.jsonl"
    companies = [(_company(line), f"{path}:{number}", line) for number, line in lines.read(path, lines.CompanyLine)]
    sellers = [_seller(*one) for one in companies if "seller" in one[0].roles]
    if len(sellers) > _MOST_SELLERS:
        raise lines.CatalogError(f"{path}: {len(sellers)} sellers are too many, the catalog takes {_MOST_SELLERS}")
    return vocabulary.Vocabulary(
        [company for company, _, _ in companies],
        sellers,
        [_category(line) for _, line in lines.read(data / "categories.jsonl", lines.CategoryLine)],
        [_attribute(line) for _, line in lines.read(data / "attributes.jsonl", lines.AttributeLine)],
    )


def _company(line: lines.CompanyLine) -> records.Company:
    return records.Company(
        id=line.id,
        name=line.name,
        aliases=tuple(line.aliases),
        display_flag=line.display_flag,
        homepage_url=line.homepage_url,
        slug=line.slug,
        is_verified=line.is_verified,
        is_broker=line.is_broker,
        is_distributor_api=line.is_distributor_api,
        is_octocart_supported=line.is_octocart_supported,
        roles=frozenset(line.roles),
    )


def _seller(company: records.Company, place: str, line: lines.CompanyLine) -> listing.Seller:
    if line.currency not in money.PER_DOLLAR:
        raise lines.CatalogError(f"{place}: currency {line.currency!r} has no exchange rate")
    authorized = line.authorized and not line.is_broker
    return listing.Seller(company, line.currency, line.weight, authorized, tuple(line.regions), line.order_multiple)


def _category(line: lines.CategoryLine) -> records.Category:
    return records.Category(line.id, line.parent_id, line.name, line.path)


def _attribute(line: lines.AttributeLine) -> records.Attribute:
    return records.Attribute(
        id=line.id,
        name=line.name,
        shortname=line.shortname,
        group=line.group,
        value_type=line.value_type,
        units_name=line.units_name,
        units_symbol=line.units_symbol,
    )
