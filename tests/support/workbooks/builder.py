"""Builds the package of a workbook: sheets with cells and formulas, and any further parts."""

import io
import re
import zipfile
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from support.workbooks import dialects

# The order in which the elements of a worksheet and of a workbook must stand (ECMA-376, CT_Worksheet, CT_Workbook).
WORKSHEET_ORDER = re.findall(
    r"\w+",
    "sheetPr dimension sheetViews sheetFormatPr cols sheetData sheetCalcPr sheetProtection protectedRanges scenarios "
    "autoFilter sortState dataConsolidate customSheetViews mergeCells phoneticPr conditionalFormatting dataValidations "
    "hyperlinks printOptions pageMargins pageSetup headerFooter rowBreaks colBreaks customProperties cellWatches "
    "ignoredErrors smartTags drawing legacyDrawing legacyDrawingHF picture oleObjects controls webPublishItems "
    "tableParts extLst",
)
WORKBOOK_ORDER = re.findall(
    r"\w+",
    "fileVersion fileSharing workbookPr workbookProtection bookViews sheets functionGroups externalReferences "
    "definedNames calcPr oleSize customWorkbookViews pivotCaches smartTagPr fileRecoveryPr webPublishObjects extLst",
)
TYPES = "application/vnd.openxmlformats-officedocument.spreadsheetml"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
RICH = ("<r>", "<t>")  # how the XML of rich text begins

Plain = str | int | float | bool | None


class FormulaCell(NamedTuple):
    """A formula with its cached value. `array` is its range as an array formula, `dynamic` marks it with cm="1";
    `shared` is the index of a shared formula and, in its first cell, its range."""

    text: str
    value: Plain = None
    array: str = ""
    dynamic: bool = False
    shared: tuple[int, str] | None = None
    style: int = 0
    attributes: str = ""


class StyledCell(NamedTuple):
    """A value with the index of a style."""

    value: Plain
    style: int


class ErrorCell(NamedTuple):
    """An error value, such as #N/A."""

    code: str
    style: int = 0


class RawCell(NamedTuple):
    """XML of a cell, with {address} where its address belongs."""

    xml: str


AnyCell = Plain | FormulaCell | StyledCell | ErrorCell | RawCell


def letters(column: int) -> str:
    """The name of a column: 1 is A, 27 is AA."""
    name = ""
    while column:
        column, rest = divmod(column - 1, 26)
        name = chr(65 + rest) + name
    return name


def position(address: str) -> tuple[int, int]:
    """Row and column of an address such as B7."""
    match = re.fullmatch(r"([A-Z]+)(\d+)", address)
    assert match, address
    column = 0
    for letter in match[1]:
        column = column * 26 + ord(letter) - 64
    return int(match[2]), column


class Relationships:
    """Relationships of one part, in the order in which they were made."""

    def __init__(self) -> None:
        self._entries: list[str] = []

    def add(self, kind: str, target: str, *, external: bool = False) -> str:
        """Return the identifier of a new one. `kind` is a whole URI or the last word of an Office type."""
        identifier = f"rId{len(self._entries) + 1}"
        mode = ' TargetMode="External"' if external else ""
        whole = kind if "/" in kind else f"{dialects.RELATIONSHIPS}/{kind}"
        self._entries.append(f'<Relationship Id="{identifier}" Type="{whole}" Target={quoteattr(target)}{mode}/>')
        return identifier

    def xml(self, dialect: dialects.Dialect, folder: str) -> bytes:
        """The part, with targets and types as the dialect has them."""
        entries = "".join(self._entries).replace(f"{dialects.RELATIONSHIPS}/", f"{dialect.relationships}/")
        if dialect.absolute_targets:
            entries = re.sub(r'Target="(?!\w+:|/|\.\.)([^"]*)"(?! TargetMode)', rf'Target="{folder}\1"', entries)
            entries = re.sub(r'Target="\.\./([^"]*)"', r'Target="/xl/\1"', entries)
        text = f'<Relationships xmlns="{PACKAGE}/relationships">{entries}</Relationships>'
        return (dialect.declaration + text).encode()

    def __bool__(self) -> bool:
        return bool(self._entries)


