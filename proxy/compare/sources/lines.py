"""Lines of text, however a file is encoded and however long one is.

Bytes that are no UTF-8 are kept as surrogates. A crash or a rotation can leave zeros in a log: they are blank.
"""

import codecs
import io
from collections.abc import Iterator

LOG_LINE = 1 << 18  # characters; servers refuse request lines long before
JSON_LINE = 1 << 26  # lines of recordings hold whole answers

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def of(stream: io.BufferedReader, longest: int = LOG_LINE) -> Iterator[tuple[int, str | None]]:
    """Number and text of each line that is not blank, without its end; None for one that is too long to be read."""
    encoding, mistakes = ("utf-16", "replace") if is_utf16(stream.peek(2)) else ("utf-8", "surrogateescape")
    text = io.TextIOWrapper(stream, encoding, mistakes, newline="\n")
    try:
        number = 0
        while line := text.readline(longest + 1):
            number += 1
            if len(line) > longest and not line.endswith("\n"):
                _pass_over(text, longest)
                yield number, None
            elif kept := line.strip("\r\n\t \ufeff\0"):
                yield number, kept
    finally:
        text.detach()


def is_utf16(start: bytes) -> bool:
    """What Windows writes where it is not told otherwise."""
    return start.startswith(_UTF16)


def _pass_over(text: io.TextIOWrapper, longest: int) -> None:
    """The rest of a line."""
    while (more := text.readline(longest)) and not more.endswith("\n"):
        pass
