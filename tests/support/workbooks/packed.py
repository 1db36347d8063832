"""Reads packages back for tests: members as bytes, cells by sheet, with zipfile and ElementTree only."""

import io
import posixpath
import zipfile
from typing import NamedTuple
from xml.etree import ElementTree

from support.workbooks import builder, dialects

_NAMES = {space: {"m": main, "r": links} for space, main, links in (
    (dialects.MAIN, dialects.MAIN, dialects.RELATIONSHIPS),
    (dialects.STRICT_MAIN, dialects.STRICT_MAIN, dialects.STRICT_RELATIONSHIPS),
)}  # fmt: skip


class Member(NamedTuple):
    """One file of a package as it is stored: compressed bytes, method, checksum and size."""

    compressed: bytes
    method: int
    checksum: int
    size: int


class PackedCell(NamedTuple):
    """One cell as the file has it, with its type (n where none is given) and the attributes of cell and formula."""

    type: str
    value: str | None
    formula: str | None
    attributes: dict[str, str]
    formula_attributes: dict[str, str]


def members(package: bytes) -> dict[str, Member]:
    """Every member by its name. Fails if a name stands twice."""
    with zipfile.ZipFile(io.BytesIO(package)) as archive:
        infos = archive.infolist()
        assert len({info.filename for info in infos}) == len(infos)
        return {
            info.filename: Member(_raw(package, info), info.compress_type, info.CRC, info.file_size) for info in infos
        }


def _raw(package: bytes, info: zipfile.ZipInfo) -> bytes:
    start = info.header_offset
    assert package[start : start + 4] == b"PK\x03\x04"
    name, extra = (int.from_bytes(package[start + at : start + at + 2], "little") for at in (26, 28))
    return package[start + 30 + name + extra :][: info.compress_size]


def contents(package: bytes) -> dict[str, bytes]:
    """The decompressed members, each of which is proved by its checksum."""
    with zipfile.ZipFile(io.BytesIO(package)) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def sheets(package: bytes) -> dict[str, str]:
    """The part of each sheet by the sheet's name, in their order."""
    parts = contents(package)
    book = ElementTree.fromstring(parts["xl/workbook.xml"])
    names = _NAMES[_space(book)]
    links = ElementTree.fromstring(parts["xl/_rels/workbook.xml.rels"])
    targets = {link.get("Id"): posixpath.join("/xl", link.get("Target", "")).lstrip("/") for link in links}
    return {
        str(sheet.get("name")): targets[sheet.get(f"{{{names['r']}}}id")]
        for sheet in book.iterfind("m:sheets/m:sheet", names)
    }


def cells(package: bytes, sheet: str) -> dict[str, PackedCell]:
    """Every cell of a sheet by its address; shared strings are resolved."""
    parts = contents(package)
    root = ElementTree.fromstring(parts[sheets(package)[sheet]])
    names = _NAMES[_space(root)]
    strings = _strings(parts, names)
    found = {}
    for row_number, row in enumerate(root.iterfind("m:sheetData/m:row", names), 1):
        for column, cell in enumerate(row.iterfind("m:c", names), 1):
            # Addresses may be left out: cells then stand one after the other.
            address = cell.get("r") or f"{builder.letters(column)}{row_number}"
            found[str(address)] = _cell(cell, names, strings)
    return found


def _strings(parts: dict[str, bytes], names: dict[str, str]) -> list[str]:
    if "xl/sharedStrings.xml" not in parts:
        return []
    entries = ElementTree.fromstring(parts["xl/sharedStrings.xml"]).iterfind("m:si", names)
    return ["".join(text.text or "" for text in entry.iter(f"{{{names['m']}}}t")) for entry in entries]


def _space(root: ElementTree.Element) -> str:
    return root.tag[1:].partition("}")[0]


def _cell(cell: ElementTree.Element, names: dict[str, str], strings: list[str]) -> PackedCell:
    kind, value, formula = cell.get("t", "n"), cell.findtext("m:v", None, names), cell.find("m:f", names)
    if kind == "s" and value is not None:
        kind, value = "str", strings[int(value)]
    elif kind == "inlineStr":
        kind, value = "str", "".join(text.text or "" for text in cell.iter(f"{{{names['m']}}}t"))
    text = None if formula is None else formula.text or ""
    attributes = {str(key): str(each) for key, each in cell.attrib.items()}
    return PackedCell(
        kind, value, text, attributes, {} if formula is None else {str(k): str(v) for k, v in formula.attrib.items()}
    )
