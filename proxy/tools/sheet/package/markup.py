"""XML source text that is written, or changed in place: start tags, cells. No I/O."""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import cast

from proxy.tools.sheet.package import strings
from proxy.tools.sheet.package.cells import TEXT_MAX, CellError, CellValue

_QUOTED = rb"""(?:"[^"]*"|'[^']*')"""
_TAG = re.compile(rb"<[^\s/>]+(?:\s+[^\s=/>]+\s*=\s*" + _QUOTED + rb")*\s*/?>")
_ATTRIBUTE = re.compile(rb"(\s+)([^\s=/>]+)\s*=\s*(" + _QUOTED + rb")")
LINK_MAX = 255  # characters of a text in a formula; Excel's limit
_NAME = re.compile(rb"</?(?:([^\s/>:]+):)?([^\s/>]+)")


def start_tag(source: bytes | bytearray, at: int) -> bytes:
    """Return the start tag that begins at `at`, of source that a parser has accepted."""
    return cast(re.Match[bytes], _TAG.match(source, at))[0]


def is_empty(tag: bytes) -> bool:
    """Say whether a start tag is an empty-element tag."""
    return tag.endswith(b"/>")


def opened(tag: bytes) -> bytes:
    """Return an empty-element tag as a start tag."""
    return tag[:-2].rstrip() + b">" if is_empty(tag) else tag


def prefix(tag: bytes) -> bytes:
    """Return the namespace prefix of a tag with its colon; empty where the tag has none."""
    match = _NAME.match(tag)
    return match[1] + b":" if match is not None and match[1] else b""


def local_name(tag: bytes) -> bytes:
    """Return the name of a tag without its prefix."""
    return cast(re.Match[bytes], _NAME.match(tag))[2]


def with_spans(tag: bytes, first: int, last: int) -> bytes:
    """Return the tag of a row with these columns in `spans`, where it has that optional hint."""
    low, _, high = (attribute(tag, b"spans") or b"").partition(b":")
    if not low.isdigit() or not high.isdigit():
        return tag
    spans = b"%d:%d" % (min(int(low), first), max(int(high), last))
    return tag if spans == low + b":" + high else with_attributes(tag, {b"spans": spans})


def with_attributes(tag: bytes, values: Mapping[bytes, bytes | None]) -> bytes:
    """Return a start tag with attributes replaced in place, removed (None) or added at the end."""
    missing = dict(values)

    def replaced(match: re.Match[bytes]) -> bytes:
        if match[2] not in values:
            return match[0]
        value = missing.pop(match[2], None)
        return b"" if value is None else b'%s%s="%s"' % (match[1], match[2], value)

    tag = _ATTRIBUTE.sub(replaced, tag)
    added = b"".join(b' %s="%s"' % item for item in missing.items() if item[1] is not None)
    end = -2 if is_empty(tag) else -1
    return tag[:end].rstrip() + added + tag[end:] if added else tag


def attribute(tag: bytes, name: bytes) -> bytes | None:
    """Return the raw value of an attribute."""
    return next((match[3][1:-1] for match in _ATTRIBUTE.finditer(tag) if match[2] == name), None)


def cell_content(value: CellValue, *, calculated: bool, ns: bytes, link: bool = False) -> tuple[bytes | None, bytes]:
    """Return the type attribute of a cell and the elements of its value; `ns` is the prefix of their names.

    Texts stand in the cell itself: shared strings are another part, which would change. A `link` is a formula: the
    addresses of others are a part, too. Raises ValueError.
    """
    if link and isinstance(value, str) and len(value) <= LINK_MAX and value.startswith(("https://", "http://")):
        call = strings.escaped('HYPERLINK("' + value.replace('"', '""') + '")').encode()
        kind, text = _text(value, calculated=True, ns=ns)
        return kind, b"<%sf>%s</%sf>%s" % (ns, call, ns, text)
    match value:
        case None:
            return None, b""
        case bool():
            return b"b", b"<%sv>%d</%sv>" % (ns, value, ns)
        case Decimal():
            return None, b"<%sv>%s</%sv>" % (ns, _number(value), ns)
        case CellError(code):
            return b"e", b"<%sv>%s</%sv>" % (ns, strings.escaped(code).encode(), ns)
        case str():
            return _text(value, calculated=calculated, ns=ns)


def _text(value: str, *, calculated: bool, ns: bytes) -> tuple[bytes, bytes]:
    # Excel counts UTF-16 units, of which a character has two at most.
    if 2 * len(value) > TEXT_MAX and len(value.encode("utf-16-le", "surrogatepass")) > 2 * TEXT_MAX:
        raise ValueError(f"has a text of more than {TEXT_MAX} characters, which is Excel's limit")
    content = strings.escaped(value).encode()
    if calculated:  # the text result of a formula; an inline string would be a cell without formula
        return b"str", b"<%sv>%s</%sv>" % (ns, content, ns)
    space = b' xml:space="preserve"' if value != value.strip() else b""
    return b"inlineStr", b"<%sis><%st%s>%s</%st></%sis>" % (ns, ns, space, content, ns, ns)


def _number(value: Decimal) -> bytes:
    if not value.is_finite() or value.adjusted() > 307:
        raise ValueError(f"has a number that Excel cannot store ({value:.3g})")
    return str(value).encode()


class SourceText:
    """Source text that is copied, but for some spans that are replaced. Offsets are those of the whole text."""

    def __init__(self, source: bytes = b"") -> None:
        self._bytes, self._at = bytearray(source), 0  # what is not copied yet, and where it begins
        self._output: list[bytes] = []

    def add(self, chunk: bytes) -> None:
        """Append source text."""
        self._bytes += chunk

    @property
    def held(self) -> int:
        """Number of bytes that are not copied yet."""
        return len(self._bytes)

    def slice(self, start: int, end: int) -> bytes:
        """Return source text that is not copied yet."""
        return bytes(self._bytes[start - self._at : end - self._at])

    def tag(self, at: int) -> bytes:
        """Return the start tag at this offset."""
        return start_tag(self._bytes, at - self._at)

    def end_tag(self, at: int) -> int:
        """Return the offset behind the end tag that begins at `at`."""
        return self._bytes.index(b">", at - self._at) + self._at + 1

    def copy(self, end: int) -> None:
        """Copy the text up to this offset."""
        if end > self._at:
            self.replace(end, end, b"")

    def replace(self, start: int, end: int, text: bytes) -> None:
        """Copy the text up to `start`, and write `text` in place of that from there to `end`."""
        self._output += (bytes(self._bytes[: start - self._at]), text)
        del self._bytes[: end - self._at]
        self._at = end

    def append(self, at: int, end_at: int, added: bytes, tag: bytes | None = None) -> None:
        """Add elements at the end of the element from `at`, whose end tag is at `end_at`; `tag` replaces its own."""
        own = self.tag(at)
        if is_empty(own):
            added = opened(tag or own) + added + b"</%s%s>" % (prefix(own), local_name(own))
            self.replace(at, at + len(own), added)
        else:
            self.replace(at, at + len(own), tag or own)
            self.replace(end_at, end_at, added)

    def finished(self) -> bytes:
        """Copy the rest of the text, and return what was written since `taken`."""
        self.copy(self._at + len(self._bytes))
        return self.taken()

    def taken(self) -> bytes:
        """Return what was written since the last call."""
        output = b"".join(self._output)
        self._output.clear()
        return output
