"""Client data made safe to display: nothing in it steers a terminal, a reader's eye or a parser.

Used by every report, on top of the escapes of its own format.
"""

import re

LINE, BLOCK = 300, 20_000  # characters of one line, and of several, that a report shows of a piece of data

# What is not drawn, or draws other text elsewhere: C0 and C1 controls, zero-width and bidirectional marks, line and
# paragraph separators, tags, halves of surrogate pairs (which UTF-8 has no bytes for), and what XML 1.0 forbids.
_UNSEEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff\U000e0000-\U000e007f"
)
_IN_BLOCK = re.compile(f"[{_UNSEEN}]")
_IN_LINE = re.compile(f"[{_UNSEEN}\t\n]")


def block(text: str, most: int = BLOCK) -> str:
    """The same over several lines: what cannot be seen is written as JSON would, such as `\\u001b`."""
    return _IN_BLOCK.sub(_escape, text[:most]) + _cut(text, most)


def line(text: str, most: int = LINE) -> str:
    """The same in one line."""
    return _IN_LINE.sub(_escape, text[:most]) + _cut(text, most)


def _cut(text: str, most: int) -> str:
    """What is said where a text is longer than `most` characters."""
    return f"… ({len(text) - most:,} characters more)".replace(",", "\u00a0") if len(text) > most else ""


def _escape(found: re.Match[str]) -> str:
    return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(found[0], f"\\u{ord(found[0]):04x}")
