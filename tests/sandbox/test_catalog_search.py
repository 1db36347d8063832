"""Finding parts in the small catalog: matches, searches, filters, sorting, counts, suggestions."""

from typing import Any

import pytest
from support import cases, small_catalog

from nexar_sandbox.catalog import records

ANY = records.SearchConditions()


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return small_catalog.opened(tmp_path_factory.mktemp("data"))


def _only(**filters: Any) -> Any:
    return records.SearchConditions(tuple((key, tuple(values)) for key, values in filters.items()))


@pytest.mark.parametrize(
    "query,ids",
    [
        ({"mpn": "SN74S74N"}, {"101", "102"}),
        ({"mpn": "sn74.s74-n"}, {"101", "102"}),
        ({"mpn": "SN74S74"}, set()),
        ({"mpn": "-"}, set()),
        ({"mpn": "SN74S74N", "manufacturer": "TI"}, {"101"}),
        ({"mpn": "SN74S74N", "manufacturer": "278"}, {"102"}),
        ({"mpn": "SN74S74N", "manufacturer": "Texas Instrumentos"}, set()),
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
def test_a_match_is_exact_after_normalizing(catalog: Any, query: Any, ids: Any) -> None:
    assert set(catalog.match(records.MatchQuery(**query), ANY).ids) == ids


def test_literally_equal_number_is_first_then_the_one_with_most_offers(catalog: Any) -> None:
    assert catalog.match(records.MatchQuery(mpn="CD4013B"), ANY).ids == ("105", "104")
    assert catalog.match(records.MatchQuery(mpn="CD-4013.B"), ANY).ids == ("104", "105")
    first, second = catalog.match(records.MatchQuery(mpn="sn74s74n"), ANY).ids
    offers = [sum(len(one.offers) for one in catalog.sellers_of(catalog.part(id_))) for id_ in (first, second)]
    assert offers[0] >= offers[1]


def test_an_alternate_number_leads_to_the_part_and_is_named(catalog: Any) -> None:
    hits = catalog.match(records.MatchQuery(mpn="hcf4013be"), ANY)
    assert (hits.ids, hits.aka_of("104")) == (("104",), "HCF4013BE")
    assert catalog.search_mpn("HCF40", ANY).aka_of("104") == "HCF4013BE"
    assert catalog.match(records.MatchQuery(mpn="CD-4013.B"), ANY).aka_of("104") is None


def test_a_number_search_finds_substrings_and_lists_equal_ones_first(catalog: Any) -> None:
    assert catalog.search_mpn("SN74S74N", ANY).ids[2:] == ("103",)
    assert set(catalog.search_mpn("74s7", ANY).ids) == {"101", "102", "103"}
    assert catalog.search_mpn("SN74*", ANY).ids
    assert catalog.search_mpn("flip-flop", ANY).ids == ()
    assert len(catalog.search_mpn("", ANY).ids) == len(small_catalog.PARTS)
    assert catalog.search_mpn("--", ANY).ids == ()


@pytest.mark.parametrize(
    "q,ids",
    [
        ("flip-flop", {"101"}),
        ("flipflop", set()),
        ("texas flip", {"101"}),
        ("resistors 10k", {"106"}),
        ("4.7kΩ", {"107"}),
        ("0603 vishay", {"106"}),
        ("SN74-S74NE4", {"103"}),
        ("sn74s7", {"101", "102", "103"}),
        ("sn74* onsemi", {"102"}),
        ('"AND OR NOT (', set()),
        ("a\x00b", set()),
        ("HCF4013BE", {"104"}),
        ("!!", set()),
    ],
)
def test_a_text_search_needs_every_word(catalog: Any, q: str, ids: Any) -> None:
    assert set(catalog.search(q, ANY).ids) == ids


@pytest.mark.parametrize("q", ["", "  ", "*"])
def test_an_empty_search_lists_everything_that_passes(catalog: Any, q: str) -> None:
    assert len(catalog.search(q, ANY).ids) == len(small_catalog.PARTS)
    assert set(catalog.search(q, _only(manufacturer_id=["30"])).ids) == {"106", "107"}


@pytest.mark.parametrize(
    "filters,ids",
    [
        ({"manufacturer_id": ["212"]}, {"108", "109"}),
        ({"manufacturer_id": ["kemet", "Burr Brown"], "category_id": ["4167"]}, {"108", "109"}),
        ({"category_id": ["4162"]}, {"106", "107", "108", "109"}),
        ({"category_id": ["passive components"], "case_package": ["0603"]}, {"106"}),
        ({"category_id": ["77"]}, set()),
        ({"capacitance": ["(1e-7__1e-6)"]}, {"108", "109"}),
        ({"capacitance": ["(__2e-7)"]}, {"108"}),
        ({"voltagerating": ["(20__)"]}, {"109"}),
        ({"voltagerating": ["(20__)", "16"]}, {"108", "109"}),
        ({"capacitance": ["100 nF"]}, {"108"}),
        ({"capacitance": ["100nF", "1 µF"]}, {"108", "109"}),
        ({"resistance": ["10000"]}, {"106"}),
        ({"resistance": ["10 kΩ"]}, {"106"}),
        ({"color": ["red"]}, {"110"}),
        ({"color": ["Blue, Green, Red"]}, {"110"}),
        ({"color": ["(1__2)"]}, set()),
        ({"case_package": []}, set()),
        ({"manufacturer_id": ["Texas Instrumentos"]}, set()),
    ],
)
def test_filters_accept_ids_names_ranges_and_values(catalog: Any, filters: Any, ids: Any) -> None:
    assert set(catalog.search("", _only(**filters)).ids) == ids


@cases.parametrize("filters,message")
def test_an_invalid_filter_is_named(catalog: Any, filters: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        catalog.search("", _only(**filters))


def test_suggestions_complete_numbers_makers_and_categories(catalog: Any) -> None:
    numbers = catalog.suggest("sn74")
    assert {one.text for one in numbers} == {"SN74S74N", "SN74S74NE4"}
    assert {one.in_category_name for one in numbers} == {"Logic"}
    assert [one.text for one in catalog.suggest("tex")] == ["Texas Instruments"]
    assert catalog.suggest("resi") == (records.Suggestion("Resistors", "Resistors", "4163"),)
    assert catalog.suggest("tex", part_numbers_only=True) == ()
    assert catalog.suggest("sn74", "4162") == ()
    assert catalog.suggest("sn74", "77") == ()
    assert len(catalog.suggest("sn74", "4178", limit=1)) == 1
    assert catalog.suggest("") == ()


def test_spelling_offers_words_that_occur(catalog: Any) -> None:
    assert catalog.spelling("Resitors 10k") == (records.SpellingCorrection("resistors 10k", 1),)
    assert catalog.spelling("resistors") == ()
    assert catalog.spelling("qqqqqqq") == ()
    assert catalog.spelling("") == ()
