"""Changes of the parts that list others: new sheets are registered, dropped formulas leave the calculation chain."""

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence

from proxy import errors
from proxy.tools.sheet.package import markup, strings, structure, xml_events
from proxy.tools.sheet.package.cells import COLUMNS_MAX, ROWS_MAX, CellValue, NewSheet, column_name, parse_reference
from proxy.tools.sheet.package.layout import SheetLook

NAME_MAX = 31  # UTF-16 units of a sheet's name; like the characters below, Excel's rule
_FORBIDDEN = re.compile(r"[\[\]:*?/\\\0-\x1f\ufffe\uffff\ud800-\udfff]")
_RESERVED = "history"
_FILTER = "_xlnm._FilterDatabase"
_WORKSHEET = "application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"


class PartEdits:
    """Parts of a package with their new content, UTF-8; a removed part has None."""

    def __init__(self, parts: structure.Parts, workbook: structure.Structure) -> None:
        self._parts = parts
        self._workbook = workbook
        self._relationships = parts.relationships_part(workbook.workbook)
        self._sources: dict[str, xml_events.Utf8Source] = {}
        self._added: set[str] = set()
        self.changed: dict[str, bytes | None] = {}

    def content(self, part: str) -> bytes | None:
        """Return the new content of a part, in the encoding of the old one; None for a removed part."""
        content = self.changed[part]
        return None if content is None else self._sources[part].encoded(content)

    def _source(self, part: str) -> bytes:
        if part in self.changed:
            return self.changed[part] or b""
        self._sources[part] = self._parts.utf8(part)
        return b"".join(self._sources[part])

    def replace(self, part: str, content: bytes) -> None:
        """Give a part a new content."""
        self._source(part)
        self.changed[part] = content

    def _elements(self, part: str, namespaces: tuple[str, ...]) -> list[structure.Element]:
        return structure.elements(self._source(part), self._parts.failing(part), namespaces)

    def add_sheet(self, wish: str) -> tuple[str, str]:
        """Register a sheet; return its part and the name that it got: unique, and legal in Excel."""
        listed = self._elements(self._workbook.workbook, xml_events.MAIN)
        name = _unique(_legal(wish), {each.attributes.get("name", "").lower() for each in listed})
        part = self._free_part()
        relation = self._relate(part)
        self._append(
            structure.CONTENT_TYPES,
            structure.CONTENT_TYPE_NAMES,
            "Types",
            "Override",
            {"PartName": f"/{part}", "ContentType": _WORKSHEET},
        )
        used = [int(each.attributes["sheetId"]) for each in listed if each.attributes.get("sheetId", "").isdigit()]
        namespace = xml_events.RELATIONSHIPS[self._workbook.strict]
        attributes = {"name": name, "sheetId": str(max(used, default=0) + 1), "xmlns:r": namespace, "r:id": relation}
        self._append(self._workbook.workbook, xml_events.MAIN, "sheets", "sheet", attributes)
        return part, name

    def widen_filter(self, sheet: structure.Sheet, look: SheetLook) -> None:
        """Extend the hidden name of a sheet's filter, which LibreOffice goes by, as the filter itself is."""
        part = self._workbook.workbook
        listed = self._elements(part, xml_events.MAIN)
        number = [each.attributes.get("name") for each in listed if each.name == "sheet"].index(sheet.name)
        for each in listed:
            if (each.attributes.get("name"), each.attributes.get("localSheetId")) == (_FILTER, str(number)):
                text = markup.SourceText(self._source(part))
                owner, mark, area = each.text.rpartition("!")
                if (wider := look.widened(area)) != area:
                    start = each.at + len(text.tag(each.at))
                    text.replace(start, each.end_at, strings.escaped(f"{owner}{mark}{wider}").encode())
                    self.changed[part] = text.finished()

    def _free_part(self) -> str:
        folder = posixpath.dirname(self._workbook.workbook)
        number = 1
        while True:
            part = posixpath.join(folder, "worksheets", f"sheet{number}.xml")
            if part not in self._added and self._parts.find(part) is None:
                self._added.add(part)
                return part
            number += 1

    def _relate(self, part: str) -> str:
        """Add a relationship of the workbook to a new sheet; return its identifier."""
        listed = self._elements(self._relationships, structure.RELATIONSHIP_NAMES)
        used = {each.attributes.get("Id") for each in listed}
        identifier = next(f"rId{number}" for number in range(1, len(used) + 2) if f"rId{number}" not in used)
        kind = xml_events.RELATIONSHIPS[self._workbook.strict] + "/worksheet"
        attributes = {"Id": identifier, "Type": kind, "Target": f"/{part}"}
        self._append(self._relationships, structure.RELATIONSHIP_NAMES, "Relationships", "Relationship", attributes)
        return identifier

    def _append(
        self, part: str, namespaces: tuple[str, ...], parent: str, name: str, attributes: dict[str, str]
    ) -> None:
        """Add an empty element at the end of another."""
        text = markup.SourceText(self._source(part))
        place = next((each for each in self._elements(part, namespaces) if each.name == parent), None)
        if place is None:
            self._parts.failing(part)(f"has no element {parent}")
        ns = markup.prefix(text.tag(place.at))
        values = "".join(f' {key}="{strings.escaped(value)}"' for key, value in attributes.items())
        element = b"<%s%s%s/>" % (ns, name.encode(), values.encode())
        text.append(place.at, place.end_at, element)
        self.changed[part] = text.finished()

    def drop_calculated(self, part: str, cells: Mapping[structure.Sheet, set[tuple[int, int]]]) -> bool:
        """Remove cells from the calculation chain, and an empty chain itself; False if it has none of them."""
        by_identifier = {str(sheet.identifier): positions for sheet, positions in cells.items()}
        chain = _CalculationChain(by_identifier, self._parts.failing(part))
        source = chain.edited(self._source(part))
        if chain.removed and chain.kept:
            self.changed[part] = source
        elif chain.removed:
            self._remove(part)
        return chain.removed > 0

    def _remove(self, part: str) -> None:
        """Remove a part that the workbook refers to."""
        self.changed[part] = None
        folder = posixpath.dirname(self._workbook.workbook)
        self._remove_elements(
            self._relationships,
            structure.RELATIONSHIP_NAMES,
            "Target",
            {part, f"/{part}", posixpath.relpath(part, folder)},
        )
        self._remove_elements(structure.CONTENT_TYPES, structure.CONTENT_TYPE_NAMES, "PartName", {f"/{part}"})

    def _remove_elements(self, part: str, namespaces: tuple[str, ...], attribute: str, values: set[str]) -> None:
        """Remove the empty elements whose attribute has one of the values."""
        text = markup.SourceText(self._source(part))
        lower = {value.lower() for value in values}
        for element in self._elements(part, namespaces):
            if element.attributes.get(attribute, "").lower() in lower:
                tag = text.tag(element.at)
                end = element.at + len(tag) if markup.is_empty(tag) else text.end_tag(element.end_at)
                text.replace(element.at, end, b"")
        self.changed[part] = text.finished()


