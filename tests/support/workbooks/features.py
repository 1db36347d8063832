"""What stands beside the cells of real workbooks: each function adds one feature, with all parts that belong to it."""

from support.workbooks.builder import FormulaCell, Relationships, SheetBuilder, WorkbookBuilder, letters

OFFICE = "http://schemas.microsoft.com/office"
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006"
X14 = f'xmlns:x14="{OFFICE}/spreadsheetml/2009/9/main" xmlns:xm="{OFFICE}/excel/2006/main"'

# Indices of the styles that `styles` writes.
GENERAL, CENTRED, LEFT, BOLD_LEFT, BOLD, LINK, DATE, PRICE, WRAPPED, UNLOCKED, AS_TEXT = range(11)
_CELL_STYLES = (
    'numFmtId="0" fontId="0" fillId="0" borderId="0"',
    'numFmtId="0" fontId="0" fillId="0" borderId="0" applyAlignment="1"><alignment vertical="center"/',
    'numFmtId="0" fontId="0" fillId="0" borderId="0" applyAlignment="1"><alignment horizontal="left"/',
    'numFmtId="0" fontId="1" fillId="0" borderId="0" applyFont="1" applyAlignment="1"><alignment horizontal="left"/',
    'numFmtId="0" fontId="1" fillId="0" borderId="0" applyFont="1"',
    'numFmtId="0" fontId="2" fillId="0" borderId="0"',
    'numFmtId="14" fontId="0" fillId="0" borderId="0" applyNumberFormat="1"',
    'numFmtId="164" fontId="0" fillId="0" borderId="0" applyNumberFormat="1"',
    'numFmtId="0" fontId="0" fillId="2" borderId="1" applyFill="1" applyBorder="1" applyAlignment="1">'
    '<alignment wrapText="1"/',
    'numFmtId="0" fontId="0" fillId="0" borderId="0" applyProtection="1"><protection locked="0"/',
    'numFmtId="49" fontId="0" fillId="0" borderId="0" applyNumberFormat="1"',
)


def styles(book: WorkbookBuilder) -> None:
    """Cell styles with the indices above, and two differential ones."""
    entries = "".join(
        f'<xf xfId="0" {style}></xf>' if style.endswith("/") else f'<xf xfId="0" {style}/>' for style in _CELL_STYLES
    )
    fonts = (
        '<font><sz val="11"/><name val="Calibri"/></font><font><b/><sz val="11"/><name val="Calibri"/></font>'
        '<font><u/><sz val="11"/><color theme="10"/><name val="Calibri"/></font>'
    )
    fills = (
        '<fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill>'
        '<fill><patternFill patternType="solid"><fgColor rgb="FFFFF2CC"/><bgColor indexed="64"/></patternFill></fill>'
    )
    line = '<{0} style="thin"><color auto="1"/></{0}>'
    lines = "".join(line.format(side) for side in ("left", "right", "top", "bottom"))
    body = (
        '<numFmts count="1"><numFmt numFmtId="164" formatCode="[$€-407]\\ #,##0.00000"/></numFmts>'
        f'<fonts count="3">{fonts}</fonts><fills count="3">{fills}</fills>'
        '<borders count="2"><border><left/><right/><top/><bottom/><diagonal/></border>'
        f"<border>{lines}<diagonal/></border></borders>"
        '<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>'
        f'<cellXfs count="{len(_CELL_STYLES)}">{entries}</cellXfs>'
        '<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles>'
        '<dxfs count="2"><dxf><font><color rgb="FF9C0006"/></font></dxf>'
        '<dxf><fill><patternFill><bgColor rgb="FFC6EFCE"/></patternFill></fill></dxf></dxfs>'
        '<tableStyles count="0" defaultTableStyle="TableStyleMedium2"/>'
    )
    book.relationships.add("styles", "styles.xml")
    book.main_part("xl/styles.xml", "styleSheet", body, "styles")


