"""Opening a catalog: a user's parts file, generated parts, and errors of invalid lines."""

import json
from pathlib import Path
from typing import Any

import pytest
from support import cases, small_catalog

import nexar_sandbox
from nexar_sandbox.catalog import records, source_files

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
    assert first.manufacturer is second.manufacturer is catalog.company("370")
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
    assert [one.name for one in catalog.ancestors(first.category.id)] == ["Electronic Parts"]
    assert catalog.num_parts(first.category.id) == 2


@cases.parametrize("line,fault")
def test_a_bad_line_is_named_with_file_number_and_fault(own: Any, line: Any, fault: str) -> None:
    with pytest.raises(source_files.CatalogError, match=r"own\.jsonl:2: ") as caught:
        own({"mpn": "FINE", "manufacturer": "TI"}, line)
    assert fault in str(caught.value)


def test_a_seller_with_an_unknown_currency_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(small_catalog.SELLERS, "459", {"name": "Digi-Key", "currency": "XTS"})
    with pytest.raises(source_files.CatalogError, match=r"companies\.jsonl:8: currency 'XTS'"):
        small_catalog.opened(tmp_path)


def test_generated_parts_fill_up_to_the_requested_number(tmp_path: Path) -> None:
    catalog = small_catalog.opened(tmp_path, parts=500)
    hits = catalog.search("", EVERYTHING)
    assert len(hits.ids) == 500
    assert len(set(hits.ids)) == 500
    found = [catalog.part(id_) for id_ in hits.ids]
    made = [part for part in found if part is not None and int(part.id) > 1_000_000_000]
    assert len(made) == 500 - len(small_catalog.PARTS)
    assert {part.manufacturer.name for part in made} >= {"Yageo", "KEMET", "Samtec", "onsemi", "Vishay"}
    assert all(part.category and part.short_description and len(part.v3uid) == 16 for part in made)


def test_generated_parts_are_the_same_every_time(tmp_path: Path) -> None:
    first, second = (small_catalog.opened(tmp_path, parts=100) for _ in range(2))
    last = first.search("", EVERYTHING, "mpn").ids[-1]
    one, other = first.part(last), second.part(last)
    assert one is not None
    assert one == other
    assert first.sellers_of(one) == second.sellers_of(one)


def test_too_few_and_too_many_parts_are_errors_with_the_bound(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="parts must be at least 1, not -5"):
        nexar_sandbox.SandboxSettings(parts=-5)
    with pytest.raises(ValueError, match="parts: 50,001 are requested, a catalog has at most 50,000"):
        small_catalog.opened(tmp_path, parts=50_001)
