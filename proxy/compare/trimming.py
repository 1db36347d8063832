"""What is kept of the data in a difference: without keys, without what no file can hold, and not too much of it.

Values come from anybody's catalog: a field may have ten megabytes, or half a character. Pure; used by judging.py once
two answers have been compared as they came.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from proxy.compare.differences import Difference

LONGEST_TEXT, LONGEST_PATH, MOST_ENTRIES, DEEPEST = 500, 300, 20, 6
CUT = "…"


class Trimming:
    """Cuts values down to what a reader looks at. `redact` takes the keys out of a text."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact

    def difference(self, difference: Difference) -> Difference:
        """The same difference, fit to be kept."""
        return msgspec.structs.replace(
            difference,
            path=self.text(difference.path, LONGEST_PATH),
            place=self.text(difference.place, LONGEST_PATH),
            old=self.value(difference.old),
            new=self.value(difference.new),
            said=self.text(difference.said, LONGEST_PATH),
        )

    def value(self, value: Any, depth: int = 0) -> Any:
        """A JSON value, its texts, lists and objects cut."""
        if isinstance(value, str):
            return self.text(value, LONGEST_TEXT)
        if isinstance(value, list | dict) and value and depth >= DEEPEST:
            return CUT
        if isinstance(value, list):
            kept = [self.value(each, depth + 1) for each in value[:MOST_ENTRIES]]
            return [*kept, CUT] if len(value) > MOST_ENTRIES else kept
        if isinstance(value, dict):
            return self._object(value, depth)
        return value

    def text(self, text: str, longest: int) -> str:
        """A text without keys and half characters. Keys go first: none is to be cut in two."""
        whole = self._redact(text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return whole if len(whole) <= longest else whole[: longest - 1] + CUT

    def _object(self, value: dict[str, Any], depth: int) -> dict[str, Any]:
        first = list(value.items())[:MOST_ENTRIES]
        kept = {self.text(name, LONGEST_PATH): self.value(each, depth + 1) for name, each in first}
        return {**kept, CUT: CUT} if len(value) > MOST_ENTRIES else kept
