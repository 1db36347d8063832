"""Finding parts in the small catalog: matches, filters and suggestions, and pure rules of names, units and codes."""

from typing import Any

import pytest
from support import cases, small_catalog

from nexar_sandbox.catalog import listings, matching, offers, records, units

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


def test_an_alternate_number_leads_to_the_part_and_is_named(catalog: Any) -> None:
    hits = catalog.match(records.MatchQuery(mpn="hcf4013be"), ANY)
    assert (hits.ids, hits.aka_of("104")) == (("104",), "HCF4013BE")
    assert catalog.search_mpn("HCF40", ANY).aka_of("104") == "HCF4013BE"
    assert catalog.match(records.MatchQuery(mpn="CD-4013.B"), ANY).aka_of("104") is None


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


@cases.parametrize("text,same")
def test_normalization_keeps_letters_and_digits_only(text: str, same: str) -> None:
    assert matching.normalize(text) == same


def _company(id_: Any, name: Any, *aliases: Any) -> Any:
    return records.Company(
        id_, name, aliases, None, None, f"/{id_}", True, False, False, False, frozenset({"manufacturer"})
    )


NAMES = matching.CompanyNameIndex(
    [
        _company("370", "Texas Instruments", "TI", "Burr Brown"),
        _company("510", "Lite-On"),
        _company("30", "Vishay"),
        _company("278", "onsemi", "ON Semiconductor"),
        _company("3518", "Memory Protection Devices", "MPD"),
        _company("355", "STMicroelectronics"),
    ]
)


@pytest.mark.parametrize(
    "text,ids",
    [
        ("texas INSTRUMENTS", {"370"}),
        ("TI", {"370"}),
        ("burr-brown", {"370"}),
        ("Texas Instruments Inc.", {"370"}),
        ("Texas", {"370"}),
        ("Vishay Lite-On", {"510"}),
        ("Vishay Dale", {"30"}),
        ("MPD", {"3518"}),
        ("ON Semiconductor", {"278"}),
        ("STMicro", {"355"}),
        ("Texas Instrumentos", set()),
        ("Semiconductor", set()),
        ("on", set()),
        ("", set()),
    ],
)
def test_company_names_are_matched_loosely_within_limits(text: str, ids: Any) -> None:
    assert NAMES.find(text) == ids


@cases.parametrize("number,symbol,display")
def test_numbers_are_displayed_with_the_best_prefix(number: float, symbol: str, display: str) -> None:
    shown = units.displayed(number, symbol)
    assert shown.display == display
    assert f"{shown.value} {shown.units}".strip() == display


@pytest.mark.parametrize("number,text", [(1e-7, "0.0000001"), (10000.0, "10000"), (2.5, "2.5"), (-40, "-40")])
def test_si_values_have_no_exponent(number: float, text: str) -> None:
    assert units.plain(number) == text


def test_a_currency_without_a_rate_converts_to_nothing() -> None:
    assert (
        units.exchange_rate("", "USD"),
        units.exchange_rate("USD", "XTS"),
        units.exchange_rate("XTS", "XTS"),
    ) == (None, None, None)
    assert units.exchange_rate("JPY", "JPY") == 1.0


def test_sellers_have_their_own_order_code_formats() -> None:
    def code(seller: str) -> str:
        company = records.Company(seller, "A seller")
        listing = listings.CatalogListing(0, company, 1, 1.0, 0.1, ((1,),), False)
        return offers.order_codes(9336958, 370, "SN74S74N", listings.OfferTerms(), listing)[0]

    codes = [code(seller) for seller in ("459", "2401", "2402", "11779", "8706")]
    assert codes == ["470-9336958-1-ND", "470-SN74S74N", "35X6958", "C9336958", "SN74S74N"]
