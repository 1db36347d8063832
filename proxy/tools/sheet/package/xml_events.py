"""XML of package parts as a stream of events with byte offsets. Declarations of document types are refused.

expat instead of a tree: a sheet of a million rows does not fit into memory as one, and a tree cannot say which bytes
an element came from.
"""

import codecs
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import NoReturn, Protocol
from xml.parsers import expat

MAIN = ("http://schemas.openxmlformats.org/spreadsheetml/2006/main", "http://purl.oclc.org/ooxml/spreadsheetml/main")
RELATIONSHIPS = (
    "http://schemas.openxmlformats.org/officeDocument/2006/relationships",
    "http://purl.oclc.org/ooxml/officeDocument/relationships",
)
# The deepest parts in practice are extension lists, with about 15 levels.
DEPTH_MAX = 256
# A tag is at most a few hundred bytes. expat scans an unfinished one again with each chunk, so that a tag of many
# megabytes would take minutes.
TAG_MAX = 1 << 20
_ENCODINGS = ("utf-8", "utf8", "us-ascii", "ascii", "utf-16", "utf-16le", "utf-16be")

Fail = Callable[[str], NoReturn]
"""Raises the error that names file and part."""


class EventHandler(Protocol):
    """Gets the events of a part. Names are local names of the spreadsheet namespace, or "" for any other."""

    def start(self, name: str, attributes: dict[str, str], at: int) -> None:
        """Begin an element at byte `at`. Attributes of other namespaces are named "namespace name"."""

    def end(self, name: str, at: int) -> None:
        """End an element; `at` is where its end tag begins, or for an empty-element tag where that begins or ends."""

    def text(self, data: str) -> None:
        """Text, in pieces."""


class LocalNames(dict[str, str]):
    """Local name by expat's "namespace name [prefix]", "" outside of `namespaces`."""

    def __init__(self, namespaces: tuple[str, ...]) -> None:
        super().__init__()
        self._namespaces = namespaces

    def __missing__(self, qualified: str) -> str:
        namespace, _, name = qualified.rpartition(" ")
        self[qualified] = name if namespace in self._namespaces else ""
        return self[qualified]


class XmlParser:
    """Feeds a handler. Depth, size of tags and encoding are checked here, for all parts alike."""

    def __init__(self, handler: EventHandler, fail: Fail, namespaces: tuple[str, ...] = MAIN) -> None:
        self._fail = fail
        self._handler = handler
        self._names = LocalNames(namespaces)
        self._depth = self._fed = 0
        # The encoding is fixed: Utf8Source has converted what was not UTF-8.
        self._expat = expat.ParserCreate("utf-8", namespace_separator=" ")
        self._expat.buffer_text = True
        self._expat.StartElementHandler = self._start
        self._expat.EndElementHandler = self._end
        self._expat.CharacterDataHandler = handler.text
        self._expat.XmlDeclHandler = self._declaration
        # Without a document type there are no entities: neither external ones nor those that grow exponentially.
        self._expat.StartDoctypeDeclHandler = self._doctype

    def _doctype(self, *_: object) -> NoReturn:
        self._fail("has a document type declaration, which no spreadsheet program writes; it is not used")

    def _declaration(self, _: str, encoding: str | None, __: int) -> None:
        if encoding is not None and encoding.lower() not in _ENCODINGS:
            self._fail(
                "is in another encoding than UTF-8 and UTF-16; open it in Excel or LibreOffice and save it again"
            )

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            self._fail(f"is nested deeper than {DEPTH_MAX} elements")
        self._handler.start(self._names[name], attributes, self._expat.CurrentByteIndex)

    def _end(self, name: str) -> None:
        self._depth -= 1
        self._handler.end(self._names[name], self._expat.CurrentByteIndex)

    @property
    def position(self) -> int:
        """Offset of the last event."""
        return self._expat.CurrentByteIndex

    def feed(self, chunk: bytes, *, final: bool = False) -> None:
        """Parse the next bytes."""
        self._fed += len(chunk)
        try:
            self._expat.Parse(chunk, final)
        except expat.ExpatError as error:
            self._fail(f"is not well-formed XML (line {error.lineno}: {expat.ErrorString(error.code)})")
        if not final and self._fed - self._expat.CurrentByteIndex > TAG_MAX + len(chunk):
            self._fail(f"has a tag or comment of more than {TAG_MAX >> 20} MiB")

    def run(self, chunks: Iterable[bytes]) -> None:
        """Parse all chunks."""
        for chunk in chunks:
            self.feed(chunk)
        self.feed(b"", final=True)


def encoding_of(first: bytes) -> str:
    """Return the codec of a part that begins with these bytes: UTF-8 or UTF-16, as the package format demands."""
    if first.startswith((codecs.BOM_UTF16_LE, b"<\0")):
        return "utf-16-le"
    if first.startswith((codecs.BOM_UTF16_BE, b"\0<")):
        return "utf-16-be"
    return "utf-8"


class Utf8Source:
    """Chunks of a part as UTF-8, whatever its encoding is. A byte order mark stays, as UTF-8."""

    def __init__(self, chunks: Iterable[bytes], fail: Fail) -> None:
        self._chunks = chunks
        self._fail = fail
        self._codec = "utf-8"

    def __iter__(self) -> Iterator[bytes]:
        chunks = iter(self._chunks)
        first = b""
        while len(first) < 2 and (chunk := next(chunks, None)) is not None:
            first += chunk
        self._codec = encoding_of(first)
        if self._codec == "utf-8":
            yield from itertools.chain([first], chunks)
            return
        decoder = codecs.getincrementaldecoder(self._codec)()
        try:
            for chunk in itertools.chain([first], chunks):
                yield decoder.decode(chunk).encode()
            decoder.decode(b"", final=True)
        except UnicodeError:
            self._fail("is not valid UTF-16")

    def encoded(self, text: bytes) -> bytes:
        """Return UTF-8 in the encoding of the part, once its first chunk was read."""
        return text if self._codec == "utf-8" else text.decode().encode(self._codec)
