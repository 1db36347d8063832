"""Cell formats of a workbook: those that it has, and others made of them for new cells. No I/O."""

import re

from proxy.tools.sheet.package import markup, structure
from proxy.tools.sheet.package.cells import ColumnLook

OWN_FORMATS = 164  # number formats below are built in
# ECMA-376 part 1, 18.8.30: dates and times, also those of East Asian languages.
_BUILT_IN_DATES = frozenset(map(str, (*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59))))
_LINK_COLOR = b"FF0563C1"
_TEXT_ONLY = {b"horizontal": None, b"wrapText": None, b"shrinkToFit": None, b"indent": None}


class CellFormats:
    """Formats of the styles part, whose UTF-8 text is `source`."""

    def __init__(self, source: bytes, listed: list[structure.Element]) -> None:
        self._source = source
        self._root = listed[0]
        self._places = {each.name: each for each in listed if each.depth == 2}
        self._lists: dict[str, list[bytes]] = {"numFmts": [], "fonts": [], "cellXfs": []}
        own: dict[str, str] = {}
        self.number_formats: list[str] = []
        """Of each cell format; "General" where it is built in and shows no date."""
        inside = ""
        for each in listed:
            if each.depth == 2:
                inside = each.name
            elif each.depth == 3 and inside in self._lists:
                self._lists[inside].append(_text(source, each))
                number = each.attributes.get("numFmtId", "0")
                if inside == "numFmts":
                    own[number] = each.attributes.get("formatCode", "General")
                elif inside == "cellXfs":
                    built_in = "yyyy-mm-dd" if number in _BUILT_IN_DATES else "General"
                    self.number_formats.append(own.get(number, built_in))
        self._known = {name: len(texts) for name, texts in self._lists.items()}
        self._made: dict[tuple[int, ColumnLook | None, bool], int] = {}

    def style(self, base: int, look: ColumnLook | None = None, *, bold: bool = False) -> int:
        """Return the index of the cell format `base` with a look, without strike-through and rotation."""
        formats = self._lists["cellXfs"]
        if base >= len(formats):
            return base
        key = base, look, bold
        if key not in self._made:
            self._made[key] = _index(formats, self._format(formats[base], look or ColumnLook(0), bold=bold))
        return self._made[key]

    def edited(self) -> bytes | None:
        """Return the source with the new formats; None where none was made."""
        if all(len(self._lists[name]) == count for name, count in self._known.items()):
            return None
        text = markup.SourceText(self._source)
        ns = markup.prefix(text.tag(self._root.at))
        if "numFmts" not in self._places and self._lists["numFmts"]:
            new = b"".join(self._lists["numFmts"])
            first = min(each.at for each in self._places.values())
            count = len(self._lists["numFmts"])
            text.replace(first, first, b'<%snumFmts count="%d">%s</%snumFmts>' % (ns, count, new, ns))
        for name, texts in self._lists.items():
            place = self._places.get(name)
            if place is None or len(texts) == self._known[name]:
                continue
            tag = markup.with_attributes(text.tag(place.at), {b"count": b"%d" % len(texts)})
            text.append(place.at, place.end_at, b"".join(texts[self._known[name] :]), tag)
        return text.finished()

    def _format(self, base: bytes, look: ColumnLook, *, bold: bool) -> bytes:
        tag = markup.start_tag(base, 0)
        changes: dict[bytes, bytes | None] = {}
        font = self._font(int(markup.attribute(tag, b"fontId") or 0), link=look.link, bold=bold)
        if font is not None:
            changes |= {b"fontId": b"%d" % font, b"applyFont": b"1"}
        if look.number_format:
            changes |= {b"numFmtId": b"%d" % self._number_format(look.number_format), b"applyNumberFormat": b"1"}
        dropped: dict[bytes, bytes | None] = {b"textRotation": None}
        if look.number_format or look.link:
            dropped |= _TEXT_ONLY
        content = re.sub(
            rb"<(?:[^\s/>]+:)?alignment\b[^>]*>",
            lambda match: markup.with_attributes(match[0], dropped),
            base[len(tag) :],
        )
        return (markup.with_attributes(tag, changes) if changes else tag) + content

    def _font(self, index: int, *, link: bool, bold: bool) -> int | None:
        fonts = self._lists["fonts"]
        if index >= len(fonts):
            return None
        tag = markup.start_tag(fonts[index], 0)
        ns = markup.prefix(tag)
        dropped = b"strike" + (b"|u|color" if link else b"") + (b"|b" if bold else b"")
        font = re.sub(rb"<(?:[^\s/>]+:)?(?:%s)(?:\s[^>]*)?/>" % dropped, b"", fonts[index])
        added = (b"<%sb/>" % ns if bold else b"") + (
            b'<%su/><%scolor rgb="%s"/>' % (ns, ns, _LINK_COLOR) if link else b""
        )
        if added:
            name = markup.local_name(tag)
            rest = font[len(tag) :] if not markup.is_empty(tag) else b"</%s%s>" % (ns, name)
            font = markup.opened(tag) + added + rest
        return None if font == fonts[index] else _index(fonts, font)

    def _number_format(self, code: str) -> int:
        formats = self._lists["numFmts"]
        wanted = code.replace('"', "&quot;").encode()
        used = {
            markup.attribute(each, b"formatCode"): int(markup.attribute(each, b"numFmtId") or 0) for each in formats
        }
        if wanted not in used:
            used[wanted] = max(OWN_FORMATS - 1, *used.values(), 0) + 1
            ns = markup.prefix(markup.start_tag(self._source, self._root.at))
            formats.append(b'<%snumFmt numFmtId="%d" formatCode="%s"/>' % (ns, used[wanted], wanted))
        return used[wanted]


def _index(texts: list[bytes], text: bytes) -> int:
    if text not in texts:
        texts.append(text)
    return texts.index(text)


def _text(source: bytes, element: structure.Element) -> bytes:
    tag = markup.start_tag(source, element.at)
    return tag if markup.is_empty(tag) else source[element.at : source.index(b">", element.end_at) + 1]
