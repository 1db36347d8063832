"""Redaction and truncation of the values that a comparison shows: a field of a catalog may have ten megabytes, or
contain lone surrogates."""

from collections.abc import Callable
from typing import Any

import msgspec

from proxy.tools.compare.judging.findings import Difference

TEXT_MAX, PATH_MAX, ENTRIES_MAX, DEPTH_MAX = 500, 300, 20, 6
CUT = "…"


class Trimming:
    """Truncation of values for display. `redact` removes keys from a text."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact

    def difference(self, difference: Difference) -> Difference:
        """Redact and truncate a difference."""
        return msgspec.structs.replace(
            difference,
            path=self.text(difference.path, PATH_MAX),
            place=self.text(difference.place, PATH_MAX),
            baseline=self.value(difference.baseline),
            candidate=self.value(difference.candidate),
            message=self.text(difference.message, PATH_MAX),
        )

    def value(self, value: Any, depth: int = 0) -> Any:
        """Truncate the texts, lists and objects of a JSON value."""
        if isinstance(value, str):
            return self.text(value, TEXT_MAX)
        if isinstance(value, list | dict) and value and depth >= DEPTH_MAX:
            return CUT
        if isinstance(value, list):
            kept = [self.value(each, depth + 1) for each in value[:ENTRIES_MAX]]
            return [*kept, CUT] if len(value) > ENTRIES_MAX else kept
        if isinstance(value, dict):
            first = list(value.items())[:ENTRIES_MAX]
            shown = {self.text(name, PATH_MAX): self.value(each, depth + 1) for name, each in first}
            return {**shown, CUT: CUT} if len(value) > ENTRIES_MAX else shown
        return value

    def text(self, text: str, longest: int) -> str:
        """Redact a text, replace lone surrogates, and truncate it. In this order: a truncated key would not be
        recognized."""
        whole = self._redact(text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return whole if len(whole) <= longest else whole[: longest - 1] + CUT
