"""How numbers of things are written in messages for people."""


def counted(number: int, one: str, many: str | None = None) -> str:
    """Write `1 part`, `2 parts`; `many` where the plural takes more than an s."""
    return f"{number} {one if number == 1 else many or one + 's'}"