class SheetBuilder:
    """One worksheet. `elements` holds XML by the name of an element beside the cells; `tail` is XML behind the rows."""

    def __init__(self, book: "WorkbookBuilder", name: str, state: str, part: str) -> None:
        self.book = book
        self.name = name
        self.state = state
        self.part = part
        self.rows: dict[int, dict[int, AnyCell]] = {}
        self.row_attributes: dict[int, str] = {}
        self.elements: dict[str, str] = {}
        self.extensions: list[str] = []
        self.relationships = Relationships()
        self.tail = ""

    def put(self, address: str, *cells: AnyCell) -> None:
        """Write cells from this address to the right. None leaves a cell out."""
        row, column = position(address)
        for place, cell in enumerate(cells, column):
            if cell is not None:
                self.rows.setdefault(row, {})[place] = cell

    def append(self, *cells: AnyCell) -> int:
        """Write cells into the row below the last, and return its number."""
        row = max(self.rows, default=0) + 1
        self.rows[row] = {place: cell for place, cell in enumerate(cells, 1) if cell is not None}
        return row

    def extend(self, element: str, xml: str) -> None:
        """Add to an element that may stand more than once, such as conditionalFormatting."""
        self.elements[element] = self.elements.get(element, "") + xml

    def xml(self) -> bytes:
        """The worksheet's part."""
        dialect = self.book.dialect
        elements = {**self.elements, "sheetData": self._data()}
        if dialect.dimension:
            elements["dimension"] = f'<dimension ref="{self._dimension()}"/>'
        elements.setdefault("sheetPr", dialect.properties)
        if self.extensions:
            elements["extLst"] = f"<extLst>{''.join(self.extensions)}</extLst>"
        body = "".join(elements[name] for name in WORKSHEET_ORDER if name in elements)
        return dialect.spell(f"{dialect.root('worksheet', dialect.worksheet)}{body}</worksheet>", dialect.encoding)

    def _dimension(self) -> str:
        cells = [(row, column) for row, places in self.rows.items() for column in places]
        if not cells or not self.book.dialect.addresses:
            return "A1"
        rows, columns = [row for row, _ in cells], [column for _, column in cells]
        return f"{letters(min(columns))}{min(rows)}:{letters(max(columns))}{max(rows)}"

    def _data(self) -> str:
        dialect, rows = self.book.dialect, []
        widest = max((max(places, default=1) for places in self.rows.values()), default=1)
        for row in sorted(self.rows):
            cells = "".join(self._cell(row, column, self.rows[row][column]) for column in sorted(self.rows[row]))
            address = f' r="{row}"' if dialect.addresses else ""
            spans = f' spans="1:{widest}"' if dialect.spans else ""
            rows.append(f"<row{address}{spans}{self.row_attributes.get(row, '')}{dialect.row}>{cells}</row>")
        return f"<sheetData>{''.join(rows)}{self.tail}</sheetData>"

    def _cell(self, row: int, column: int, cell: AnyCell) -> str:
        address = f"{letters(column)}{row}"
        if isinstance(cell, RawCell):
            return cell.xml.format(address=address)
        place = f' r="{address}"' if self.book.dialect.addresses else ""
        style = getattr(cell, "style", 0)
        place += f' s="{style}"' if style else self.book.dialect.plain_style
        if isinstance(cell, FormulaCell):
            return self._formula(place, cell)
        if isinstance(cell, ErrorCell):
            return f'<c{place} t="e"><v>{cell.code}</v></c>'
        return self._value(place, cell.value if isinstance(cell, StyledCell) else cell)

    def _value(self, place: str, value: Plain) -> str:
        if value is None:
            return f"<c{place}/>"
        if isinstance(value, bool):
            return f'<c{place} t="b"><v>{int(value)}</v></c>'
        if not isinstance(value, str):
            return f"<c{place}><v>{value}</v></c>"
        if self.book.dialect.inline:
            return f'<c{place} t="inlineStr"><is>{_text(value)}</is></c>'
        return f'<c{place} t="s"><v>{self.book.shared_string(value)}</v></c>'

    def _formula(self, place: str, cell: FormulaCell) -> str:
        attributes = cell.attributes or self.book.dialect.formula
        if cell.array:
            attributes = f' t="array"{cell.attributes} ref="{cell.array}"'
        elif cell.shared:
            index, ref = cell.shared
            attributes = f' t="shared"{f" ref={quoteattr(ref)}" if ref else ""} si="{index}"'
        kind, value = _cached(cell.value)
        metadata = ' cm="1"' if cell.dynamic else ""
        text = f"<f{attributes}>{escape(cell.text)}</f>" if cell.text else f"<f{attributes}/>"
        return f"<c{place}{kind}{metadata}>{text}{value}</c>"


