"""Opening a catalog: parts as records, a user's parts file, and errors of invalid lines."""

import json
from pathlib import Path
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


@cases.parametrize("mpn,spelling,maker")
def test_the_shipped_makers_are_found_under_recorded_spellings(
    shipped: Any, mpn: str, spelling: str, maker: str
) -> None:
    assert _matched(shipped, mpn=mpn, manufacturer=spelling) == [(mpn, maker)]


EVERYTHING = records.SearchConditions()


@pytest.fixture
def own(tmp_path: Path) -> Any:
    """Opens the small catalog with a user's parts file of the given lines."""

    def open_with(*found: Any, **options: Any) -> Any:
        path = tmp_path / "own.jsonl"
        path.write_text("\n".join(one if isinstance(one, str) else json.dumps(one) for one in found))
        return small_catalog.opened(tmp_path, extra=path, **options)

    return open_with


def _match(catalog: Any, mpn: Any) -> Any:
    return [catalog.part(id_) for id_ in catalog.match(records.MatchQuery(mpn=mpn), EVERYTHING).ids]


def test_a_users_part_needs_only_a_number_and_a_maker(own: Any) -> None:
    catalog = own({"mpn": "MINE-1", "manufacturer": "370"}, {"mpn": "MINE-2", "manufacturer": "ti"})
    first, second = _match(catalog, "MINE1") + _match(catalog, "MINE2")
    assert first.manufacturer is second.manufacturer is catalog.reference.companies.get("370")
    assert (first.id, second.id) == ("900000001", "900000002")
    assert len(first.v3uid) == 16
    assert first.v3uid != second.v3uid


def test_unknown_makers_and_categories_are_created_once(own: Any) -> None:
    line = {"manufacturer": "Acme Parts", "category": "Widgets"}
    catalog = own({"mpn": "A1", **line}, {"mpn": "A2", **line, "manufacturer": "acme-parts"})
    first, second = _match(catalog, "A1") + _match(catalog, "A2")
    assert first.manufacturer.name == "Acme Parts"
    assert first.manufacturer is second.manufacturer
    assert first.category is second.category
    assert [one.name for one in catalog.reference.ancestors(first.category.id)] == ["Electronic Parts"]
    assert catalog.num_parts(first.category.id) == 2


@cases.parametrize("line,fault")
def test_a_bad_line_is_named_with_file_number_and_fault(own: Any, line: Any, fault: str) -> None:
    with pytest.raises(records.CatalogError, match=r"own\.jsonl:2: ") as caught:
        own({"mpn": "FINE", "manufacturer": "TI"}, line)
    assert fault in str(caught.value)


def test_a_seller_with_an_unknown_currency_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(small_catalog.SELLERS, "459", {"name": "Digi-Key", "currency": "XTS"})
    with pytest.raises(records.CatalogError, match=r"companies\.jsonl:8: currency 'XTS'"):
        small_catalog.opened(tmp_path)


def test_a_catalog_has_at_most_5000_parts(own: Any) -> None:
    with pytest.raises(records.CatalogError, match=r"own\.jsonl: 5,013 parts in all; a catalog has at most 5,000"):
        own(*({"mpn": f"N{number}", "manufacturer": "370"} for number in range(5_000)))
