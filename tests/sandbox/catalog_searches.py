"""Searches of a catalog with their results, one JSON object per line, as recorded in tests/sandbox/searches.jsonl.

`python -m sandbox.catalog_searches FILE` (in tests/) prints the searches of a file with the results of the present
code, for a change of the shipped parts.
"""

import hashlib
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from nexar_sandbox.catalog import records, store

SHOWN = 5  # ids that are recorded as they are; the others by a digest


class RecordedSearch(msgspec.Struct, omit_defaults=True):
    """A call of one method of a catalog, and what it returned."""

    method: str
    q: str = ""
    query: records.MatchQuery | None = None
    filters: tuple[tuple[str, tuple[str, ...]], ...] = ()
    in_stock_only: bool = False
    authorized_only: bool = False
    sort: str = ""
    descending: bool = False
    counts: tuple[str, ...] = ()
    result: Any = None


def run(catalog: store.Catalog, search: RecordedSearch) -> Any:
    """Return the result of a search, in the form that is recorded."""
    conditions = records.SearchConditions(search.filters, search.in_stock_only, search.authorized_only)
    if search.method == "suggest":
        return [[each.text, each.in_category_name, each.in_category_id] for each in catalog.suggest(search.q)]
    if search.method == "spelling":
        return [[each.correction_string, each.hits] for each in catalog.spelling(search.q)]
    if search.query is not None:
        hits = catalog.match(search.query, conditions)
    else:
        hits = getattr(catalog, search.method)(search.q, conditions, search.sort, search.descending)
    result = {"hits": hits.hits, "first": list(hits.ids[:SHOWN]), "ids": _digest(hits.ids)}
    aka = {id_: mpn for id_ in hits.ids if (mpn := hits.aka_of(id_)) is not None}
    if aka:
        result["aka"] = aka
    return result | {name: _counted(catalog, hits, name) for name in search.counts}


def _counted(catalog: store.Catalog, hits: Any, name: str) -> Any:
    if name.startswith("spec "):
        counted = catalog.spec_counts(hits, name.removeprefix("spec "))
        pairs: list[Any] = [*map(list, counted.buckets), counted.minimum, counted.maximum]
    else:
        pairs = [[getattr(label, "id", label), count] for label, count in getattr(catalog, name)(hits)]
    return [len(pairs), pairs[:2], _digest([str(pair) for pair in pairs])]


def _digest(texts: Iterable[str]) -> str:
    return hashlib.blake2b("\n".join(texts).encode(), digest_size=8).hexdigest()


def main(file: str) -> None:
    catalog = store.open_catalog()
    for line in Path(file).read_text("utf-8").splitlines():
        search = msgspec.json.decode(line, type=RecordedSearch)
        search.result = run(catalog, search)
        sys.stdout.write(f"{msgspec.json.encode(search).decode()}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
