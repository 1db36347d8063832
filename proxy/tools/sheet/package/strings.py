"""Text in XML: shared strings, inline strings with formatted runs, and Excel's escapes. No I/O."""

import re
from array import array
from collections.abc import Iterable

from proxy.tools.sheet.package import xml_events

# A sheet of 1 048 576 rows has about ten distinct texts in each.
STRINGS_MAX = 10_000_000
# LibreOffice stores longer texts than Excel; they are read, but not written.
TEXT_READ_MAX = 1 << 20

_ESCAPE = re.compile("_x([0-9A-Fa-f]{4})_")
# What XML 1.0 cannot hold, and what would be read as an escape. A carriage return would become a line feed.
_TO_ESCAPE = re.compile("[\0-\x08\x0b-\x1f\ud800-\udfff\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4}_)")
_MARKUP = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\n": "&#10;", "\t": "&#9;"})


def unescaped(text: str) -> str:
    """Return text with Excel's escapes (`_x000D_`) replaced by their characters."""
    if "_x" not in text:
        return text
    decoded = _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)
    # Two escapes can be the halves of one character.
    return decoded.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def escaped(text: str) -> str:
    """Return text as XML character data or attribute value, with Excel's escapes for what XML cannot hold."""
    # Nearly all texts are plain; these checks take a tenth of the time.
    if text.isprintable() and not ("&" in text or "<" in text or ">" in text or '"' in text or "_x" in text):
        return text
    return _TO_ESCAPE.sub(lambda match: f"_x{ord(match[0]):04X}_", text).translate(_MARKUP)


class RichText:
    """Joins the runs of a string (`si` or `is`). Phonetic runs, which only help to sort and to read aloud, are left
    out."""

    def __init__(self, fail: xml_events.Fail) -> None:
        self._fail = fail
        self._pieces: list[str] = []
        self._size = self._phonetic = 0
        self._inside = False

    def start(self, name: str) -> None:
        """Begin an element within the string."""
        if name == "rPh":
            self._phonetic += 1
        self._inside = name == "t" and not self._phonetic

    def end(self, name: str) -> None:
        """End an element within the string."""
        if name == "rPh":
            self._phonetic -= 1
        self._inside = False

    def add(self, data: str) -> None:
        """Text at any place of the string; between its elements it is no content."""
        if self._inside:
            self._size += len(data)
            if self._size > TEXT_READ_MAX:
                self._fail(f"has a text of more than {TEXT_READ_MAX} characters")
            self._pieces.append(data)

    def take(self) -> str:
        """Return the text, and be ready for the next string."""
        text = unescaped("".join(self._pieces))
        self._pieces.clear()
        self._size = self._phonetic = 0
        return text


class SharedStrings:
    """The texts that cells refer to by number. Kept as one block of UTF-8: a million objects would take three times
    the memory."""

    def __init__(self, fail: xml_events.Fail) -> None:
        self._fail = fail
        self._text = RichText(fail)
        self._blob = bytearray()
        self._ends = array("Q")
        self._depth = 0

    def load(self, chunks: Iterable[bytes]) -> None:
        """Read the part."""
        xml_events.XmlParser(self, self._fail).run(chunks)

    def start(self, name: str, _: dict[str, str], __: int) -> None:
        """Begin an element."""
        self._depth += 1
        if self._depth > 2:
            self._text.start(name)

    def end(self, name: str, _: int) -> None:
        """End an element."""
        if self._depth > 2:
            self._text.end(name)
        elif self._depth == 2 and name == "si":
            if len(self._ends) >= STRINGS_MAX:
                self._fail(f"has more than {STRINGS_MAX} texts")
            self._blob += self._text.take().encode("utf-8", "replace")
            self._ends.append(len(self._blob))
        self._depth -= 1

    def text(self, data: str) -> None:
        """Text."""
        self._text.add(data)

    def __getitem__(self, index: int) -> str:
        if not 0 <= index < len(self._ends):
            raise IndexError(index)
        return self._blob[self._ends[index - 1] if index else 0 : self._ends[index]].decode()
