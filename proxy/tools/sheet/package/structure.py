"""Parts of a workbook package: relationships, sheets, and what else concerns cells."""

import posixpath
import urllib.parse
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

from proxy import errors
from proxy.kit.wording import printable
from proxy.tools.sheet.package import archive, xml_events

PART_MAX = 1 << 26  # bytes of a part that is read whole: those that list sheets, styles, calculated cells
ELEMENTS_MAX = 500_000  # of such a part: the 65 490 cell formats that Excel can store, with their parts
_PACKAGE = "http://schemas.openxmlformats.org/package/2006/"
RELATIONSHIP_NAMES = (_PACKAGE + "relationships",)
CONTENT_TYPE_NAMES = (_PACKAGE + "content-types",)
CONTENT_TYPES = "[Content_Types].xml"


class Sheet(NamedTuple):
    """Worksheet of a workbook. `identifier` is its `sheetId`, which other parts refer to it by."""

    name: str
    part: str
    visible: bool
    identifier: int


class Element(NamedTuple):
    """Element of a part that is read whole. `at` and `end_at` are offsets of its start tag and its end tag; `text` is
    what stands behind the last element in it."""

    depth: int
    name: str
    attributes: dict[str, str]
    at: int
    end_at: int = 0
    text: str = ""


class Structure(NamedTuple):
    """What the package says of its parts. A part that is not there is None."""

    workbook: str
    strict: bool  # the namespaces of ISO 29500 Strict
    sheets: tuple[Sheet, ...]
    shared_strings: str | None
    styles: str | None
    calc_chain: str | None
    date_1904: bool


class Relationship(NamedTuple):
    """Reference of a part to another. `kind` is the last segment of its type, which all versions share."""

    identifier: str
    kind: str
    part: str | None


def visible(name: str) -> str:
    """Return a name of the file as it may stand in a message: short, in one line, without control characters."""
    shown = printable(name[:60]).replace("\n", "\\x0a")
    return f"{shown}…" if len(name) > 60 else shown


class _Elements:
    """Collects the elements of a part."""

    def __init__(self, fail: xml_events.Fail) -> None:
        self._fail = fail
        self.elements: list[Element] = []
        self._open: list[int] = []
        self._text: list[str] = []

    def start(self, name: str, attributes: dict[str, str], at: int) -> None:
        if len(self.elements) >= ELEMENTS_MAX:
            self._fail(f"has more than {ELEMENTS_MAX} elements")
        self._open.append(len(self.elements))
        self.elements.append(Element(len(self._open), name, attributes, at))
        self._text.clear()

    def end(self, _: str, at: int) -> None:
        index = self._open.pop()
        self.elements[index] = self.elements[index]._replace(end_at=at, text="".join(self._text))
        self._text.clear()

    def text(self, data: str) -> None:
        self._text.append(data)


def elements(source: bytes, fail: xml_events.Fail, namespaces: tuple[str, ...] = xml_events.MAIN) -> list[Element]:
    """Return all elements of a part, with offsets into its source."""
    collector = _Elements(fail)
    xml_events.XmlParser(collector, fail, namespaces).run([source])
    return collector.elements


