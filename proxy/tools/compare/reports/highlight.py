"""Two JSON texts side by side, broken into lines, with differences highlighted. Bounded work for any text."""

import itertools
import os.path
import re
from difflib import SequenceMatcher
from typing import NamedTuple

WIDTH = 72  # a shorter value stays on one line
_MARK = re.compile(r'"(?:[^"\\]|\\.)*"?|[{}\[\],:]|[^\s"{}\[\],:]+')
_OPENS, _CLOSES = "{[", "}]"


def pretty_print(text: str) -> str:
    """Format JSON with one member per line where it is too long for one line, and not too long for that."""
    if not WIDTH < len(text) <= LAID_OUT:
        return text
    marks = _MARK.findall(text)
    return "".join(_lay_out(marks, _ends(marks)))


def _ends(marks: list[str]) -> dict[int, int]:
    """Map the index of each opening bracket to that of its closing one, for values that fit into one line."""
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


def _lay_out(marks: list[str], short: dict[int, int]) -> list[str]:
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


WINDOW = 2_000  # characters shown per side
BEFORE = 240  # of these, characters ahead of the first difference
LAID_OUT = 50_000  # maximum length of JSON that is broken into lines
WORK = 160_000  # maximum number of character pairs for an exact diff
ISLAND = 3  # an equal run up to this length between two differences is highlighted with them, for readability
ALIKE = 0.35  # with less in common than this share, everything is highlighted


class Piece(NamedTuple):
    """Text that is equal on both sides, or highlighted."""

    text: str
    marked: bool


class HighlightedText(NamedTuple):
    """Text of one side, with the numbers of characters omitted before and after it."""

    pieces: tuple[Piece, ...]
    before: int = 0
    after: int = 0


class HighlightedPair(NamedTuple):
    """Texts of both sides; None for a side without a value."""

    baseline: HighlightedText | None
    candidate: HighlightedText | None


def highlight_pair(baseline: str | None, candidate: str | None, window: int = WINDOW) -> HighlightedPair:
    """Prepare two JSON texts for display; None is a side without a value."""
    if baseline is None or candidate is None:
        return HighlightedPair(_one_sided(baseline, window), _one_sided(candidate, window))
    baseline, candidate = pretty_print(baseline), pretty_print(candidate)
    start = max(0, common_prefix(baseline, candidate) - min(BEFORE, window // 4))
    left, right = baseline[start : start + window], candidate[start : start + window]
    pieces = _marked(left, right)
    return HighlightedPair(
        HighlightedText(pieces[0], start, len(baseline) - start - len(left)),
        HighlightedText(pieces[1], start, len(candidate) - start - len(right)),
    )


def common_prefix(one: str, other: str) -> int:
    """Return the length of the common prefix."""
    return len(os.path.commonprefix((one, other)))  # noqa: RUF071 - of texts, by characters


def _one_sided(text: str | None, window: int) -> HighlightedText | None:
    if text is None:
        return None
    text = pretty_print(text)
    return HighlightedText((Piece(text[:window], True),), 0, max(0, len(text) - window))


def _marked(baseline: str, candidate: str) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    """Highlight the differences between the common prefix and the common suffix."""
    head = common_prefix(baseline, candidate)
    rest = min(len(baseline), len(candidate)) - head
    tail = min(rest, common_prefix(baseline[::-1], candidate[::-1]))
    sides = baseline[head : len(baseline) - tail], candidate[head : len(candidate) - tail]
    between = _compared(*sides)
    ends = Piece(baseline[:head], False), Piece(baseline[len(baseline) - tail :], False)
    left, right = (_joined([ends[0], *pieces, ends[1]]) for pieces in between)
    return left, right


def _compared(baseline: str, candidate: str) -> tuple[list[Piece], list[Piece]]:
    whole = [Piece(baseline, True)], [Piece(candidate, True)]
    if not baseline or not candidate or len(baseline) * len(candidate) > WORK:
        return whole
    matcher = SequenceMatcher(None, baseline, candidate, autojunk=False)
    if matcher.ratio() < ALIKE:
        return whole
    left, right = [], []
    for what, i1, i2, j1, j2 in matcher.get_opcodes():
        marked = what != "equal" or i2 - i1 <= ISLAND
        left.append(Piece(baseline[i1:i2], marked))
        right.append(Piece(candidate[j1:j2], marked))
    return left, right


def _joined(pieces: list[Piece]) -> tuple[Piece, ...]:
    """Merge adjacent pieces of one kind, and remove empty ones."""
    runs = itertools.groupby((piece for piece in pieces if piece.text), lambda piece: piece.marked)
    return tuple(Piece("".join(piece.text for piece in run), marked) for marked, run in runs)
