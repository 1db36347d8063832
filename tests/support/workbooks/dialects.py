"""How programs spell the same workbook: namespaces, prefixes, addresses, texts and the order of a package's parts."""

import re
from typing import NamedTuple

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATIONSHIPS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
STRICT_MAIN = "http://purl.oclc.org/ooxml/spreadsheetml/main"
STRICT_RELATIONSHIPS = "http://purl.oclc.org/ooxml/officeDocument/relationships"

_EXCEL = (
    ' xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" mc:Ignorable="x14ac xr xr2 xr3"'
    ' xmlns:x14ac="http://schemas.microsoft.com/office/spreadsheetml/2009/9/ac"'
    ' xmlns:xr="http://schemas.microsoft.com/office/spreadsheetml/2014/revision"'
    ' xmlns:xr2="http://schemas.microsoft.com/office/spreadsheetml/2015/revision2"'
    ' xmlns:xr3="http://schemas.microsoft.com/office/spreadsheetml/2016/revision3"'
    ' xr:uid="{FFE2C72F-9DC4-439C-9B54-D9284EB2FA47}"'
)
_GOOGLE = (
    ' xmlns:mx="http://schemas.microsoft.com/office/mac/excel/2008/main"'
    ' xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    ' xmlns:mv="urn:schemas-microsoft-com:mac:vml"'
    ' xmlns:x14="http://schemas.microsoft.com/office/spreadsheetml/2009/9/main"'
    ' xmlns:xm="http://schemas.microsoft.com/office/excel/2006/main"'
)
_TAG = re.compile(r"<(/?)(?=[A-Za-z]+[\s/>])")


class Dialect(NamedTuple):
    """One program's way to write a workbook."""

    name: str
    declaration: str = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\r\n'
    worksheet: str = ""  # more attributes of <worksheet>
    row: str = ""  # more attributes of each <row>
    plain_style: str = ""  # attribute of cells without a style of their own
    formula: str = ""  # attributes of each plain <f>
    properties: str = ""  # XML before the sheet's data
    prefix: str = ""  # of the main namespace
    encoding: str = "utf-8"  # of the worksheets
    strict: bool = False
    spans: bool = False
    addresses: bool = True  # r="…" of rows and cells
    dimension: bool = True
    inline: bool = False  # texts stand in the cells
    streamed: bool = False  # sizes stand behind each member's data (data descriptors)
    stored: bool = False  # members are not compressed
    types_last: bool = False  # [Content_Types].xml is the last member
    absolute_targets: bool = False  # relationships name parts from the root

    @property
    def main(self) -> str:
        """Namespace of workbooks and worksheets."""
        return STRICT_MAIN if self.strict else MAIN

    @property
    def relationships(self) -> str:
        """Namespace of r:id, and the beginning of the types of relationships."""
        return STRICT_RELATIONSHIPS if self.strict else RELATIONSHIPS

    def spell(self, xml: str, encoding: str = "utf-8") -> bytes:
        """The bytes of a part in the main namespace."""
        text = _TAG.sub(rf"<\1{self.prefix}:", xml) if self.prefix else xml
        declaration = self.declaration.replace("UTF-8", encoding.upper())
        return (declaration + text).encode(encoding)

    def root(self, name: str, attributes: str = "") -> str:
        """A start tag with the namespaces of this dialect."""
        bound = f":{self.prefix}" if self.prefix else ""
        return f'<{name} xmlns{bound}="{self.main}" xmlns:r="{self.relationships}"{attributes}>'


EXCEL = Dialect("excel", worksheet=_EXCEL, row=' x14ac:dyDescent="0.25"', spans=True)
MAC = EXCEL._replace(name="mac", declaration='<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n', streamed=True)
LIBREOFFICE = Dialect(
    "libreoffice",
    declaration='<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n',
    row=' customFormat="false" ht="12.8" hidden="false" customHeight="false" outlineLevel="0" collapsed="false"',
    plain_style=' s="0"',
    formula=' aca="false"',
    properties='<sheetPr filterMode="false"><pageSetUpPr fitToPage="false"/></sheetPr>',
    streamed=True,
)
GOOGLE = Dialect(
    "google",
    declaration='<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n',
    worksheet=_GOOGLE,
    plain_style=' s="0"',
    properties='<sheetPr><outlinePr summaryBelow="0" summaryRight="0"/></sheetPr>',
    dimension=False,
    streamed=True,
    types_last=True,
)
STRICT = EXCEL._replace(name="strict", strict=True)
SDK = Dialect(  # as libraries of .NET write it
    "sdk", declaration='<?xml version="1.0" encoding="utf-8"?>', prefix="x", inline=True, absolute_targets=True
)
UTF16 = Dialect("utf16", encoding="utf-16", stored=True)
BARE = Dialect("bare", declaration="", addresses=False, inline=True)  # nothing that may be left out

PROGRAMS = (EXCEL, MAC, LIBREOFFICE, GOOGLE, STRICT, SDK, UTF16, BARE)
