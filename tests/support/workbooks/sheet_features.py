"""What stands on a sheet beside its cells: charts, pictures, tables, pivot tables, comments, rules and protection."""

import base64
from xml.sax.saxutils import quoteattr

from support.workbooks.builder import Relationships, SheetBuilder
from support.workbooks.features import DRAWING, OFFICE, X14

PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
_ANCHOR = (
    "<xdr:twoCellAnchor><xdr:from><xdr:col>{0}</xdr:col><xdr:colOff>0</xdr:colOff><xdr:row>{1}</xdr:row>"
    "<xdr:rowOff>0</xdr:rowOff></xdr:from><xdr:to><xdr:col>{2}</xdr:col><xdr:colOff>0</xdr:colOff><xdr:row>{3}</xdr:row>"
    "<xdr:rowOff>0</xdr:rowOff></xdr:to>{4}<xdr:clientData/></xdr:twoCellAnchor>"
)


def chart_and_picture(sheet: SheetBuilder, values: str) -> None:
    """A drawing with a bar chart of a range, and a picture."""
    book, links = sheet.book, Relationships()
    chart, image = links.add("chart", "../charts/chart1.xml"), links.add("image", "../media/image1.png")
    frame = (
        '<xdr:graphicFrame macro=""><xdr:nvGraphicFramePr><xdr:cNvPr id="2" name="Chart 1"/><xdr:cNvGraphicFramePr/>'
        '</xdr:nvGraphicFramePr><xdr:xfrm><a:off x="0" y="0"/><a:ext cx="0" cy="0"/></xdr:xfrm><a:graphic>'
        f'<a:graphicData uri="{DRAWING}/chart"><c:chart xmlns:c="{DRAWING}/chart" r:id="{chart}"/></a:graphicData>'
        "</a:graphic></xdr:graphicFrame>"
    )
    picture = (
        '<xdr:pic><xdr:nvPicPr><xdr:cNvPr id="3" name="Picture 1"/><xdr:cNvPicPr/></xdr:nvPicPr><xdr:blipFill>'
        f'<a:blip r:embed="{image}"/><a:stretch><a:fillRect/></a:stretch></xdr:blipFill><xdr:spPr>'
        '<a:prstGeom prst="rect"><a:avLst/></a:prstGeom></xdr:spPr></xdr:pic>'
    )
    drawing = (
        f'<xdr:wsDr xmlns:xdr="{DRAWING}/spreadsheetDrawing" xmlns:a="{DRAWING}/main" '
        f'xmlns:r="{book.dialect.relationships}">{_ANCHOR.format(13, 1, 20, 12, frame)}'
        f"{_ANCHOR.format(13, 13, 15, 16, picture)}</xdr:wsDr>"
    )
    book.part("xl/drawings/drawing1.xml", drawing, "application/vnd.openxmlformats-officedocument.drawing+xml")
    book.part("xl/drawings/_rels/drawing1.xml.rels", links.xml(book.dialect, "/xl/drawings/"))
    book.part(
        "xl/charts/chart1.xml", _chart(values), "application/vnd.openxmlformats-officedocument.drawingml.chart+xml"
    )
    book.extensions["png"] = "image/png"
    book.part("xl/media/image1.png", PICTURE)
    identifier = sheet.relationships.add("drawing", "../drawings/drawing1.xml")
    sheet.elements["drawing"] = f'<drawing r:id="{identifier}"/>'


def _chart(values: str) -> str:
    axes = "".join(
        f'<c:{kind}Ax><c:axId val="{own}"/><c:scaling><c:orientation val="minMax"/></c:scaling><c:delete val="0"/>'
        f'<c:axPos val="{side}"/><c:crossAx val="{across}"/></c:{kind}Ax>'
        for kind, own, side, across in (("cat", 1, "b", 2), ("val", 2, "l", 1))
    )
    return (
        f'<c:chartSpace xmlns:c="{DRAWING}/chart" xmlns:a="{DRAWING}/main"><c:chart><c:plotArea><c:layout/><c:barChart>'
        '<c:barDir val="col"/><c:grouping val="clustered"/><c:ser><c:idx val="0"/><c:order val="0"/><c:val><c:numRef>'
        f'<c:f>{values}</c:f></c:numRef></c:val></c:ser><c:axId val="1"/><c:axId val="2"/></c:barChart>{axes}'
        "</c:plotArea></c:chart></c:chartSpace>"
    )


