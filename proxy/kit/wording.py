"""Text for messages."""


def counted(number: int, singular: str, plural: str | None = None) -> str:
    """Return `1 part`, `2 parts`; `plural` is given where it is not `singular` + s."""
    return f"{number} {singular if number == 1 else plural or singular + 's'}"


def printable(text: str) -> str:
    """Return text without control characters, which a terminal would obey: names of files may hold them."""
    return "".join(letter if letter.isprintable() or letter == "\n" else f"\\x{ord(letter):02x}" for letter in text)
