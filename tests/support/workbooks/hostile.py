"""Files that no program wrote: what accidents and attackers make of workbooks.

`REFUSED` are useless whatever is done; `ODD` are valid or nearly so: they may be filled or refused, but in bounded
time. Each is a function by the file's name, so that only the tests that need one make it.
"""

import functools
import io
import struct
import zipfile
import zlib
from collections.abc import Callable

from support.workbooks import builder, samples
from support.workbooks.builder import FormulaCell, RawCell
from support.workbooks.dialects import MAIN

SHEET = "xl/worksheets/sheet1.xml"
PART = "SN74S74N"


HostileFiles = dict[str, Callable[[], bytes]]


def good() -> dict[str, bytes]:
    """The parts of a small workbook that can be filled."""
    return dict(samples.bom([["MPN", "Qty"], [PART, 100]]).parts())


def changed(name: str, change: Callable[[bytes], bytes]) -> bytes:
    """The small workbook with one part changed."""
    parts = good()
    parts[name] = change(parts[name])
    return builder.pack(parts)


def rows_of(xml: str) -> bytes:
    """The small workbook with rows appended."""
    return changed(SHEET, lambda sheet: sheet.replace(b"</sheetData>", xml.encode() + b"</sheetData>"))


def _cut(share: float) -> bytes:
    whole = builder.pack(good())
    return whole[: int(len(whole) * share)]


def _rewritten(change: Callable[[bytearray, int, int], None], name: str = SHEET) -> bytes:
    """The small workbook after a change of bytes; it is told where a part's local header and directory entry are."""
    whole = bytearray(builder.pack(good()))
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        local = archive.getinfo(name).header_offset
    entry = whole.index(name.encode(), whole.index(b"PK\x01\x02")) - 46
    change(whole, local, entry)
    return bytes(whole)


def _set(at: int, form: str, value: int, *, local: int | None = None) -> Callable[[bytearray, int, int], None]:
    """Set a field of the directory entry, and of the local header where it stands there too."""

    def change(whole: bytearray, header: int, entry: int) -> None:
        struct.pack_into(form, whole, entry + at, value)
        if local is not None:
            struct.pack_into(form, whole, header + local, value)

    return change


def _bomb(megabytes: int = 128) -> bytes:
    """A sheet of spaces that unpacks a thousandfold, with right sizes and a right checksum."""
    block, crc = b" " * (1 << 20), 0
    deflate, packed = zlib.compressobj(9, zlib.DEFLATED, -15), bytearray()
    start, end = f'<worksheet xmlns="{MAIN}"><sheetData>'.encode(), b"</sheetData></worksheet>"
    for piece in (start, *(block for _ in range(megabytes)), end):
        crc = zlib.crc32(piece, crc)
        packed += deflate.compress(piece)
    packed += deflate.flush()
    return _with_member(bytes(packed), crc, len(start) + megabytes * len(block) + len(end))


def _with_member(packed: bytes, crc: int, size: int) -> bytes:
    """The small workbook with these packed bytes as its sheet, stored first and declared as deflated afterwards."""
    parts = good()
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, packed if name == SHEET else content, zipfile.ZIP_STORED)
    whole = bytearray(output.getvalue())
    with zipfile.ZipFile(output) as archive:
        local = archive.getinfo(SHEET).header_offset
    entry = whole.index(SHEET.encode(), whole.index(b"PK\x01\x02")) - 46
    struct.pack_into("<H", whole, local + 8, zipfile.ZIP_DEFLATED)
    struct.pack_into("<H", whole, entry + 10, zipfile.ZIP_DEFLATED)
    for at in (local + 14, entry + 16):
        struct.pack_into("<3I", whole, at, crc & 0xFFFFFFFF, len(packed), size)
    return bytes(whole)


def _overlapping(copies: int = 200) -> bytes:
    """Many entries of the directory that share the bytes of one member."""
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in good().items():
            archive.writestr(name, content)
        for number in range(copies):
            info = zipfile.ZipInfo(f"xl/media/image{number}.png")
            info.compress_type, info.header_offset = zipfile.ZIP_DEFLATED, archive.getinfo(SHEET).header_offset
            info.file_size, info.compress_size, info.CRC = 1 << 20, 1 << 12, 0
            archive.filelist.append(info)
            archive.NameToInfo[info.filename] = info
    return output.getvalue()


def _many(count: int = 20_000) -> bytes:
    return builder.pack({**good(), **{f"x{number}": b"" for number in range(count)}}, stored=True)


