"""Headers as they go over the wire (RFC 9112 §5)."""

from collections.abc import Mapping


def of(headers: Mapping[str, str]) -> str:
    """A line for each, with its end. Raises ValueError for a value that would begin another."""
    text = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    if text.count("\n") != len(headers) or text.count("\r") != len(headers) or "\0" in text:
        raise ValueError("a header holds a line break")
    return text
