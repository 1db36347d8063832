"""v3's wildcard: `*` matches any text (contract v3-rest.md §1.1, §4).

Matching takes linear time for any pattern, unlike a regular expression: each piece is searched for once, from the left.
"""

from collections.abc import Callable

ANY = "*"


def matcher(pattern: str) -> Callable[[str], bool]:
    """Compile a pattern to a test of whole texts."""
    first, *rest = pattern.split(ANY)
    if not rest:
        return lambda text: text == pattern
    *middle, last = rest
    pieces = [piece for piece in middle if piece]

    def matches(text: str) -> bool:
        if not (text.startswith(first) and text.endswith(last)):
            return False
        at, end = len(first), len(text) - len(last)
        for piece in pieces:
            # The leftmost place leaves the most text for the pieces after it: no other place need be tried.
            at = text.find(piece, at, end)
            if at < 0:
                return False
            at += len(piece)
        return at <= end

    return matches
