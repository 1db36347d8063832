"""Finding parts in the small catalog; and in the shipped one what an independent implementation found (searches.jsonl),
which ordered and counted columns of figures, without SQL.

After a change of the shipped parts `pytest --renew-responses` writes the file anew.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support import small_catalog

from nexar_sandbox.catalog import records, store

ANY = records.SearchConditions()


@pytest.mark.parametrize(
    "query,ids",
    [
        ({"mpn": "SN74S74N"}, {"101", "102"}),
        ({"mpn": "sn74.s74-n"}, {"101", "102"}),
        ({"mpn": "SN74S74"}, set()),
        ({"mpn": "-"}, set()),
        ({"mpn": "SN74S74N", "manufacturer": "TI"}, {"101"}),
        ({"mpn": "SN74S74N", "manufacturer": "278"}, {"102"}),
        ({"mpn": "SN74S74N", "manufacturer": "Texas Instruments Inc."}, {"101"}),
        ({"mpn": "SN74S74N", "manufacturer": "Texas"}, {"101"}),
        ({"mpn": "SN74S74N", "manufacturer": "onse"}, {"102"}),
        ({"mpn": "SN74S74N", "manufacturer": "Texas Instrumentos"}, set()),
        ({"mpn": "SN74S74N", "manufacturer": "Semiconductor"}, set()),
        ({"mpn": "SN74S74N", "manufacturer": "on"}, set()),
        ({"mpn": "ERJ10K", "manufacturer": "Vishay Dale"}, {"106"}),
        ({"mpn": "cd_4013/b"}, {"104", "105"}),
        ({"mpn": "LEDRGB", "manufacturer": "Vishay Lite-On"}, {"110"}),
        ({"mpn": "HOLDER1", "manufacturer": "MPD"}, {"111"}),
        ({"sku": "67K1122"}, {"101"}),
        ({"sku": "67k-1122", "seller": "newark"}, {"101"}),
        ({"sku": "67K1122", "seller": "Mouser"}, set()),
        ({"sku": "67K1122", "mpn": "SN74S74N"}, {"101"}),
        ({"sku": "67K1122", "mpn": "SN74S74NE4"}, set()),
        ({"sku": "SN74"}, set()),
        ({"mpn_or_sku": "67K1122"}, {"101"}),
        ({"mpn_or_sku": "SN74S74N"}, {"101", "102"}),
        ({"mpn": "ODDSTOCK", "seller": "459"}, {"113"}),
        ({"mpn": "GONE", "seller": "459"}, set()),
        ({"mpn": "SN74S74N", "seller": "Nobody Ltd"}, set()),
        ({"manufacturer": "KEMET"}, {"108", "109"}),
        ({"mpn": "\ud800"}, set()),
    ],
)
def test_a_match_is_exact_after_normalizing(small: Any, query: Any, ids: Any) -> None:
    assert set(small.match(records.MatchQuery(**query), ANY).ids) == ids


def test_literally_equal_number_is_first_then_the_one_with_most_offers(small: Any) -> None:
    assert small.match(records.MatchQuery(mpn="CD4013B"), ANY).ids == ("105", "104")
    assert small.match(records.MatchQuery(mpn="CD-4013.B"), ANY).ids == ("104", "105")
    first, second = small.match(records.MatchQuery(mpn="sn74s74n"), ANY).ids
    offers = [sum(len(one.offers) for one in small.sellers_of(small.part(id_))) for id_ in (first, second)]
    assert offers[0] >= offers[1]


def test_an_alternate_number_leads_to_the_part_and_is_named(small: Any) -> None:
    hits = small.match(records.MatchQuery(mpn="hcf4013be"), ANY)
    assert (hits.ids, hits.aka_of("104")) == (("104",), "HCF4013BE")
    assert small.search_mpn("HCF40", ANY).aka_of("104") == "HCF4013BE"
    assert small.match(records.MatchQuery(mpn="CD-4013.B"), ANY).aka_of("104") is None


def test_a_number_search_finds_substrings_and_lists_equal_ones_first(small: Any) -> None:
    assert small.search_mpn("SN74S74N", ANY).ids[2:] == ("103",)
    assert set(small.search_mpn("74s7", ANY).ids) == {"101", "102", "103"}
    assert small.search_mpn("SN74*", ANY).ids
    assert small.search_mpn("flip-flop", ANY).ids == ()
    assert len(small.search_mpn("", ANY).ids) == len(small_catalog.PARTS)
    assert small.search_mpn("--", ANY).ids == ()


@pytest.mark.parametrize(
    "q,ids",
    [
        ("flip-flop", {"101"}),
        ("flipflop", set()),
        ("texas flip", {"101"}),
        ("SN74-S74NE4", {"103"}),
        ('"AND OR NOT (', set()),
        ("a\x00b", set()),
        ("HCF4013BE", {"104"}),
    ],
)
def test_a_text_search_needs_every_word(small: Any, q: str, ids: Any) -> None:
    assert set(small.search(q, ANY).ids) == ids


@pytest.mark.parametrize(
    "filters,ids",
    [
        ({"capacitance": ["(1e-7__1e-6)"]}, {"108", "109"}),
        ({"capacitance": ["(__2e-7)"]}, {"108"}),
        ({"voltagerating": ["(20__)", "16"]}, {"108", "109"}),
        ({"color": ["(1__2)"]}, set()),
        ({"case_package": []}, set()),
    ],
)
def test_filters_accept_ids_names_ranges_and_values(small: Any, filters: Any, ids: Any) -> None:
    conditions = records.SearchConditions(tuple((key, tuple(values)) for key, values in filters.items()))
    assert set(small.search("", conditions).ids) == ids


def test_suggestions_complete_numbers_makers_and_categories(small: Any) -> None:
    numbers = small.suggest("sn74")
    assert {one.text for one in numbers} == {"SN74S74N", "SN74S74NE4"}
    assert {one.in_category_name for one in numbers} == {"Logic"}
    assert [one.text for one in small.suggest("tex")] == ["Texas Instruments"]
    assert small.suggest("resi") == (records.Suggestion("Resistors", "Resistors", "4163"),)
    assert small.suggest("tex", part_numbers_only=True) == ()
    assert small.suggest("sn74", "4162") == ()
    assert small.suggest("sn74", "77") == ()
    assert len(small.suggest("sn74", "4178", limit=1)) == 1
    assert small.suggest("") == ()


def test_spelling_offers_words_that_occur(small: Any) -> None:
    assert small.spelling("Resitors 10k") == (records.SpellingCorrection("resistors 10k", 1),)
    assert small.spelling("resistors") == ()
    assert small.spelling("qqqqqqq") == ()
    assert small.spelling("") == ()


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


RECORDED = Path(__file__).with_name("searches.jsonl")


def test_results_are_the_recorded_ones(catalog: store.Catalog, request: pytest.FixtureRequest) -> None:
    recorded = RECORDED.read_text("utf-8").splitlines()
    found = []
    for line in recorded:
        search = msgspec.json.decode(line, type=RecordedSearch)
        search.result = run(catalog, search)
        found.append(msgspec.json.encode(search).decode())
    if request.config.getoption("--renew-responses"):
        RECORDED.write_text("\n".join(found) + "\n", "utf-8")
    assert found == recorded, f"renew it with: pytest --renew-responses {request.node.nodeid}"