def _cached(value: Plain) -> tuple[str, str]:
    if value is None:
        return "", ""
    if isinstance(value, bool):
        return ' t="b"', f"<v>{int(value)}</v>"
    if not isinstance(value, str):
        return "", f"<v>{value}</v>"
    kind = "e" if value.startswith("#") else "str"
    return f' t="{kind}"', f"<v>{escape(value)}</v>" if value else "<v/>"


def _text(value: str) -> str:
    """The content of a string: rich text where it is XML, otherwise a <t> that keeps spaces at its ends."""
    if value.startswith(RICH):
        return value
    space = ' xml:space="preserve"' if value != value.strip() else ""
    return f"<t{space}>{escape(value)}</t>"


class WorkbookBuilder:
    """A workbook in the dialect of a program. `macros` are the bytes of a VBA project: the file is an .xlsm then."""

    def __init__(self, dialect: dialects.Dialect = dialects.EXCEL, macros: bytes | None = None) -> None:
        self.dialect = dialect
        self.macros = macros
        self.macro_enabled = macros is not None
        self.sheets: list[SheetBuilder] = []
        self.entries: list[str] = []  # <sheet> elements
        self.elements: dict[str, str] = {}
        self.relationships = Relationships()
        self.root_relationships = Relationships()
        self.more_parts: dict[str, bytes] = {}
        self.part_types: dict[str, str] = {}
        self.extensions = {"bin": f"{TYPES}.printerSettings"}
        self._strings: dict[str, int] = {}
        self._uses = 0
        self._parts: dict[str, bytes] = {}

    def sheet(self, name: str, state: str = "") -> SheetBuilder:
        """Add a worksheet; `state` is hidden or veryHidden."""
        number = len(self.sheets) + 1
        sheet = SheetBuilder(self, name, state, f"xl/worksheets/sheet{number}.xml")
        self.sheets.append(sheet)
        self.part_types[sheet.part] = f"{TYPES}.worksheet+xml"
        self.enter(name, "worksheet", f"worksheets/sheet{number}.xml", state)
        return sheet

    def enter(self, name: str, kind: str, target: str, state: str = "") -> None:
        """Name a sheet of any kind in the list of sheets."""
        identifier = self.relationships.add(kind, target)
        shown = f' state="{state}"' if state else ""
        number = len(self.entries) + 1
        self.entries.append(f'<sheet name={quoteattr(name)} sheetId="{number}"{shown} r:id="{identifier}"/>')

    def part(self, name: str, content: bytes | str, content_type: str = "") -> None:
        """Add a part of any kind; text is XML without a declaration."""
        self.more_parts[name] = content if isinstance(content, bytes) else (self.dialect.declaration + content).encode()
        if content_type:
            self.part_types[name] = content_type

    def main_part(self, name: str, element: str, body: str, kind: str = "", attributes: str = "") -> None:
        """Add a part in the main namespace; `kind` is the word in its content type, if not that of the element."""
        text = f"{self.dialect.root(element, attributes)}{body}</{element}>"
        self.part(name, self.dialect.spell(text), f"{TYPES}.{kind or element}+xml")

    def shared_string(self, value: str) -> int:
        """The index of a shared string; a value that begins with <r> is rich text."""
        self._uses += 1
        return self._strings.setdefault(value, len(self._strings))

    def parts(self) -> dict[str, bytes]:
        """Every part by its name, in the package's order. Finishes the workbook: later changes have no effect."""
        if not self._parts:
            self._parts = self._finished()
        return self._parts

    def _finished(self) -> dict[str, bytes]:
        sheets = {sheet.part: sheet.xml() for sheet in self.sheets}
        if self.macros is not None:
            self.relationships.add(
                "http://schemas.microsoft.com/office/2006/relationships/vbaProject", "vbaProject.bin"
            )
            self.part("xl/vbaProject.bin", self.macros, "application/vnd.ms-office.vbaProject")
        if self._strings:
            self.relationships.add("sharedStrings", "sharedStrings.xml")
            self.part_types["xl/sharedStrings.xml"] = f"{TYPES}.sharedStrings+xml"
            sheets["xl/sharedStrings.xml"] = self._shared_strings()
        self.root_relationships.add("officeDocument", "xl/workbook.xml")
        kind = (
            "application/vnd.ms-excel.sheet.macroEnabled.main+xml" if self.macro_enabled else f"{TYPES}.sheet.main+xml"
        )
        self.part_types["xl/workbook.xml"] = kind
        parts = {
            "[Content_Types].xml": self._content_types(),
            "_rels/.rels": self.root_relationships.xml(self.dialect, "/"),
            "xl/workbook.xml": self._workbook(),
            "xl/_rels/workbook.xml.rels": self.relationships.xml(self.dialect, "/xl/"),
            **sheets,
            **self.more_parts,
        }
        for sheet in self.sheets:
            if sheet.relationships:
                name = sheet.part.replace("worksheets/", "worksheets/_rels/") + ".rels"
                parts[name] = sheet.relationships.xml(self.dialect, "/xl/worksheets/")
        if self.dialect.types_last:
            parts["[Content_Types].xml"] = parts.pop("[Content_Types].xml")
        return parts

    def packed(self) -> bytes:
        """The bytes of the file."""
        return pack(self.parts(), streamed=self.dialect.streamed, stored=self.dialect.stored)

    def write(self, path: Path) -> Path:
        """Write the file and return its path."""
        path.write_bytes(self.packed())
        return path

    def _workbook(self) -> bytes:
        elements = {
            "workbookPr": "<workbookPr/>",
            "bookViews": "<bookViews><workbookView/></bookViews>",
            **self.elements,
        }
        elements["sheets"] = f"<sheets>{''.join(self.entries)}</sheets>"
        body = "".join(elements[name] for name in WORKBOOK_ORDER if name in elements)
        strict = ' conformance="strict"' if self.dialect.strict else ""
        return self.dialect.spell(f"{self.dialect.root('workbook', strict)}{body}</workbook>")

    def _shared_strings(self) -> bytes:
        entries = "".join(f"<si>{_text(text)}</si>" for text in self._strings)
        counts = f' count="{self._uses}" uniqueCount="{len(self._strings)}"'
        return self.dialect.spell(f"{self.dialect.root('sst', counts)}{entries}</sst>")

    def _content_types(self) -> bytes:
        defaults = {
            **self.extensions,
            "rels": "application/vnd.openxmlformats-package.relationships+xml",
            "xml": "application/xml",
        }
        entries = "".join(f'<Default Extension="{end}" ContentType="{kind}"/>' for end, kind in defaults.items())
        entries += "".join(
            f'<Override PartName="/{name}" ContentType="{kind}"/>' for name, kind in self.part_types.items()
        )
        return (self.dialect.declaration + f'<Types xmlns="{PACKAGE}/content-types">{entries}</Types>').encode()


class _Unseekable(io.RawIOBase):
    """Output that cannot go back: zipfile then writes sizes behind each member's data."""

    def __init__(self) -> None:
        self.written = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        self.written += bytes(data)  # type: ignore[call-overload]
        return len(data)  # type: ignore[arg-type]


def pack(parts: dict[str, bytes], *, streamed: bool = False, stored: bool = False) -> bytes:
    """The parts as a package."""
    output: _Unseekable | io.BytesIO = _Unseekable() if streamed else io.BytesIO()
    method = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
    with zipfile.ZipFile(output, "w", method) as archive:
        for name, content in parts.items():
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return bytes(output.written) if isinstance(output, _Unseekable) else output.getvalue()
