"""Defined names and tables of a workbook: what formulas may call cells by."""

from collections.abc import Iterator
from typing import NamedTuple

from proxy.tools.sheet.package import structure
from proxy.tools.sheet.package.cells import Area, parse_area


class DefinedName(NamedTuple):
    """A defined name. `sheet` is the only one that has it; None: the workbook. `definition` is a formula without =."""

    name: str
    sheet: str | None
    definition: str


class NamedTable(NamedTuple):
    """An Excel table: its header, its cells without header and totals, and the names of its columns."""

    name: str
    sheet: str
    header: Area | None
    data: Area
    columns: tuple[str, ...]


def defined_names(parts: structure.Parts, workbook: str) -> Iterator[DefinedName]:
    """Yield the defined names of a workbook part."""
    listed = parts.elements(workbook)
    sheets = [each.attributes.get("name", "") for each in listed if each.name == "sheet"]
    for each in listed:
        if each.name == "definedName":
            # The number counts all sheets, those of charts among them.
            local = each.attributes.get("localSheetId", "")
            number = int(local) if local.isascii() and local.isdigit() and len(local) < 6 else -1
            sheet = sheets[number] if 0 <= number < len(sheets) else None
            yield DefinedName(each.attributes.get("name", ""), sheet, each.text)


def named_tables(parts: structure.Parts, sheet: structure.Sheet) -> Iterator[NamedTable]:
    """Yield the tables of a sheet."""
    for relation in parts.relationships(sheet.part):
        if relation.kind != "table" or relation.part is None:
            continue
        elements = parts.elements(relation.part)
        table = elements[0].attributes
        try:
            area = parse_area(table.get("ref", ""))
        except ValueError as error:
            parts.failing(relation.part)(f"has a wrong area: {error}")
        header = None if table.get("headerRowCount") == "0" else area._replace(last_row=area.first_row)
        data = area._replace(
            first_row=area.first_row + (header is not None),
            last_row=area.last_row - (table.get("totalsRowCount", "0") != "0"),
        )
        columns = tuple(each.attributes.get("name", "") for each in elements if each.name == "tableColumn")
        yield NamedTable(table.get("displayName", table.get("name", "")), sheet.name, header, data, columns)
