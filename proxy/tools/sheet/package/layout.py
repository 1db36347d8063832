"""Looks of a sheet where it has none: widths of new columns, headings that stay in view, a filter. No I/O."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from proxy.tools.sheet.package import markup
from proxy.tools.sheet.package.cells import Area, column_name, reference

FROZEN_MAX = 10  # rows above the lines; more would leave them no room on a screen
SHARED_MAX = 50  # columns that a width was chosen for; of more, it is a default

# ECMA-376 part 1, 18.3.1.99: the order of a sheet's elements. Others come later.
_ORDER = (
    *("sheetPr", "dimension", "sheetViews", "sheetFormatPr", "cols", "sheetData", "sheetCalcPr", "sheetProtection"),
    *("protectedRanges", "scenarios", "autoFilter"),
)
_FILTERED = re.compile(r"(\$?[A-Z]+\$?(\d+):\$?)([A-Z]+)(\$?\d+)")
_RANK = {name: rank for rank, name in enumerate(_ORDER)}


class SheetLook(NamedTuple):
    """Row of the headings, widths by column, and the area to filter (None: no filter)."""

    header: int
    widths: Mapping[int, int]
    filtered: Area | None

    def widened(self, area: str) -> str:
        """Return the area of a filter, with the new columns if it is one of the lines: they are sorted with these."""
        match = _FILTERED.fullmatch(area)
        if self.filtered is None or match is None or int(match[2]) != self.filtered.first_row:
            return area
        last = max(match[3], column_name(self.filtered.last_column), key=lambda name: (len(name), name))
        return f"{match[1]}{last}{match[4]}"


class LookEditor:
    """Gets the elements of a sheet before its cells are edited, and adds what is missing of a look to its source."""

    def __init__(self, look: SheetLook, source: markup.SourceText) -> None:
        self._look = look
        self._source = source
        self._ns = b""
        self._missing = {
            "sheetViews": lambda: self._wrapped(b"sheetViews", self._view()),
            "cols": lambda: self._wrapped(b"cols", self._columns(None)),
            "autoFilter": self._filter,
        }
        self._widths = sorted(look.widths)
        self._section = ""
        self._view_open = False

    def start(self, depth: int, name: str, attributes: dict[str, str], at: int) -> None:
        """Begin an element."""
        if depth == 2:
            self._ns = markup.prefix(self._source.tag(at))
            self.before(_RANK.get(name, len(_ORDER)), at)
            self._missing.pop(name, None)
            self._section = name
            if name == "autoFilter":
                tag = self._source.tag(at)
                ref = self._look.widened(attributes.get("ref", ""))
                self._source.replace(at, at + len(tag), markup.with_attributes(tag, {b"ref": ref.encode()}))
        elif depth == 3 and name == "sheetView" and self._section == "sheetViews":
            tag = self._source.tag(at)
            self._view_open = not markup.is_empty(tag)
            if not self._view_open:
                end = b"</%ssheetView>" % self._ns
                self._source.replace(at, at + len(tag), markup.opened(tag) + self._pane() + end)
        elif depth == 4 and self._view_open:
            self._view_open = False
            if name != "pane":
                self._source.replace(at, at, self._pane())
        elif depth == 3 and name == "col" and self._section == "cols":
            self._column(attributes, at)

    def end(self, depth: int, at: int) -> None:
        """End an element."""
        if depth == 2 and self._section == "cols":
            self._source.replace(at, at, self._columns(None))
        elif depth == 2:
            self._section = ""
        elif depth == 1:
            self.before(len(_ORDER), at)

    def before(self, rank: int, at: int) -> None:
        """Add what has its place before an element of this rank."""
        for name in [name for name in self._missing if _RANK[name] < rank]:
            self._source.replace(at, at, self._missing.pop(name)())

    def _column(self, attributes: dict[str, str], at: int) -> None:
        tag = self._source.tag(at)
        low, high = (int(text) if (text := attributes.get(key, "")).isdigit() else 0 for key in ("min", "max"))
        before, self._widths = self._columns(low), [each for each in self._widths if each >= low]
        inside = [each for each in self._widths if each <= high]
        self._widths = self._widths[len(inside) :]
        chosen = attributes.get("customWidth") in ("1", "true") and high - low < SHARED_MAX
        if not inside or chosen or not markup.is_empty(tag):
            self._source.replace(at, at, before)
            return
        pieces = [before]
        for column in inside:
            if low < column:
                pieces.append(_spanning(tag, low, column - 1))
            width = b"%d" % self._look.widths[column]
            pieces.append(
                markup.with_attributes(_spanning(tag, column, column), {b"width": width, b"customWidth": b"1"})
            )
            low = column + 1
        if low <= high:
            pieces.append(_spanning(tag, low, high))
        self._source.replace(at, at + len(tag), b"".join(pieces))

    def _columns(self, before: int | None) -> bytes:
        """Return the columns that are not written yet, up to one."""
        missing = [each for each in self._widths if before is None or each < before]
        return b"".join(
            b'<%scol min="%d" max="%d" width="%d" customWidth="1"/>' % (self._ns, each, each, self._look.widths[each])
            for each in missing
        )

    def _wrapped(self, name: bytes, content: bytes) -> bytes:
        return b"<%s%s>%s</%s%s>" % (self._ns, name, content, self._ns, name) if content else b""

    def _view(self) -> bytes:
        pane = self._pane()
        return b'<%ssheetView workbookViewId="0">%s</%ssheetView>' % (self._ns, pane, self._ns) if pane else b""

    def _pane(self) -> bytes:
        row = self._look.header
        if row > FROZEN_MAX:
            return b""
        top = reference(row + 1, 1).encode()
        return b'<%spane ySplit="%d" topLeftCell="%s" activePane="bottomLeft" state="frozen"/>' % (self._ns, row, top)

    def _filter(self) -> bytes:
        area = self._look.filtered
        return b"" if area is None else b'<%sautoFilter ref="%s"/>' % (self._ns, str(area).encode())


def _spanning(tag: bytes, low: int, high: int) -> bytes:
    return markup.with_attributes(tag, {b"min": b"%d" % low, b"max": b"%d" % high})
