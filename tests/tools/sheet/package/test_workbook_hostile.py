"""Files that no program wrote end in one clear line or in bounded work, and are never changed."""

import os
import stat
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.workbooks import builder, hostile

from proxy import errors
from proxy.tools.sheet.package import cells, workbook

# Sound as packages: that there is nothing to fill is said by whoever looks for columns.
WITHOUT_A_COLUMN = {"no column of part numbers.xlsx", "sheet without a cell.xlsx", "workbook without sheets.xlsx"}
PRICE = cells.CellChange(Decimal("0.12"))


def _fill(folder: Path, name: str, content: bytes) -> None:
    """Read every row, and write a copy with one more value; nothing else may be left behind or changed."""
    file, target = folder / name, folder / "filled.xlsx"
    file.write_bytes(content)
    try:
        with workbook.open_package(file) as package:
            for sheet in package.sheets:
                for _ in package.rows(sheet):
                    pass
            package.save(target, {sheet.name: {(2, 7): PRICE} for sheet in package.sheets[:1]})
    finally:
        assert file.read_bytes() == content
        assert {path.name for path in folder.iterdir()} <= {name, target.name}


@pytest.mark.parametrize("name", [name for name in hostile.REFUSED if ".xls" in name and name not in WITHOUT_A_COLUMN])
def test_useless_file_is_one_line_that_names_it(tmp_path: Path, name: str) -> None:
    with pytest.raises(errors.SheetError) as error:
        _fill(tmp_path, name, hostile.REFUSED[name]())
    assert str(tmp_path / name) in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < len(str(tmp_path)) + 250
    assert not (tmp_path / "filled.xlsx").exists()


@pytest.mark.parametrize("name", [name for name in hostile.ODD if ".xls" in name])
def test_odd_file_is_filled_or_refused(tmp_path: Path, name: str) -> None:
    refusal = ""
    try:
        _fill(tmp_path, name, hostile.ODD[name]())
    except errors.SheetError as error:
        refusal = str(error)
    assert refusal.isprintable()
    assert (tmp_path / "filled.xlsx").exists() == (not refusal)


@pytest.mark.parametrize("name, words", [
    ("zip bomb.xlsx", "larger than it may be"),
    ("encrypted workbook.xlsx", "password"),
    ("old workbook.xlsx", r"\.xls"),
    ("PDF.xlsx", "no .*workbook"),
    ("cut at 90%.xlsx", "incomplete download"),
    ("external entity.xlsx", "document type declaration"),
    ("number of nonsense.xlsx", "cell A3"),
])  # fmt: skip
def test_error_says_what_is_wrong(tmp_path: Path, name: str, words: str) -> None:
    with pytest.raises(errors.SheetError, match=words):
        _fill(tmp_path, name, hostile.REFUSED[name]())


@pytest.mark.parametrize("kind", ["folder", "pipe", "broken link", "link to itself", "device"])
def test_what_is_no_file_is_one_line(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "bom.xlsx"
    match kind:
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)  # nobody will ever write to it
        case "device":
            path.symlink_to("/dev/zero")
        case _:
            path.symlink_to("nowhere.xlsx" if kind == "broken link" else path)
    with pytest.raises(errors.SheetError) as error:
        workbook.open_package(path)
    assert str(path) in str(error.value)
    assert str(error.value).isprintable()


def test_file_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    file = tmp_path / "bom.xlsx"
    file.write_bytes(builder.pack(hostile.good()))
    for target in (tmp_path / "missing" / "out.xlsx", tmp_path / f"{'x' * 300}.xlsx", Path("/proc/out.xlsx")):
        with workbook.open_package(file) as package, pytest.raises(errors.SheetError, match="cannot be written"):
            package.save(target, {"BOM": {(2, 7): PRICE}})
    (tmp_path / "folder.xlsx").mkdir()
    with workbook.open_package(file) as package, pytest.raises(errors.SheetError, match="cannot be written"):
        package.save(tmp_path / "folder.xlsx", {"BOM": {(2, 7): PRICE}})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bom.xlsx", "folder.xlsx"]


def test_copy_has_the_permissions_of_the_file(tmp_path: Path) -> None:
    file, target = tmp_path / "bom.xlsx", tmp_path / "filled.xlsx"
    file.write_bytes(builder.pack(hostile.good()))
    file.chmod(0o640)
    with workbook.open_package(file) as package:
        package.save(target, {"BOM": {(2, 7): PRICE}})
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


DAMAGED = ("xl/worksheets/sheet1.xml", "xl/workbook.xml", "xl/_rels/workbook.xml.rels", "[Content_Types].xml")
DAMAGE = (
    b"", b'"', b"<", b"</", b"A0", b"9" * 30, b"-", b' t="s"', b' t="d"', b"<c/>", b"<row/>", b"<v>", b"e999",
    b'<f t="shared" si="0"/>', b"&#0;", b"<![CDATA[", b"\xff", b"\0", b"_xD800_", b"</c>", b"<mergeCell/>",
)  # fmt: skip


@given(st.sampled_from(DAMAGED), st.floats(0, 1), st.integers(0, 12), st.sampled_from(DAMAGE))
@settings(max_examples=150, deadline=None)
def test_damage_at_any_place_is_refused_in_one_line_or_harmless(
    tmp_path_factory: pytest.TempPathFactory, part: str, share: float, removed: int, inserted: bytes
) -> None:
    content = hostile.good()
    at = int(share * len(content[part]))
    content[part] = content[part][:at] + inserted + content[part][at + removed :]
    try:
        _fill(tmp_path_factory.mktemp("damaged"), "book.xlsx", builder.pack(content))
    except errors.SheetError as error:
        assert str(error).isprintable()  # noqa: PT017
