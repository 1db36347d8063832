"""Searches in the lists of brands, sellers and categories (contract v3-rest.md §1.1), beside those of
tests/service/cases: pages, counts and unknown fields."""

from types import SimpleNamespace
from typing import Any

from support import cases

from proxy.mapping.transforms import KnownUid, Uids
from proxy.model import SearchRequest
from proxy.planning import lucene
from proxy.planning.listing import Listing, ListSearchResult

NAMES = {
    "Texas Instruments": ["TI", "National Semiconductor"],
    "TAOS": ["Texas Advanced Optoelectronic Solutions"],
    "Klixon": ["Texas Instruments"],
    "Instruments of Texas": [],
    "Würth Elektronik": ["Wuerth"],
    "STRASSE": [],
    "3M": [],
    "C&K": [],
}
COMPUTED = f"b4a2d0{1:010x}"


def a_listing(names: dict[str, list[str]] = NAMES) -> Listing:
    records = [
        SimpleNamespace(id=str(n), name=name, aliases=aliases, number=n)
        for n, (name, aliases) in enumerate(names.items())
    ]
    entries = [KnownUid(f"{n:015x}a", f"{name} in 2015", str(n)) for n, name in enumerate(names)]
    return Listing(records, to_v3, Uids("Brand", entries))


def to_v3(record: Any) -> dict[str, Any]:
    url = f"http://{record.number}" if record.number % 2 else None
    return {"__class__": "Brand", "uid": f"{record.number:016x}", "name": record.name, "homepage_url": url}


def search(**request: Any) -> ListSearchResult:
    return found_in(a_listing(), SearchRequest(**{"limit": 100, **request}))


def found_in(listing: Listing, request: SearchRequest) -> ListSearchResult:
    *_, filters = lucene.parse_filters(request)
    return listing.search(request, filters)


def names(found: ListSearchResult) -> list[str]:
    return [record.name for record in found.records]


@cases.parametrize("q, found")
def test_query_matches_word_prefixes_wildcards_and_aliases(q: str, found: list[str]) -> None:
    result = search(q=q)
    assert (names(result), result.hits) == (found, len(found))


@cases.parametrize("sortby, first")
def test_sort_orders_objects(sortby: str, first: list[str]) -> None:
    assert names(search(sortby=sortby))[:2] == first


@cases.parametrize("filters, queries, found")
def test_all_filters_must_match(filters: Any, queries: Any, found: list[str]) -> None:
    assert names(search(filters=filters, filter_queries=queries)) == found


def test_object_is_found_by_uid() -> None:
    listing = a_listing()
    found = listing.by_uid[f"{1:016x}"].record
    assert (listing.size, found.name, "x" in listing.by_uid) == (len(NAMES), "TAOS", False)
    assert listing.by_uid[COMPUTED].record is found  # given out while no other was known
    assert listing.by_uid[f"{1:015x}a"].record is found  # of an earlier year


def test_filter_accepts_older_uids() -> None:
    found = search(filters=(("uid", (f"{1:015x}a", "f" * 16)),), filter_queries=(f"uid:({1:016x} or {COMPUTED})",))
    assert (names(found), found.hits) == (["TAOS"], 1)
    counted = search(facet_queries=(f"uid:{1:015x}a",))
    assert counted.facet_results["queries"] == {f"uid:{1:015x}a": {"count": 1}}


def test_ids_of_a_name_are_of_the_exact_name() -> None:
    ids, on_record = a_listing().ids, {f"{name} in 2015" for name in NAMES}
    for name, aliases in NAMES.items():
        assert len(ids[name]) == len(ids[f"{name} in 2015"]) == 1
        assert not {name.upper() + ".", *aliases} & (ids.keys() - NAMES.keys())
    assert ids.keys() == NAMES.keys() | on_record