def theme(book: WorkbookBuilder) -> None:
    """Colors and fonts."""
    names = ("dk1", "lt1", "dk2", "lt2", *(f"accent{number}" for number in range(1, 7)), "hlink", "folHlink")
    colors = "".join(
        f'<a:{name}><a:srgbClr val="{number * 1315860:06X}"/></a:{name}>' for number, name in enumerate(names)
    )
    font = '<a:latin typeface="Calibri"/><a:ea typeface=""/><a:cs typeface=""/>'
    fill = '<a:solidFill><a:schemeClr val="phClr"/></a:solidFill>'
    lines = "".join(f'<a:ln w="{width}">{fill}</a:ln>' for width in (6350, 12700, 19050))
    text = (
        f'<a:theme xmlns:a="{DRAWING}/main" name="Office"><a:themeElements>'
        f'<a:clrScheme name="Office">{colors}</a:clrScheme>'
        f'<a:fontScheme name="Office"><a:majorFont>{font}</a:majorFont><a:minorFont>{font}</a:minorFont></a:fontScheme>'
        f'<a:fmtScheme name="Office"><a:fillStyleLst>{fill * 3}</a:fillStyleLst><a:lnStyleLst>{lines}</a:lnStyleLst>'
        f"<a:effectStyleLst>{'<a:effectStyle><a:effectLst/></a:effectStyle>' * 3}</a:effectStyleLst>"
        f"<a:bgFillStyleLst>{fill * 3}</a:bgFillStyleLst></a:fmtScheme></a:themeElements></a:theme>"
    )
    book.relationships.add("theme", "theme/theme1.xml")
    book.part("xl/theme/theme1.xml", text, "application/vnd.openxmlformats-officedocument.theme+xml")


def dynamic_arrays(book: WorkbookBuilder) -> None:
    """The part to which cm="1" of dynamic array cells refers."""
    body = (
        '<metadataTypes count="1"><metadataType name="XLDAPR" minSupportedVersion="120000" copy="1" pasteAll="1" '
        'pasteValues="1" merge="1" splitFirst="1" rowColShift="1" clearFormats="1" clearComments="1" assign="1" '
        'coerce="1" cellMeta="1"/></metadataTypes><futureMetadata name="XLDAPR" count="1"><bk><extLst>'
        '<ext uri="{bdbb8cdc-fa1e-496e-a857-3c3f30c029c3}">'
        f'<xda:dynamicArrayProperties xmlns:xda="{OFFICE}/spreadsheetml/2017/dynamicarray" fDynamic="1" '
        'fCollapsed="0"/>'
        '</ext></extLst></bk></futureMetadata><cellMetadata count="1"><bk><rc t="1" v="0"/></bk></cellMetadata>'
    )
    book.relationships.add("sheetMetadata", "metadata.xml")
    book.main_part("xl/metadata.xml", "metadata", body, "sheetMetadata")


def calculation_chain(book: WorkbookBuilder) -> None:
    """The order in which Excel last calculated the formulas: every one of them stands in it."""
    cells = [
        f'<c r="{letters(column)}{row}" i="{number}"{" a=" + chr(34) + "1" + chr(34) if cell.array else ""}/>'
        for number, sheet in enumerate(book.sheets, 1)
        for row, places in sheet.rows.items()
        for column, cell in places.items()
        if isinstance(cell, FormulaCell)
    ]
    book.relationships.add("calcChain", "calcChain.xml")
    book.main_part("xl/calcChain.xml", "calcChain", "".join(reversed(cells)))


def hyperlinks(sheet: SheetBuilder, targets: dict[str, str]) -> None:
    """Links of cells to addresses, by the cell."""
    links = "".join(
        f'<hyperlink ref="{cell}" r:id="{sheet.relationships.add("hyperlink", target, external=True)}" tooltip="More"/>'
        for cell, target in targets.items()
    )
    sheet.elements["hyperlinks"] = f"<hyperlinks>{links}</hyperlinks>"


def printer_settings(sheet: SheetBuilder) -> None:
    """Page set-up with the driver's own bytes."""
    sheet.book.part("xl/printerSettings/printerSettings1.bin", bytes(range(256)) * 4)
    identifier = sheet.relationships.add("printerSettings", "../printerSettings/printerSettings1.bin")
    sheet.elements["pageMargins"] = (
        '<pageMargins left="0.7" right="0.7" top="0.75" bottom="0.75" header="0.3" footer="0.3"/>'
    )
    sheet.elements["pageSetup"] = f'<pageSetup paperSize="9" orientation="landscape" r:id="{identifier}"/>'
    sheet.elements["headerFooter"] = "<headerFooter><oddFooter>&amp;CPage &amp;P</oddFooter></headerFooter>"


