"""Text for messages, reports and people."""

from datetime import UTC, datetime


def counted(number: int, singular: str, plural: str | None = None) -> str:
    """Return `1 part`, `2 parts`; `plural` is given where it is not `singular` + s."""
    return f"{number} {singular if number == 1 else plural or singular + 's'}"


def printable(text: str) -> str:
    """Return text without control characters, which a terminal would obey: names of files may hold them."""
    return "".join(letter if letter.isprintable() or letter == "\n" else f"\\x{ord(letter):02x}" for letter in text)


def rfc3339(seconds: float) -> str:
    """Format a time in seconds since 1970 as RFC 3339 in UTC, to whole seconds."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