def comments(sheet: SheetBuilder, texts: dict[str, str]) -> None:
    """Notes of cells, with the old drawing (VML) that shows them."""
    book = sheet.book
    notes = "".join(
        f'<comment ref="{cell}" authorId="0"><text><r><t xml:space="preserve">{text}</t></r></text></comment>'
        for cell, text in texts.items()
    )
    body = f"<authors><author>Buyer</author></authors><commentList>{notes}</commentList>"
    book.main_part("xl/comments1.xml", "comments", body)
    book.extensions["vml"] = "application/vnd.openxmlformats-officedocument.vmlDrawing"
    vml = (
        '<xml xmlns:v="urn:schemas-microsoft-com:vml" xmlns:o="urn:schemas-microsoft-com:office:office" '
        'xmlns:x="urn:schemas-microsoft-com:office:excel"><o:shapelayout v:ext="edit"><o:idmap v:ext="edit" data="1"/>'
        '</o:shapelayout><v:shape id="_x0000_s1025" type="#_x0000_t202" style="visibility:hidden">'
        '<x:ClientData ObjectType="Note"><x:Row>0</x:Row><x:Column>0</x:Column></x:ClientData></v:shape><br></xml>'
    )  # not well-formed, as Excel's own often is not: <br> has no end
    book.part("xl/drawings/vmlDrawing1.vml", vml.encode())
    identifier = sheet.relationships.add("vmlDrawing", "../drawings/vmlDrawing1.vml")
    sheet.relationships.add("comments", "../comments1.xml")
    sheet.elements["legacyDrawing"] = f'<legacyDrawing r:id="{identifier}"/>'


def table(sheet: SheetBuilder, ref: str, columns: list[str], name: str = "Parts") -> None:
    """A table with a filter over a range whose first row has these headings."""
    book = sheet.book
    entries = "".join(
        f'<tableColumn id="{number}" name={quoteattr(column)}/>' for number, column in enumerate(columns, 1)
    )
    body = (
        f'<autoFilter ref="{ref}"/><tableColumns count="{len(columns)}">{entries}</tableColumns>'
        '<tableStyleInfo name="TableStyleMedium2" showRowStripes="1"/>'
    )
    attributes = f' id="1" name="{name}" displayName="{name}" ref="{ref}" totalsRowShown="0"'
    book.main_part("xl/tables/table1.xml", "table", body, attributes=attributes)
    identifier = sheet.relationships.add("table", "../tables/table1.xml")
    sheet.elements["tableParts"] = f'<tableParts count="1"><tablePart r:id="{identifier}"/></tableParts>'


def pivot_table(source: SheetBuilder, ref: str, fields: list[str], target: SheetBuilder) -> None:
    """A pivot table on one sheet over a range of another, with its cache and records."""
    book, dialect = source.book, source.book.dialect
    links = Relationships()
    records = links.add("pivotCacheRecords", "pivotCacheRecords1.xml")
    names = "".join(f'<cacheField name="{field}" numFmtId="0"><sharedItems/></cacheField>' for field in fields)
    definition = (
        f'<cacheSource type="worksheet"><worksheetSource ref="{ref}" sheet={quoteattr(source.name)}/></cacheSource>'
        f'<cacheFields count="{len(fields)}">{names}</cacheFields>'
    )
    attributes = f' r:id="{records}" refreshedBy="Buyer" recordCount="1"'
    book.main_part("xl/pivotCache/pivotCacheDefinition1.xml", "pivotCacheDefinition", definition, attributes=attributes)
    values = "".join(f'<s v="{field}"/>' for field in fields)
    attributes = ' count="1"'
    book.main_part(
        "xl/pivotCache/pivotCacheRecords1.xml", "pivotCacheRecords", f"<r>{values}</r>", attributes=attributes
    )
    shown = '<pivotField showAll="0"/>' * len(fields)
    pivot = (
        '<location ref="A3:C20" firstHeaderRow="1" firstDataRow="1" firstDataCol="0"/>'
        f'<pivotFields count="{len(fields)}">{shown}</pivotFields>'
    )
    attributes = ' name="Pivot" cacheId="1" dataCaption="Values"'
    book.main_part("xl/pivotTables/pivotTable1.xml", "pivotTableDefinition", pivot, "pivotTable", attributes)
    book.part("xl/pivotCache/_rels/pivotCacheDefinition1.xml.rels", links.xml(dialect, "/xl/pivotCache/"))
    own = Relationships()
    own.add("pivotCacheDefinition", "../pivotCache/pivotCacheDefinition1.xml")
    book.part("xl/pivotTables/_rels/pivotTable1.xml.rels", own.xml(dialect, "/xl/pivotTables/"))
    cache = book.relationships.add("pivotCacheDefinition", "pivotCache/pivotCacheDefinition1.xml")
    book.elements["pivotCaches"] = f'<pivotCaches><pivotCache cacheId="1" r:id="{cache}"/></pivotCaches>'
    target.relationships.add("pivotTable", "../pivotTables/pivotTable1.xml")


