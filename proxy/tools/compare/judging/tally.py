"""Tally of comparisons: counters of bounded size that can be stored and added up.

Addition is commutative and associative, so workers count independently. summary.py computes a result from it.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec

from proxy.tools.compare.judging import counting
from proxy.tools.compare.judging.counting import (
    FailureCount,
    GroupCombination,
    GroupCount,
    KeptSample,
    LatencyCount,
    RowCount,
    added,
    digest,
    smallest,
)
from proxy.tools.compare.judging.findings import ABSENT, Comparison, Finding
from proxy.traffic.clients import SideName

ROWS, GROUPS, GROUPS_OF_A_SORT, FAILURES = 500, 1000, 100, 100
LONGEST_TARGET, LONGEST_VALUE = 8000, 2000  # characters; v3 rejected longer request targets
SAMPLE_SECONDS = 23 * 3600.0  # dropped once an hour, they end within the day that the vendor's terms allow
OTHERS = "others"  # name of the clients beyond ROWS, counted as one

_json = msgspec.json.Encoder(decimal_format="number")


class Tally(msgspec.Struct):
    """Counters by digest.

    `rest` counts differences of groups beyond the bounds. `first` and `last` are when the first and the last request
    were sent, in seconds since 1970.
    """

    rows: dict[str, RowCount] = {}
    groups: dict[str, GroupCount] = {}
    rest: int = 0
    ignored: dict[str, int] = {}
    failures: dict[str, FailureCount] = {}
    times: dict[str, LatencyCount] = {}
    spent: int = 0
    first: float | None = None
    last: float | None = None

    def add(self, comparison: Comparison) -> None:
        """Count one comparison."""
        self.merge(_tally_of(comparison))

    def merge(self, other: "Tally") -> None:
        """Add the counts of another tally."""
        self.rows = _rows(added(self.rows, other.rows, RowCount.__add__))
        self._take_groups(added(self.groups, other.groups, GroupCount.__add__))
        self.rest += other.rest
        self.ignored = _sum(self.ignored, other.ignored)
        self.failures = _failures(added(self.failures, other.failures, FailureCount.__add__))
        self.times = added(self.times, other.times, LatencyCount.__add__)
        self.spent += other.spent
        self.first = min((at for at in (self.first, other.first) if at is not None), default=None)
        self.last = max((at for at in (self.last, other.last) if at is not None), default=None)

    def drop_ended(self, now: float) -> None:
        """Drop samples that are nearly a day old, which hold data of the Nexar API; their counts stay."""
        before = now - SAMPLE_SECONDS
        for key, group in self.groups.items():
            if any(sample.at < before for sample in group.samples.values()):
                samples = {name: sample for name, sample in group.samples.items() if sample.at >= before}
                self.groups[key] = msgspec.structs.replace(group, samples=samples)

    def _take_groups(self, groups: dict[str, GroupCount]) -> None:
        """Replace the groups, bounded per sort, so that many groups of one sort do not displace the others, and in
        total.
        """
        if groups.keys() != self.groups.keys():
            bounded = _groups(groups)
            self.rest += sum(groups[key].differences for key in groups.keys() - bounded.keys())
            groups = bounded
        self.groups = groups


def _groups(groups: dict[str, GroupCount]) -> dict[str, GroupCount]:
    sorts: Counter[tuple[str, str, str]] = Counter()
    bounded: dict[str, GroupCount] = {}
    for key in sorted(groups):
        group = groups[key]
        sorts[group.endpoint, group.kind, group.cause] += 1
        if sorts[group.endpoint, group.kind, group.cause] <= GROUPS_OF_A_SORT:
            bounded[key] = group
    return smallest(bounded, GROUPS)


def _rows(rows: dict[str, RowCount]) -> dict[str, RowCount]:
    """Bound the rows: clients beyond ROWS are counted as one, without group combinations."""
    named = {key: row for key, row in rows.items() if not key.startswith(OTHERS)}
    bounded = smallest(named, ROWS)
    combined = {**{key: row for key, row in rows.items() if key not in named}, **bounded}
    for key in sorted(named.keys() - bounded.keys()):
        row = msgspec.structs.replace(named[key], client=OTHERS, patterns={})
        combined = added(combined, {f"{OTHERS} {row.endpoint}": row}, RowCount.__add__)
    return combined


def _failures(failures: dict[str, FailureCount]) -> dict[str, FailureCount]:
    named = {key: each for key, each in failures.items() if key != OTHERS}
    bounded = smallest(named, FAILURES)
    combined = {**({OTHERS: failures[OTHERS]} if OTHERS in failures else {}), **bounded}
    for key in sorted(named.keys() - bounded.keys()):
        other = msgspec.structs.replace(named[key], reason="other reasons")
        combined = added(combined, {OTHERS: other}, FailureCount.__add__)
    return combined


def _sum(first: dict[str, int], second: dict[str, int]) -> dict[str, int]:
    return added(first, second, int.__add__)


def _tally_of(comparison: Comparison) -> Tally:
    """Make the tally of a single comparison."""
    request, endpoint = comparison.request, comparison.request.endpoint
    if comparison.failure is not None:
        row = RowCount(request.client, endpoint, not_compared=1)
        failure = FailureCount(comparison.failure, 1, comparison.at, request.origin)
        failures = {digest(failure.reason): failure}
        rows = {_row_key(row): row}
        return Tally(rows, failures=failures, spent=comparison.parts, first=comparison.at, last=comparison.at)
    groups = grouped(comparison, comparison.findings)
    row = _row(comparison, tuple(sorted(groups)))
    tally = Tally(
        rows={_row_key(row): row},
        ignored=dict(comparison.ignored),
        times=_times(endpoint, comparison),
        spent=comparison.parts,
        first=comparison.at,
        last=comparison.at,
    )
    tally._take_groups({**groups, **grouped(comparison, (*comparison.moved, *comparison.unknown_uids))})
    return tally


def _row_key(row: RowCount) -> str:
    return digest(row.client, row.endpoint)


def _row(comparison: Comparison, groups: tuple[str, ...]) -> RowCount:
    request, price = comparison.request, comparison.price
    fits = 0 < len(groups) <= counting.IN_PATTERN
    return RowCount(
        request.client,
        request.endpoint,
        compared=1,
        occurrences=request.times,
        differing=1 if groups else 0,
        succeeded=1 if comparison.succeeded else 0,
        paid=(price or 0) * request.times,
        priced=0 if price is None else request.times,
        patterns={digest(*groups): GroupCombination(groups, 1)} if fits else {},
    )


def grouped(comparison: Comparison, findings: Iterable[Finding]) -> dict[str, GroupCount]:
    """Group the findings of one request by their digest, with a sample of each group."""
    counts: Counter[str] = Counter()
    first: dict[str, Finding] = {}
    for finding in findings:
        each = finding.difference
        key = digest(comparison.request.endpoint, each.path, each.kind, finding.cause)
        counts[key] += 1
        first.setdefault(key, finding)
    shown = bool(first) and len(comparison.request.target()) <= LONGEST_TARGET
    return {key: _group(comparison, finding, key, counts[key], shown) for key, finding in first.items()}


def _group(comparison: Comparison, finding: Finding, key: str, differences: int, shown: bool) -> GroupCount:
    difference, request, at = finding.difference, comparison.request, comparison.at
    sample = KeptSample(
        request, at, difference.place, _text(difference.baseline), _text(difference.candidate), difference.message
    )
    return GroupCount(
        request.endpoint,
        difference.path,
        difference.kind,
        finding.cause,
        requests=1,
        differences=differences,
        first_seen=at,
        last_seen=at,
        clients={digest(request.client): request.client},
        samples={digest(key, request.id): sample} if shown else {},
    )


def _text(value: Any) -> str | None:
    """Render a value as JSON text, truncated to LONGEST_VALUE."""
    if value is ABSENT:
        return None
    text = _json.encode(value).decode()
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 1] + "…"


def _times(endpoint: str, comparison: Comparison) -> dict[str, LatencyCount]:
    sides: tuple[tuple[SideName, float | None], ...]
    sides = (("baseline", comparison.baseline_seconds), ("candidate", comparison.candidate_seconds))
    return {f"{endpoint} {side}": _time(endpoint, side, seconds) for side, seconds in sides if seconds is not None}


def _time(endpoint: str, side: SideName, seconds: float) -> LatencyCount:
    buckets = [0] * (len(counting.BOUNDS) + 1)
    buckets[bisect_left(counting.BOUNDS, seconds)] = 1
    return LatencyCount(endpoint, side, tuple(buckets))
