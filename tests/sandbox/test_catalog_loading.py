"""Opening a catalog: a user's parts file, and errors of invalid lines."""

import json
from pathlib import Path
from typing import Any

import pytest
from support import cases, small_catalog

from nexar_sandbox.catalog import records

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
