"""Defined names and tables of a workbook: what formulas may call cells by."""

from collections.abc import Iterator
from typing import NamedTuple

from proxy.tools.sheet.package import structure, xml_events
from proxy.tools.sheet.package.cells import Area, parse_area


class DefinedName(NamedTuple):
    """A defined name. `sheet` is the only one that has it; None: the workbook. `definition` is a formula without =."""

    name: str
    sheet: str | None
    definition: str


class NamedTable(NamedTuple):
    """An Excel table: its cells without header and totals, and the names of its columns."""

    name: str
    sheet: str
    data: Area
    columns: tuple[str, ...]


class _Names:
    """Collects the sheets and defined names of the workbook part."""

    def __init__(self) -> None:
        self.sheets: list[str] = []
        self.names: list[tuple[dict[str, str], str]] = []
        self._text: list[str] | None = None
        self._attributes: dict[str, str] = {}

    def start(self, name: str, attributes: dict[str, str], _: int) -> None:
        if name == "sheet":
            self.sheets.append(attributes.get("name", ""))
        elif name == "definedName":
            self._text, self._attributes = [], attributes

    def end(self, name: str, _: int) -> None:
        if name == "definedName" and self._text is not None:
            self.names.append((self._attributes, "".join(self._text)))
            self._text = None

    def text(self, data: str) -> None:
        if self._text is not None:
            self._text.append(data)


def defined_names(parts: structure.Parts, workbook: str) -> Iterator[DefinedName]:
    """Yield the defined names of a workbook part."""
    handler = _Names()
    xml_events.XmlParser(handler, parts.failing(workbook)).run([parts.source(workbook)])
    for attributes, definition in handler.names:
        # The number counts all sheets, those of charts among them.
        local = attributes.get("localSheetId", "")
        number = int(local) if local.isascii() and local.isdigit() and len(local) < 6 else -1
        sheet = handler.sheets[number] if 0 <= number < len(handler.sheets) else None
        yield DefinedName(attributes.get("name", ""), sheet, definition)


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
        data = area._replace(
            first_row=area.first_row + (table.get("headerRowCount") != "0"),
            last_row=area.last_row - (table.get("totalsRowCount", "0") != "0"),
        )
        columns = tuple(each.attributes.get("name", "") for each in elements if each.name == "tableColumn")
        yield NamedTable(table.get("displayName", table.get("name", "")), sheet.name, data, columns)
