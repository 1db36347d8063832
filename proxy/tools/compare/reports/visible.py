"""Client data made safe to display: it cannot control a terminal, mislead a reader or break a parser.

Used by every report, in addition to the escapes of its own format.
"""

import re

LINE, BLOCK = 300, 20_000  # maximum characters of a single-line and of a multi-line value

# Characters that are invisible or reorder text: C0 and C1 controls, zero-width and bidirectional marks, line and
# paragraph separators, tags, lone surrogates (which UTF-8 cannot encode), and characters that XML 1.0 forbids.
_UNSEEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff\U000e0000-\U000e007f"
)
_IN_BLOCK = re.compile(f"[{_UNSEEN}]")
_IN_LINE = re.compile(f"[{_UNSEEN}\t\n]")


def block(text: str, most: int = BLOCK) -> str:
    """Escape a multi-line text: invisible characters are written as in JSON, such as `\\u001b`."""
    return _IN_BLOCK.sub(_escape, text[:most]) + _cut(text, most)


def line(text: str, most: int = LINE) -> str:
    """Escape a text for one line: like `block`, and tabs and line breaks are escaped, too."""
    return _IN_LINE.sub(_escape, text[:most]) + _cut(text, most)


def _cut(text: str, most: int) -> str:
    """Return the remark that replaces the text beyond `most` characters."""
    return f"… ({len(text) - most:,} characters more)".replace(",", "\u00a0") if len(text) > most else ""


def _escape(match: re.Match[str]) -> str:
    return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(match[0], f"\\u{ord(match[0]):04x}")
