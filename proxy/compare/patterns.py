"""What paths a rule is for: those of differences, step by step. `results[*].items[*].mpn` is five of them.

A path in parentheses, such as `(status)`, is of the whole reply. Only a rule that names it so is one for it.
"""

import re
from functools import cached_property

import msgspec

ELEMENT = "[*]"  # one of a list
STATUS, BODY, LATENCY = "(status)", "(body)", "(latency)"

_STEP = re.compile(r'\[\*\]|\["(?:[^"\\]|\\.)*"[^\]]*\]|[^.\[\]]+')


def steps(path: str) -> tuple[str, ...]:
    """The keys and `[*]` of a path. A key that is no plain name is quoted: `fields["specs.resistance.value"]`."""
    return tuple(_STEP.findall(path))


def is_whole(path: str) -> bool:
    """Whether a path is of the whole reply rather than of its JSON."""
    return path.startswith("(")


class Pattern(msgspec.Struct, frozen=True, dict=True):
    """What a rule is for: a path in which `*` is any one key and `**` any number of steps, none among them."""

    text: str

    @cached_property
    def _steps(self) -> tuple[str, ...]:
        return steps(self.text)

    def matches(self, path: str) -> bool:
        """Whether the pattern is of the whole path."""
        if is_whole(path) or is_whole(self.text):
            return path == self.text
        return _glob(self._steps, steps(path))


def _glob(pattern: tuple[str, ...], path: tuple[str, ...]) -> bool:
    """In time of pattern × path at most: only the last `**` is ever tried again."""
    at, here, again, from_here = 0, 0, -1, 0
    while here < len(path):
        if at < len(pattern) and pattern[at] == "**":
            again, from_here = at, here
            at += 1
        elif at < len(pattern) and _fits(pattern[at], path[here]):
            at, here = at + 1, here + 1
        elif again >= 0:
            from_here += 1
            at, here = again + 1, from_here
        else:
            return False
    return all(step == "**" for step in pattern[at:])


def _fits(wanted: str, step: str) -> bool:
    return wanted == step or (wanted == "*" and step != ELEMENT)
