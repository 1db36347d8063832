"""Two texts side by side, with what differs marked. Its work is bounded, whatever the texts are."""

from difflib import SequenceMatcher
from typing import NamedTuple

from proxy.compare.reports import layout

WINDOW = 2_000  # characters of a side that are shown
BEFORE = 240  # of them, those ahead of the first difference
LAID_OUT = 50_000  # characters up to which JSON is spread over lines
WORK = 160_000  # pairs of characters up to which differences are looked for one by one
ISLAND = 3  # as many equal characters between two marks are part of them: confetti is hard to read
ALIKE = 0.35  # below this share of equal characters, all is marked


class Piece(NamedTuple):
    """Text that is the same on both sides, or marked."""

    text: str
    marked: bool


class Shown(NamedTuple):
    """A side, and how many characters before and after it are left out."""

    pieces: tuple[Piece, ...]
    before: int = 0
    after: int = 0


class Pair(NamedTuple):
    """Both sides; None is a side that has nothing."""

    old: Shown | None
    new: Shown | None


def pair(old: str | None, new: str | None, window: int = WINDOW) -> Pair:
    """JSON texts made ready to be shown."""
    old, new = _spread(old), _spread(new)
    if old is None or new is None:
        return Pair(_alone(old, window), _alone(new, window))
    start = max(0, shared(old, new) - min(BEFORE, window // 4))
    left, right = old[start : start + window], new[start : start + window]
    pieces = _marked(left, right)
    return Pair(
        Shown(pieces[0], start, len(old) - start - len(left)), Shown(pieces[1], start, len(new) - start - len(right))
    )


def shared(one: str, other: str) -> int:
    """How many characters both begin with."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _spread(text: str | None) -> str | None:
    return layout.spread(text) if text is not None and len(text) <= LAID_OUT else text


def _alone(text: str | None, window: int) -> Shown | None:
    if text is None:
        return None
    return Shown((Piece(text[:window], True),), 0, max(0, len(text) - window))


def _marked(old: str, new: str) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    """What both begin and end with is plain; what is between is compared."""
    head = shared(old, new)
    rest = min(len(old), len(new)) - head
    tail = min(rest, shared(old[::-1], new[::-1]))
    sides = old[head : len(old) - tail], new[head : len(new) - tail]
    between = _compared(*sides)
    ends = Piece(old[:head], False), Piece(old[len(old) - tail :], False)
    left, right = (_joined([ends[0], *pieces, ends[1]]) for pieces in between)
    return left, right


def _compared(old: str, new: str) -> tuple[list[Piece], list[Piece]]:
    whole = [Piece(old, True)], [Piece(new, True)]
    if not old or not new or len(old) * len(new) > WORK:
        return whole
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    if matcher.ratio() < ALIKE:
        return whole
    left, right = [], []
    for what, i1, i2, j1, j2 in matcher.get_opcodes():
        marked = what != "equal" or i2 - i1 <= ISLAND
        left.append(Piece(old[i1:i2], marked))
        right.append(Piece(new[j1:j2], marked))
    return left, right


def _joined(pieces: list[Piece]) -> tuple[Piece, ...]:
    """Neighbours of one sort are one, empty ones are none."""
    made: list[Piece] = []
    for piece in pieces:
        if not piece.text:
            continue
        if made and made[-1].marked == piece.marked:
            made[-1] = Piece(made[-1].text + piece.text, piece.marked)
        else:
            made.append(piece)
    return tuple(made)