class _CalculationChain:
    """Gets the events of the calculation chain, and removes cells from its source text."""

    def __init__(self, cells: Mapping[str, set[tuple[int, int]]], fail: xml_events.Fail) -> None:
        self._cells = cells
        self._fail = fail
        self._text = markup.SourceText()
        # An entry without `i` is of the same sheet as the one before it, which may be removed.
        self._sheet = self._written = "0"
        self._removing: tuple[int, bytes] | None = None
        self.kept = self.removed = 0

    def edited(self, source: bytes) -> bytes:
        self._text.add(source)
        xml_events.XmlParser(self, self._fail).run([source])
        return self._text.finished()

    def start(self, name: str, attributes: dict[str, str], at: int) -> None:
        if name != "c":
            return
        self._sheet = attributes.get("i", self._sheet)
        tag = self._text.tag(at)
        try:
            removed = parse_reference(attributes.get("r", "")) in self._cells.get(self._sheet, ())
        except ValueError:
            self._fail("names a cell that does not exist")
        if removed:
            self.removed += 1
            self._removing = at, tag
            return
        self.kept += 1
        if self._sheet != self._written and "i" not in attributes:
            self._text.replace(at, at + len(tag), markup.with_attributes(tag, {b"i": self._sheet.encode()}))
        self._written = self._sheet

    def end(self, _: str, at: int) -> None:
        if self._removing is not None:
            start, tag = self._removing
            end = start + len(tag) if markup.is_empty(tag) else self._text.end_tag(at)
            self._text.replace(start, end, b"")
            self._removing = None

    def text(self, _: str) -> None:
        pass


