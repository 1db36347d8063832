"""JSON text over several lines, for reading. Works on the text alone: no number loses a digit, and cut JSON will do."""

import re

WIDTH = 72  # what is no longer stays in one line
_MARK = re.compile(r'"(?:[^"\\]|\\.)*"?|[{}\[\],:]|[^\s"{}\[\],:]+')
_OPENS, _CLOSES = "{[", "}]"


def spread(text: str) -> str:
    """The same JSON, a member a line, where it is too long for one line."""
    if len(text) <= WIDTH:
        return text
    marks = _MARK.findall(text)
    return "".join(_written(marks, _ends(marks)))


def _ends(marks: list[str]) -> dict[int, int]:
    """Opening mark → its closing mark, where both stand in one line at most."""
    short: dict[int, int] = {}
    open_: list[tuple[int, int]] = []
    length = 0
    for at, mark in enumerate(marks):
        if mark in _OPENS:
            open_.append((at, length))
        elif mark in _CLOSES and open_:
            start, before = open_.pop()
            if length - before < WIDTH:
                short[start] = at
        length += len(mark) + (mark in ",:")
    return short


def _written(marks: list[str], short: dict[int, int]) -> list[str]:
    made: list[str] = []
    depth, inline_to = 0, -1
    for at, mark in enumerate(marks):
        if at > inline_to and at in short:
            inline_to = short[at]
        inline = at <= inline_to
        if mark in _CLOSES and not inline:
            depth -= 1
            made.append(_newline(depth))
        made.append(mark)
        if mark in _OPENS and not inline:
            depth += 1
        if mark == ":" or (mark == "," and inline):
            made.append(" ")
        elif mark in _OPENS + "," and not inline:
            made.append(_newline(depth))
    return made


def _newline(depth: int) -> str:
    return "\n" + "  " * max(depth, 0)
