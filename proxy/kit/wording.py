"""Text for messages."""


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return `1 part`, `2 parts`; `many` is the plural where it is not `one` + s."""
    return f"{number} {one if number == 1 else many or one + 's'}"
