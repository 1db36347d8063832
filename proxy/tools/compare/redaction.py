"""Redaction of the requests and samples that a comparison writes. Values are truncated, too: a field of a catalog may
have ten megabytes, or contain lone surrogates.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import msgspec

from proxy.redaction import Redaction
from proxy.tools.compare.judging.findings import Comparison, Difference, Finding
from proxy.traffic.v3_request import redact_request

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
            return self._object(value, depth)
        return value

    def text(self, text: str, longest: int) -> str:
        """Redact a text, replace lone surrogates, and truncate it. In this order: a truncated key would not be
        recognized.
        """
        whole = self._redact(text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return whole if len(whole) <= longest else whole[: longest - 1] + CUT

    def _object(self, value: dict[str, Any], depth: int) -> dict[str, Any]:
        first = list(value.items())[:ENTRIES_MAX]
        kept = {self.text(name, PATH_MAX): self.value(each, depth + 1) for name, each in first}
        return {**kept, CUT: CUT} if len(value) > ENTRIES_MAX else kept


_LARGE = 1 << 63


def redact_comparison(comparison: Comparison, redaction: Redaction) -> Comparison:
    """Redact the request of a comparison, and make its values serializable."""
    return msgspec.structs.replace(
        comparison,
        request=redact_request(comparison.request, redaction),
        findings=tuple(map(_finding, comparison.findings)),
        moved=tuple(map(_finding, comparison.moved)),
        unknown_uids=tuple(map(_finding, comparison.unknown_uids)),
    )


def _finding(finding: Finding) -> Finding:
    found = finding.difference
    made = msgspec.structs.replace(found, baseline=_writable(found.baseline), candidate=_writable(found.candidate))
    return Finding(made, finding.cause)


def _writable(value: Any) -> Any:
    """Convert integers beyond 64 bits, which the JSON encoder rejects, to Decimal."""
    if isinstance(value, dict):
        return {name: _writable(below) for name, below in value.items()}
    if isinstance(value, list):
        return [_writable(each) for each in value]
    return Decimal(value) if type(value) is int and abs(value) >= _LARGE else value