def rules(sheet: SheetBuilder, ref: str) -> None:
    """Conditional formats and validations, also those of the extension of 2010, and sparklines."""
    sheet.extend(
        "conditionalFormatting",
        f'<conditionalFormatting sqref="{ref}"><cfRule type="cellIs" dxfId="0" priority="2" operator="lessThan">'
        f'<formula>0</formula></cfRule></conditionalFormatting><conditionalFormatting sqref="{ref}">'
        '<cfRule type="dataBar" priority="1"><dataBar><cfvo type="min"/><cfvo type="max"/><color rgb="FF638EC6"/>'
        "</dataBar></cfRule></conditionalFormatting>",
    )
    sheet.elements["dataValidations"] = (
        f'<dataValidations count="1"><dataValidation type="whole" allowBlank="1" showErrorMessage="1" sqref="{ref}">'
        "<formula1>0</formula1><formula2>1000000</formula2></dataValidation></dataValidations>"
    )
    sheet.extensions += [
        f'<ext uri="{{CCE6A557-97BC-4b89-ADB6-D9C93CAAB3DF}}" {X14}><x14:dataValidations count="1" '
        f'xmlns:xm="{OFFICE}/excel/2006/main"><x14:dataValidation type="list" allowBlank="1"><x14:formula1>'
        f"<xm:f>Hidden!$A$1:$A$3</xm:f></x14:formula1><xm:sqref>M2:M9</xm:sqref></x14:dataValidation>"
        "</x14:dataValidations></ext>",
        f'<ext uri="{{05C60535-1F16-4fd2-B633-F4F36F0B64E0}}" {X14}><x14:sparklineGroups><x14:sparklineGroup>'
        f"<x14:sparklines><x14:sparkline><xm:f>{sheet.name}!B2:D2</xm:f><xm:sqref>L2</xm:sqref></x14:sparkline>"
        "</x14:sparklines></x14:sparklineGroup></x14:sparklineGroups></ext>",
    ]


def protection(sheet: SheetBuilder) -> None:
    """The sheet is locked with a password."""
    sheet.elements["sheetProtection"] = (
        '<sheetProtection algorithmName="SHA-512" hashValue="q2w=" saltValue="bG9j" spinCount="100000" sheet="1" '
        'objects="1" scenarios="1"/>'
    )


def frozen(sheet: SheetBuilder, rows: int = 1) -> None:
    """Rows that stay in view, widths of columns, and a group of columns."""
    sheet.elements["sheetViews"] = (
        f'<sheetViews><sheetView workbookViewId="0"><pane ySplit="{rows}" topLeftCell="A{rows + 1}" '
        'activePane="bottomLeft" state="frozen"/></sheetView></sheetViews>'
    )
    sheet.elements["sheetFormatPr"] = '<sheetFormatPr defaultRowHeight="15" outlineLevelCol="1"/>'
    sheet.elements["cols"] = (
        '<cols><col min="1" max="1" width="24" customWidth="1"/>'
        '<col min="2" max="3" width="12" outlineLevel="1"/></cols>'
    )


def merged(sheet: SheetBuilder, *ranges: str) -> None:
    """Cells that are shown as one."""
    entries = "".join(f'<mergeCell ref="{ref}"/>' for ref in ranges)
    sheet.elements["mergeCells"] = f'<mergeCells count="{len(ranges)}">{entries}</mergeCells>'


def chart_sheet(source: SheetBuilder, name: str = "Chart") -> None:
    """A sheet that is a chart and has no cells."""
    book = source.book
    book.enter(name, "chartsheet", "chartsheets/sheet1.xml")
    links = Relationships()
    identifier = links.add("drawing", "../drawings/drawing2.xml")
    book.part("xl/chartsheets/_rels/sheet1.xml.rels", links.xml(book.dialect, "/xl/chartsheets/"))
    drawing = f'<xdr:wsDr xmlns:xdr="{DRAWING}/spreadsheetDrawing" xmlns:a="{DRAWING}/main"/>'
    book.part("xl/drawings/drawing2.xml", drawing, "application/vnd.openxmlformats-officedocument.drawing+xml")
    body = f'<sheetViews><sheetView workbookViewId="0"/></sheetViews><drawing r:id="{identifier}"/>'
    book.main_part("xl/chartsheets/sheet1.xml", "chartsheet", body)
