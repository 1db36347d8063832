"""Parts as records, and the objects that they refer to."""

from typing import Any

import pytest
from support import cases, small_catalog

from nexar_sandbox.catalog import records, store


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return small_catalog.opened(tmp_path_factory.mktemp("data"))


@pytest.mark.parametrize("id_", ["", "0", "abc", "99", "١٠١", "1" * 40, "-101", "101.0", "\ud800"])
def test_an_unknown_id_or_uid_is_no_part(catalog: Any, id_: str) -> None:
    assert catalog.part(id_) is None
    assert catalog.part_by_uid(id_) is None


def test_specs_have_a_bare_value_an_si_value_and_a_display_value(catalog: Any) -> None:
    (farads, _) = catalog.part("108").specs
    assert (farads.value, farads.si_value, farads.display_value, farads.units) == (
        "100",
        "0.0000001",
        "100 nF",
        "nF",
    )
    (status,) = catalog.part("101").specs
    assert (status.value, status.si_value) == ("Production", "Production")
    assert status.display_value.startswith("Production (Last Updated: ")


def test_documents_are_grouped_and_may_be_missing(catalog: Any) -> None:
    part = catalog.part("101")
    assert [one.name for one in part.document_collections] == ["Datasheets", "Compliance Documents"]
    (sheet,) = part.document_collections[0].documents
    assert sheet.url == "http://datasheet.octopart.com/SN74S74N-Texas-Instruments-datasheet-101.pdf"
    assert [one.name for one in part.document_collections[1].documents] == ["Rohs Statement"]
    assert catalog.part("104").document_collections == ()


def test_the_slug_is_made_of_number_maker_and_id(catalog: Any) -> None:
    assert catalog.part("101").slug == "/sn74s74n-texas+instruments-101"


@pytest.fixture(scope="module")
def shipped() -> Any:
    catalog = store.open_catalog()
    yield catalog
    catalog.close()


def _matched(catalog: Any, **query: Any) -> Any:
    hits = catalog.match(records.MatchQuery(**query), records.SearchConditions())
    return [(part.mpn, part.manufacturer.name) for part in map(catalog.part, hits.ids)]


def test_shipped_catalog_matches_the_recorded_cases(shipped: Any) -> None:
    assert len(_matched(shipped, mpn="SN74S74N")) == 4
    assert _matched(shipped, mpn="SN74S74N", manufacturer="TI") == [("SN74S74N", "Texas Instruments")]
    assert _matched(shipped, sku="67K1122", seller="Newark") == [("SN74S74N", "Texas Instruments")]
    assert {maker for _, maker in _matched(shipped, mpn="MBR1020VL")} == {"onsemi", "Panjit"}
    assert {mpn for mpn, _ in _matched(shipped, mpn="ATMEGA328P-PU")} == {"ATMEGA328P-PU", "ATMEGA328PPU"}
    assert {mpn for mpn, _ in _matched(shipped, mpn="1.5SMC68CA")} == {"1.5SMC68CA", "1.5SMC6.8CA"}
    assert shipped.part_by_uid("103cdb613d20cffb").v3uid == "bd4d768f82c5628a"


@cases.parametrize("mpn,spelling,maker")
def test_the_shipped_makers_are_found_under_recorded_spellings(
    shipped: Any, mpn: str, spelling: str, maker: str
) -> None:
    assert _matched(shipped, mpn=mpn, manufacturer=spelling) == [(mpn, maker)]


def test_every_shipped_part_can_be_built_with_its_offers(shipped: Any) -> None:
    ids = shipped.search("", records.SearchConditions()).ids
    assert len(ids) >= 300
    for part in map(shipped.part, ids):
        assert part.slug.endswith(f"-{part.id}")
        assert all(spec.display_value for spec in part.specs)
        shipped.sellers_of(part, "GB")
