"""Text for messages and people."""


def counted(number: int, singular: str, plural: str | None = None) -> str:
    """Return `1 part`, `2 parts`; `plural` is given where it is not `singular` + s."""
    return f"{number} {singular if number == 1 else plural or singular + 's'}"
