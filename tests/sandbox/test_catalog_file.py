"""A catalog in a file: the same catalog, opened without making it, and refused where it is another one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import small_catalog

from nexar_sandbox.catalog import loader, records, source_files, store

ANY = records.SearchConditions()
PARTS = 300


@pytest.fixture
def data(tmp_path: Path) -> Any:
    folder = tmp_path / "data"
    folder.mkdir()
    return small_catalog.write(folder)


@pytest.fixture
def opens(tmp_path: Path, data: Path) -> Callable[..., store.Catalog]:
    """Opens a catalog file of the small data, which is created if it is missing."""

    def open_file(name: str = "catalog.db", **more: Any) -> store.Catalog:
        return store.open_catalog(**{"parts": PARTS, "data": data, "file": tmp_path / name, **more})

    return open_file


def test_a_catalog_file_equals_a_catalog_in_memory(opens: Callable[..., store.Catalog], data: Any) -> None:
    opens().close()
    kept, in_memory = opens(), store.open_catalog(PARTS, data=data)
    for q in ("", "resistor", "10 kΩ", "rc0603"):
        assert kept.search(q, ANY).ids == in_memory.search(q, ANY).ids
    for id_ in in_memory.search("", ANY).ids:
        assert kept.part(id_) == in_memory.part(id_)
        stored, fresh = kept.part(id_), in_memory.part(id_)
        assert stored is not None
        assert fresh is not None
        assert kept.sellers_of(stored) == in_memory.sellers_of(fresh)
    assert (kept.manufacturers(), kept.sellers()) == (in_memory.manufacturers(), in_memory.sellers())
    assert (kept.categories(), kept.attributes()) == (in_memory.categories(), in_memory.attributes())
    assert kept.num_parts("4161") == PARTS


def test_a_catalog_file_is_created_once_and_then_opened(
    opens: Callable[..., store.Catalog], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opens().close()
    before = (tmp_path / "catalog.db").read_bytes()
    monkeypatch.setattr(loader, "fill", lambda *_, **__: pytest.fail("it was made again"))
    opens().close()
    opens(parts=None).close()
    assert (tmp_path / "catalog.db").read_bytes() == before


def test_a_catalog_file_of_another_source_is_rejected_with_the_reason(
    opens: Callable[..., store.Catalog], tmp_path: Path, data: Any
) -> None:
    opens().close()
    own = tmp_path / "own.jsonl"
    own.write_text('{"mpn": "X1", "manufacturer": "TI"}')
    changes: list[tuple[dict[str, Any], str]] = [
        ({"seed": 2}, "was made with seed 1, not 2; delete it and it is made anew"),
        ({"parts": 400}, "was made with 300 parts, not 400"),
        ({"extra": own}, "was made with another file of parts of your own"),
    ]
    for change, fault in changes:
        with pytest.raises(source_files.CatalogError, match=r"catalog\.db: ") as caught:
            opens(**change)
        assert fault in str(caught.value)
    with (data / "parts.jsonl").open("a") as parts:
        parts.write("\n")
    with pytest.raises(source_files.CatalogError, match="by another version of this program"):
        opens()


@pytest.mark.parametrize("content", [b"not a database", b""])
def test_a_file_that_is_no_catalog_is_rejected_and_unchanged(
    opens: Callable[..., store.Catalog], tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "catalog.db").write_bytes(content)
    with pytest.raises(source_files.CatalogError, match=r"catalog\.db: is not a prepared catalog; name another file"):
        opens()
    assert (tmp_path / "catalog.db").read_bytes() == content
