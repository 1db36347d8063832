"""A comparison as it may be kept: with no key in its call, and with numbers that any JSON writer takes.

Every comparison passes through here on its way out of a run, so that what is written for resuming, added up and shown
in a report is the same. What findings hold of anybody's data has been cut and cleaned when it was judged.
"""

from decimal import Decimal
from typing import Any

import msgspec

from proxy.compare.calls import Call
from proxy.compare.comparison import Comparison
from proxy.compare.differences import Finding
from proxy.compare.redaction import Redaction

_LARGE = 1 << 63


def lasting(comparison: Comparison, redaction: Redaction) -> Comparison:
    """The comparison, fit to be kept."""
    return msgspec.structs.replace(
        comparison,
        call=call(comparison.call, redaction),
        findings=tuple(map(_finding, comparison.findings)),
        moved=tuple(map(_finding, comparison.moved)),
        unknown_uids=tuple(map(_finding, comparison.unknown_uids)),
    )


def call(asked: Call, redaction: Redaction) -> Call:
    """A call as it may be shown: somebody may have put a key into a parameter of another name."""
    query = tuple((redaction.text(name), redaction.text(value)) for name, value in asked.query)
    return msgspec.structs.replace(asked, path=redaction.text(asked.path), query=query)


def _finding(finding: Finding) -> Finding:
    found = finding.difference
    made = msgspec.structs.replace(found, old=_writable(found.old), new=_writable(found.new))
    return Finding(made, finding.cause)


def _writable(value: Any) -> Any:
    """Writers take no integer beyond 64 bits, but any Decimal."""
    if isinstance(value, dict):
        return {name: _writable(below) for name, below in value.items()}
    if isinstance(value, list):
        return [_writable(each) for each in value]
    return Decimal(value) if type(value) is int and abs(value) >= _LARGE else value