def _twice(name: str = SHEET) -> bytes:
    output = io.BytesIO(builder.pack(good()))
    other = f"X{name[1:]}"
    with zipfile.ZipFile(output, "a") as archive:
        archive.writestr(other, b"<worksheet/>")
    return output.getvalue().replace(other.encode(), name.encode())


def _named(name: str) -> bytes:
    return builder.pack({**good(), name: b"x"})


def _dtd(internal: str, text: str) -> bytes:
    cell = f'<row r="3"><c r="A3" t="inlineStr"><is><t>{text}</t></is></c></row>'

    def change(sheet: bytes) -> bytes:
        before = f"?>\r\n<!DOCTYPE worksheet {internal}>".encode()
        return sheet.replace(b"?>\r\n", before, 1).replace(b"</sheetData>", cell.encode() + b"</sheetData>")

    return changed(SHEET, change)


LAUGHS = "".join(f'<!ENTITY l{number} "{f"&l{number - 1};" * 10}">' for number in range(1, 12))
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(1000)


_TYPES = {"[Content_Types].xml": f'<Types xmlns="{builder.PACKAGE}/content-types"/>'.encode()}
_OPEN_DOCUMENT = {"mimetype": b"application/vnd.oasis.opendocument.spreadsheet", "content.xml": b"<x/>"}
_EMPTY_WORKBOOK = f'<workbook xmlns="{MAIN}"/>'.encode()


def _other_target(rels: bytes) -> bytes:
    return rels.replace(b"worksheets/sheet1.xml", b"../../../../etc/hostname")