def properties(book: WorkbookBuilder) -> None:
    """Author, program and own properties of the document."""
    core = (
        f'<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties" {_DC}>'
    )
    core += "<dc:creator>Buyer</dc:creator></cp:coreProperties>"
    application = "http://schemas.openxmlformats.org/officeDocument/2006/extended-properties"
    custom = "http://schemas.openxmlformats.org/officeDocument/2006/custom-properties"
    values = "http://schemas.openxmlformats.org/officeDocument/2006/docPropsVTypes"
    own = (
        f'<Properties xmlns="{custom}" xmlns:vt="{values}"><property fmtid="{{D5CDD505-2E9C-101B-9397-08002B2CF9AE}}" '
        'pid="2" name="Project"><vt:lpwstr>P-17</vt:lpwstr></property></Properties>'
    )
    texts = {
        "core": (core, "http://schemas.openxmlformats.org/package/2006/relationships/metadata/core-properties",
                 "application/vnd.openxmlformats-package.core-properties+xml"),
        "app": (f'<Properties xmlns="{application}"><Application>Microsoft Excel</Application></Properties>',
                "extended-properties", "application/vnd.openxmlformats-officedocument.extended-properties+xml"),
        "custom": (own, "custom-properties", "application/vnd.openxmlformats-officedocument.custom-properties+xml"),
    }  # fmt: skip
    for name, (text, kind, content_type) in texts.items():
        book.root_relationships.add(kind, f"docProps/{name}.xml")
        book.part(f"docProps/{name}.xml", text, content_type)


_DC = 'xmlns:dc="http://purl.org/dc/elements/1.1/"'


def custom_xml(book: WorkbookBuilder) -> None:
    """Data of another program, such as a document management system."""
    book.relationships.add("customXml", "../customXml/item1.xml")
    book.part("customXml/item1.xml", '<bom xmlns="urn:example:bom" revision="C"/>')
    links = Relationships()
    links.add("customXmlProps", "itemProps1.xml")
    book.part("customXml/_rels/item1.xml.rels", links.xml(book.dialect, "/customXml/"))
    space = "http://schemas.openxmlformats.org/officeDocument/2006/customXml"
    text = f'<ds:datastoreItem xmlns:ds="{space}" ds:itemID="{{5B3C9F6A-0001-4A7B-9E2D-0123456789AB}}"/>'
    book.part("customXml/itemProps1.xml", text, "application/vnd.openxmlformats-officedocument.customXmlProperties+xml")


def external_link(book: WorkbookBuilder) -> None:
    """A reference to another workbook."""
    identifier = book.relationships.add("externalLink", "externalLinks/externalLink1.xml")
    book.elements["externalReferences"] = (
        f'<externalReferences><externalReference r:id="{identifier}"/></externalReferences>'
    )
    links = Relationships()
    links.add("externalLinkPath", "prices-2024.xlsx", external=True)
    book.part("xl/externalLinks/_rels/externalLink1.xml.rels", links.xml(book.dialect, "/xl/externalLinks/"))
    body = '<externalBook r:id="rId1"><sheetNames><sheetName val="Old"/></sheetNames></externalBook>'
    book.main_part("xl/externalLinks/externalLink1.xml", "externalLink", body)


def defined_names(book: WorkbookBuilder, names: dict[str, str], attributes: str = "") -> None:
    """Names for ranges and formulas."""
    entries = "".join(f'<definedName name="{name}"{attributes}>{text}</definedName>' for name, text in names.items())
    before = book.elements.get("definedNames", "<definedNames></definedNames>")
    book.elements["definedNames"] = before.replace("</definedNames>", f"{entries}</definedNames>")


def locked_structure(book: WorkbookBuilder) -> None:
    """Sheets cannot be added or renamed in Excel."""
    book.elements["workbookProtection"] = '<workbookProtection lockStructure="1" workbookPassword="CC1A"/>'
