"""v3's wildcard: `*` stands for anything (contract v3-rest.md §1.1, §4). Used wherever texts are compared here.

A pattern takes time in proportion to the text, whatever a client writes: no piece is ever looked for twice.
"""

import re
from collections.abc import Callable

ANY = "*"


def matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a text is wholly what the pattern says."""
    first, *rest = map(re.escape, pattern.split(ANY))
    *middle, last = rest or [""]
    found = "".join(f"(?>.*?{piece})" for piece in middle if piece)
    like = re.compile(f"{first}{found}.*{last}" if rest else first, re.DOTALL)
    return lambda text: like.fullmatch(text) is not None