def _legal(name: str) -> str:
    """Return the name of a sheet without what Excel refuses."""
    name = _FORBIDDEN.sub("_", name).strip("' ") or "Sheet"
    name = name + "_" if name.lower() == _RESERVED else name
    return _shortened(name, NAME_MAX)


def _shortened(name: str, size: int) -> str:
    return name.encode("utf-16-le")[: 2 * size].decode("utf-16-le", "ignore")


def _unique(name: str, taken: set[str]) -> str:
    candidate, number = name, 2
    while candidate.lower() in taken:
        suffix = f" ({number})"
        candidate, number = _shortened(name, NAME_MAX - len(suffix)) + suffix, number + 1
    return candidate


def sheet_source(new: NewSheet, styles: Sequence[int], *, strict: bool, name: str) -> Iterator[bytes]:
    """Yield the XML of a sheet; a row at a time, however many there are. `styles` are those of the headings, and of the
    columns."""
    yield b'<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
    yield b'<worksheet xmlns="%s"><sheetViews><sheetView workbookViewId="0">' % xml_events.MAIN[strict].encode()
    yield b'<pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/></sheetView></sheetViews>'
    if new.looks:
        widths = (
            b'<col min="%d" max="%d" width="%d" customWidth="1"/>' % (n, n, each.width)
            for n, each in enumerate(new.looks, 1)
        )
        yield b"<cols>%s</cols>" % b"".join(widths)
    yield b"<sheetData>"
    heading, attributes = _style(styles[0]), list(map(_style, styles[1:]))
    links = [look.link for look in new.looks]
    columns: list[bytes] = []  # letters, as far as a row needed them
    number = 0
    for number, row in enumerate(new.rows, 1):
        if number > ROWS_MAX or len(row) > COLUMNS_MAX:
            raise errors.SheetError(f"the new sheet {name!r} would have more cells than a sheet can have")
        missing = range(len(columns) + 1, len(row) + 1)
        columns.extend(column_name(column).encode() for column in missing)
        links.extend(False for _ in range(len(links), len(row)))
        attributes.extend(b"" for _ in range(len(attributes), len(row)))
        style_of = [heading] * len(row) if number == 1 else attributes
        cells = [
            _cell(b"%s%d" % (column, number), style, value, name, link=link and number > 1)
            for column, style, value, link in zip(columns, style_of, row, links, strict=False)
            if value is not None
        ]
        yield b'<row r="%d">%s</row>' % (number, b"".join(cells))
    yield b"</sheetData>"
    if number > 1 and new.looks:
        yield b'<autoFilter ref="A1:%s%d"/>' % (columns[-1], number)
    yield b"</worksheet>"


def _style(index: int) -> bytes:
    return b' s="%d"' % index if index else b""


def _cell(name: bytes, style: bytes, value: CellValue, sheet: str, *, link: bool) -> bytes:
    try:
        kind, content = markup.cell_content(value, calculated=False, ns=b"", link=link)
    except ValueError as error:
        raise errors.SheetError(f"the new sheet {sheet!r}, cell {name.decode()} {error}") from None
    return b'<c r="%s"%s%s>%s</c>' % (name, style, b' t="%s"' % kind if kind else b"", content)