REFUSED: HostileFiles = {
    "empty.xlsx": lambda: b"",
    "only the first bytes.xlsx": lambda: b"PK\x03\x04" + bytes(99),
    **{f"cut at {cut:.0%}.xlsx": functools.partial(_cut, cut) for cut in (0.1, 0.5, 0.9, 0.99)},
    "zip bomb.xlsx": _bomb,
    "overlapping members.xlsx": _overlapping,
    "too many members.xlsx": _many,
    "size too small.xlsx": lambda: _rewritten(_set(24, "<I", 10, local=22)),
    "size too large.xlsx": lambda: _rewritten(_set(24, "<I", 1 << 31, local=22)),
    "packed size beyond the file.xlsx": lambda: _rewritten(_set(20, "<I", 1 << 30, local=18)),
    "wrong checksum.xlsx": lambda: _rewritten(_set(16, "<I", 1, local=14)),
    "offset beyond the file.xlsx": lambda: _rewritten(_set(42, "<I", 1 << 30)),
    "offset into another member.xlsx": lambda: _rewritten(_set(42, "<I", 7)),
    "encrypted member.xlsx": lambda: _rewritten(_set(8, "<H", 1)),
    "unknown packing.xlsx": lambda: _rewritten(_set(10, "<H", 99, local=8)),
    "the sheet twice.xlsx": _twice,
    "workbook twice.xlsx": lambda: _twice("xl/workbook.xml"),
    "member outside.xlsx": lambda: _named("../../outside.xml"),
    "member at the root.xlsx": lambda: _named("/etc/outside.xml"),
    "sheet cut inside.xlsx": lambda: changed(SHEET, lambda sheet: sheet[: len(sheet) // 2]),
    "sheet of nothing.xlsx": lambda: changed(SHEET, lambda _: b""),
    "sheet of bytes.xlsx": lambda: changed(SHEET, lambda _: bytes(range(256))),
    "sheet with a control character.xlsx": lambda: rows_of('<row r="3"><c r="A3"><v>\x01</v></c></row>'),
    "tags crossed.xlsx": lambda: rows_of('<row r="3"><c r="A3"></row></c>'),
    "text after the end.xlsx": lambda: changed(SHEET, lambda sheet: sheet + b"<more/>"),
    "entities of entities.xlsx": lambda: _dtd(f'[<!ENTITY l0 "ha">{LAUGHS}]', "&l11;"),
    "external entity.xlsx": lambda: _dtd('[<!ENTITY x SYSTEM "/etc/hostname">]', "&x;"),
    "external DTD.xlsx": lambda: _dtd('SYSTEM "http://127.0.0.1:1/x.dtd"', "x"),
    "parameter entity.xlsx": lambda: _dtd('[<!ENTITY % x SYSTEM "/etc/hostname"> %x;]', "x"),
    "elements nested deeply.xlsx": lambda: rows_of("<x>" * 200_000),
    "no workbook.xlsx": lambda: builder.pack(_TYPES),
    "workbook of nothing.xlsx": lambda: changed("xl/workbook.xml", lambda _: b""),
    "workbook without sheets.xlsx": lambda: changed("xl/workbook.xml", lambda _: _EMPTY_WORKBOOK),
    "sheet that is not there.xlsx": lambda: builder.pack({k: v for k, v in good().items() if k != SHEET}),
    "sheet outside the package.xlsx": lambda: changed("xl/_rels/workbook.xml.rels", _other_target),
    "shared string that is not there.xlsx": lambda: rows_of('<row r="3"><c r="A3" t="s"><v>99</v></c></row>'),
    "shared string below none.xlsx": lambda: rows_of('<row r="3"><c r="A3" t="s"><v>-1</v></c></row>'),
    "cell beyond the last column.xlsx": lambda: rows_of('<row r="3"><c r="XFE3"><v>1</v></c></row>'),
    "row beyond the last.xlsx": lambda: rows_of('<row r="1048577"><c r="A1048577"><v>1</v></c></row>'),
    "address of nonsense.xlsx": lambda: rows_of('<row r="3"><c r="A0"><v>1</v></c></row>'),
    "number of nonsense.xlsx": lambda: rows_of('<row r="3"><c r="A3"><v>abc</v></c></row>'),
    "rows in the wrong order.xlsx": lambda: rows_of('<row r="1"><c r="A1"><v>1</v></c></row>'),
    "old workbook.xlsx": lambda: _OLE,
    "old workbook by its name.xls": lambda: _OLE,
    "encrypted workbook.xlsx": lambda: _OLE + "EncryptedPackage".encode("utf-16-le"),
    "binary workbook.xlsx": lambda: builder.pack(_TYPES | {"xl/workbook.bin": b"\0"}),
    "OpenDocument.xlsx": lambda: builder.pack(_OPEN_DOCUMENT),
    "document of a word processor.xlsx": lambda: builder.pack(_TYPES | {"word/document.xml": b"<x/>"}),
    "PDF.xlsx": lambda: b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n",
    "web page.xlsx": lambda: b"<!doctype html><title>Sign in</title>",
    "no column of part numbers.xlsx": lambda: samples.bom([["Pos", "Value"], [1, "10k"]]).packed(),
    "sheet without a cell.xlsx": lambda: samples.bom([]).packed(),
    "zeros.csv": lambda: b"MPN,Qty\n" + bytes(5000),
    "nothing.csv": lambda: b"",
    "a byte order mark.csv": lambda: "\ufeff".encode(),
    "no column.csv": lambda: b"Pos,Value\n1,10k\n",
}  # fmt: skip


PRICE = "_xll.NEXAR_SUPPLY_AVERAGE_PRICE"
NONSENSE = (
    f"{PRICE}(", f"{PRICE}(A2))", '"', f"{PRICE}('A2)", f"{PRICE}({{1,2;3}})", "{", "_xll.NEXAR_SUPPLY_NOTHING(A2)",
    f"{PRICE}(Nowhere!A2)", f"{PRICE}(A2,,,,,,,,,,)", f"{PRICE}()", f"{PRICE}(A0)", f"{PRICE}(XFE1)",
    f"{PRICE}(#REF!)", "",
)  # fmt: skip


def _nested(depth: int) -> FormulaCell:
    return FormulaCell("IFERROR(" * depth + f"{PRICE}(A2)" + ",-1)" * depth, 1.5)


def _with_formulas(*formulas: FormulaCell | RawCell) -> bytes:
    book = samples.bom([["MPN", "Price"], [PART, None]])
    for row, formula in enumerate(formulas, 2):
        book.sheets[0].put(f"B{row}", formula)
    return book.packed()


HOSTILE_NAMES = (
    "it's", "a!b", "[x.xlsx]y", "a:b", "'", "=1+1", "../../etc/passwd", "[/bold]", "[red]x", "\x1b[31mred", "%s{0}",
    "x" * 300, " ", "a\nb", "\u202egnp", "=cmd|'/c calc'!A0",
)  # fmt: skip


def named_sheets(*names: str) -> bytes:
    """Sheets of these names, each with a part number. Characters that XML refuses become character references."""
    book = builder.WorkbookBuilder()
    for number, _ in enumerate(names):
        sheet = book.sheet(f"name {number}.")
        sheet.append("MPN")
        sheet.append(PART)
    parts = dict(book.parts())
    for number, name in enumerate(names):
        quoted = name.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace("\n", "&#10;")
        quoted = quoted.replace("\x1b", "_x001B_")
        parts["xl/workbook.xml"] = parts["xl/workbook.xml"].replace(f"name {number}.".encode(), quoted.encode())
    return builder.pack(parts)


def _last_row() -> bytes:
    """Empty rows down to the last that a sheet may have, and a part number in it."""
    rows = "".join(f'<row r="{number}"/>' for number in range(3, 1_048_576))
    return rows_of(rows + f'<row r="1048576"><c r="A1048576" t="inlineStr"><is><t>{PART}</t></is></c></row>')


ODD: HostileFiles = {
    "unknown encoding.xlsx": lambda: changed(SHEET, lambda sheet: sheet.replace(b"UTF-8", b"X-NONE")),
    "another encoding than declared.xlsx": lambda: changed(SHEET, lambda s: s.replace(b"UTF-8", b"UTF-16")),
    "1 048 576 rows.xlsx": _last_row,
    "row far below.xlsx": lambda: rows_of('<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'),
    "enormous dimension.xlsx": lambda: changed(SHEET, lambda s: s.replace(b'ref="A1:B2"', b'ref="A1:XFD1048576"')),
    "formula nested 60 deep.xlsx": lambda: _with_formulas(_nested(60)),
    "formula nested 3 000 deep.xlsx": lambda: _with_formulas(_nested(3000)),
    "circle of two cells.xlsx": lambda: _with_formulas(
        FormulaCell(f"{PRICE}(B3)", 1), FormulaCell("_xll.NEXAR_SUPPLY_DISTRIBUTOR_SKU(B2)", "x")),
    "cell of itself.xlsx": lambda: _with_formulas(FormulaCell(f"{PRICE}(B2)", 1)),
    "whole sheet as distributors.xlsx": lambda: _with_formulas(
        FormulaCell("_xll.NEXAR_SUPPLY_DISTRIBUTOR_PRICE(A2,,A1:XFD1048576)", 1)),
    "formulas of nonsense.xlsx": lambda: _with_formulas(*(FormulaCell(text, 1) for text in NONSENSE)),
    "long formula.xlsx": lambda: _with_formulas(FormulaCell("+".join([f"{PRICE}(A2)"] * 2000), 1)),
    "shared formula without its first cell.xlsx": lambda: _with_formulas(FormulaCell("", 1, shared=(7, ""))),
    "number of a million digits.xlsx": lambda: rows_of(f'<row r="3"><c r="A3"><v>{"9" * 1_000_000}</v></c></row>'),
    "exponent beyond numbers.xlsx": lambda: rows_of('<row r="3"><c r="A3"><v>1E999999999</v></c></row>'),
    "text of a million characters.xlsx": lambda: rows_of(
        f'<row r="3"><c r="A3" t="inlineStr"><is><t>{"x" * 1_000_000}</t></is></c></row>'),
    "comments in the markup.xlsx": lambda: rows_of(f"<!--{'-x' * 500_000}--><?x {'y' * 500_000}?>"),
    "attribute of a million characters.xlsx": lambda: rows_of(f'<row r="3" x="{"y" * 1_000_000}"/>'),
    "dates of nonsense.xlsx": lambda: rows_of('<row r="3"><c r="A3" t="d"><v>0000-99-99</v></c></row>'),
    "unknown type of cell.xlsx": lambda: rows_of('<row r="3"><c r="A3" t="zz"><v>1</v></c></row>'),
    "names of sheets.xlsx": lambda: named_sheets(*HOSTILE_NAMES),
    "the same name twice.xlsx": lambda: named_sheets("BOM", "BOM"),
    "wide line.csv": lambda: b"MPN" + b"," * 100_000 + b"\nSN74S74N\n",
    "one line of a megabyte.csv": lambda: b"MPN\n" + b"x" * 1_000_000,
    "quotation that never ends.csv": lambda: b'MPN\n"SN74S74N\n' + b"LM358\n" * 1000,
    "control characters.csv": lambda: b"MPN\n\x1b[31mSN74S74N\n\x07\n[/red]\n",
    "zeros in a cell.csv": lambda: b"MPN,Qty\nSN74\0S74N,1\n",
    "commands as numbers.csv": lambda: b"MPN\n=cmd|'/c calc'!A0\n+1\n-1\n@SUM(A1)\n",
    "bytes of no encoding.csv": lambda: b"MPN,Qty\nSN\x81X\xff,1\n",
    "half a character.csv": lambda: "MPN\nSN\ud800X\n".encode("utf-16", "surrogatepass"),
    "enormous quantities.csv": lambda: b"MPN,Qty\nA,\"1" + b",000" * 3000 + b"\"\nB," + b"9" * 100_000 + b"\n",
    "odd quantities.csv": lambda: "MPN,Qty\nA,٣٤\nB,²\nC,1e5\nD,-5\nE,0\nF,∞\nG,NaN\nH,Infinity\n".encode(),
    "quotation marks only.csv": lambda: b"MPN\n" + b'"a""' * 100_000,
}  # fmt: skip