class Parts:
    """Parts of an archive by name, whatever the case of its letters."""

    def __init__(self, source: archive.Archive) -> None:
        self.archive = source
        self._names = {name.lower(): name for name in source.members}

    def failing(self, part: str) -> xml_events.Fail:
        """Return a function that raises the error of a part."""

        def fail(problem: str) -> NoReturn:
            raise errors.SheetError(f"{self.archive.path}: the part {visible(part)} {problem}")

        return fail

    def find(self, name: str) -> str | None:
        """Return the member of a part."""
        plain = name.lstrip("/").lower()
        return self._names.get(plain) or self._names.get(urllib.parse.unquote(plain))

    def utf8(self, part: str, limit: int = PART_MAX) -> xml_events.Utf8Source:
        """Return the chunks of a part, of at most `limit` bytes."""
        return xml_events.Utf8Source(self.archive.chunks(part, limit), self.failing(part))

    def source(self, part: str) -> bytes:
        """Return a part as UTF-8."""
        return b"".join(self.utf8(part))

    def elements(self, part: str, namespaces: tuple[str, ...] = xml_events.MAIN) -> list[Element]:
        """Return all elements of a part, with offsets into `source`."""
        return elements(self.source(part), self.failing(part), namespaces)

    def relationships_part(self, part: str) -> str:
        """Return the part that lists the relationships of another; "" where there is none."""
        folder, name = posixpath.split(part)
        return self.find(posixpath.join(folder, "_rels", f"{name}.rels")) or ""

    def relationships(self, part: str) -> list[Relationship]:
        """Return the relationships of a part ("" for the package's own); none where it has no list."""
        folder = posixpath.dirname(part)
        listing = self.relationships_part(part)
        if not listing:
            return []
        return [
            Relationship(
                each.attributes.get("Id", ""),
                each.attributes.get("Type", "").rpartition("/")[2],
                None if each.attributes.get("TargetMode") == "External" else self._target(folder, each),
            )
            for each in self.elements(listing, RELATIONSHIP_NAMES)
            if each.name == "Relationship"
        ]

    def _target(self, folder: str, relationship: Element) -> str | None:
        target = relationship.attributes.get("Target", "")
        return self.find(posixpath.normpath(posixpath.join("/" + folder, target)))


def read(parts: Parts) -> Structure:
    """Find the workbook and its sheets. Raises SheetError for anything but a workbook."""
    workbook = next((each.part for each in parts.relationships("") if each.kind == "officeDocument"), None)
    if workbook is None or not workbook.lower().endswith(".xml"):
        raise parts.archive.error(_other_format(parts, workbook))
    listed = parts.elements(workbook)
    if listed[0].name != "workbook":
        raise parts.archive.error("is not a workbook, but another document of an office program")
    related = parts.relationships(workbook)
    by_kind = {each.kind: each.part for each in related}
    sheets = tuple(_sheets(parts, workbook, listed, {each.identifier: each for each in related}))
    dates = next((each.attributes.get("date1904") for each in listed if each.name == "workbookPr"), None)
    strings, styles, chain = (by_kind.get(kind) for kind in ("sharedStrings", "styles", "calcChain"))
    strict = any(each.attributes.get("conformance") == "strict" for each in listed[:1])
    return Structure(workbook, strict, sheets, strings, styles, chain, dates in ("1", "true"))


def _other_format(parts: Parts, workbook: str | None) -> str:
    if workbook is not None or parts.find("xl/workbook.bin"):
        return "is a binary workbook (.xlsb): open it in Excel or LibreOffice and save it as .xlsx"
    if parts.find("mimetype") or parts.find("content.xml"):
        return "is an OpenDocument file: save it as .xlsx in LibreOffice (soffice --headless --convert-to xlsx FILE)"
    return "is a ZIP archive, but no workbook: open the spreadsheet in Excel or LibreOffice and save it as .xlsx"


def _sheets(parts: Parts, workbook: str, listed: list[Element], related: dict[str, Relationship]) -> Iterator[Sheet]:
    fail = parts.failing(workbook)
    names: set[str] = set()
    used: set[str] = set()
    for element in listed:
        if element.name != "sheet" or element.depth != 3:
            continue
        name, identifier = element.attributes.get("name", ""), element.attributes.get("sheetId", "")
        if name.lower() in names:
            fail(f"has two sheets named {visible(name)!r}")
        names.add(name.lower())
        reference = next(
            (
                element.attributes.get(f"{each} id", "")
                for each in xml_events.RELATIONSHIPS
                if f"{each} id" in element.attributes
            ),
            "",
        )
        relation = related.get(reference)
        if relation is None or (relation.kind == "worksheet" and relation.part is None):
            fail(f"names a sheet {visible(name)!r} that is not in the file")
        if relation.kind == "worksheet" and relation.part is not None:  # charts and dialogs have no cells
            if relation.part in used:
                fail(f"names the same part for the sheet {visible(name)!r} and another")
            used.add(relation.part)
            shown = element.attributes.get("state", "visible") == "visible"
            yield Sheet(name, relation.part, shown, int(identifier) if identifier.isdigit() else 0)
