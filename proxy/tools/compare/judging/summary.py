"""Summary: computes the result that reports show from a tally: shares with intervals, groups with explanations, a
verdict.

Pure. The caller passes the facts about the run: addresses of the sides, contents of the source, how the run ended.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from proxy.kit.wording import counted
from proxy.tools.compare.judging import counting, verdict
from proxy.tools.compare.judging.causes import Causes
from proxy.tools.compare.judging.counting import ClientEndpoint, GroupCount, KeptSample, RowCount, SourceCount
from proxy.tools.compare.judging.rules import IgnoredCounts, RuleSet
from proxy.tools.compare.judging.settings import ComparisonSettings
from proxy.tools.compare.judging.tally import Tally
from proxy.tools.compare.judging.thresholds import Threshold
from proxy.tools.compare.results import (
    ComparisonCost,
    ComparisonResult,
    DifferenceGroup,
    DifferenceSample,
    EndpointResult,
    FailedRequests,
    LatencyDistribution,
    SideInfo,
)
from proxy.traffic.clients import UnnamedKey

DAY = 86_400.0
UNCOUNTED = frozenset(("moved", "uid not known"))  # causes of differences that are reported and do not count


class RunInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a run that its tally does not hold.

    `baseline` and `candidate` locate the sides: an address up to `/v3`, used for curl lines, or a file;
    `candidate_url` is the address of a candidate that is started for the run. `source_counts` counts the requests of
    the source and `seconds` is the period that it covers; `complete` is true when no request remains.
    """

    started: float
    ended: float
    source: str
    baseline: str
    candidate: str
    candidate_url: str = ""
    source_counts: Mapping[ClientEndpoint, SourceCount] | None = None
    seconds: float | None = None
    budget: int | None = None
    notes: tuple[str, ...] = ()
    keys: tuple[UnnamedKey, ...] = ()
    complete: bool = True


class Summary:
    """Summary of tallies under the settings of a run. `baseline` limits ignored differences."""

    def __init__(
        self,
        settings: ComparisonSettings,
        rules: RuleSet,
        causes: Causes,
        baseline: IgnoredCounts | None = None,
    ) -> None:
        self._settings = settings
        self._rules = rules
        self._causes = causes
        self._baseline = baseline

    def result(self, tally: Tally, run: RunInfo) -> ComparisonResult:
        """Compute the result."""
        counting_groups = self._counting(tally)
        rows = self._rows(tally, run)
        failed = (*self._broken(tally, counting_groups), *self._expired(), *self._exceeding_rules(tally))
        return ComparisonResult(
            started=run.started,
            ended=run.ended,
            source=run.source,
            sides=(SideInfo("baseline", run.baseline), SideInfo("candidate", run.candidate)),
            verdict=verdict.run_verdict(rows, failed, complete=run.complete),
            rows=rows,
            groups=self._groups(tally, run, counting_groups),
            rules=self._rules.uses(tally.ignored),
            latencies=tuple(_times(tally)),
            cost=ComparisonCost(
                tally.spent, run.budget, counting.monthly_parts(tally.rows.values(), run.source_counts, run.seconds)
            ),
            failures=tuple(
                FailedRequests(each.reason, each.requests, each.origin)
                for each in sorted(tally.failures.values(), key=lambda each: (-each.requests, each.reason))
            ),
            keys=run.keys,
            failed=failed,
            notes=(*run.notes, *_notes(tally, run), *_unproven(rows)),
            complete=run.complete,
        )

    def _counting(self, tally: Tally) -> frozenset[str]:
        """Return the groups that count against their requests: no changed data, no unknown uids."""
        return frozenset(key for key, group in tally.groups.items() if group.cause not in UNCOUNTED)

    def _rows(self, tally: Tally, run: RunInfo) -> tuple[EndpointResult, ...]:
        rows_by_place = {(row.client, row.endpoint): row for row in tally.rows.values()}
        for client, endpoint in run.source_counts or ():
            rows_by_place.setdefault((client, endpoint), RowCount(client, endpoint))
        succeeded = {row.client for row in rows_by_place.values() if row.succeeded}
        return tuple(self._row(row, run, succeeded=row.client in succeeded) for _, row in sorted(rows_by_place.items()))

    def _row(self, row: RowCount, run: RunInfo, *, succeeded: bool) -> EndpointResult:
        equivalent = row.compared - row.differing
        in_source = (run.source_counts or {}).get((row.client, row.endpoint))
        whole = in_source is not None and in_source.requests == row.compared
        return EndpointResult(
            row.client,
            row.endpoint,
            row.compared,
            row.occurrences,
            equivalent,
            row.not_compared,
            row.succeeded,
            equivalent / row.compared if row.compared else None,
            verdict.wilson_interval(equivalent, row.compared) if row.compared else None,
            verdict.row_verdict(
                equivalent,
                row.compared,
                self._settings.ready,
                whole=whole,
                succeeded=succeeded,
                not_compared=row.not_compared,
            ),
        )

    def _groups(self, tally: Tally, run: RunInfo, counts: frozenset[str]) -> tuple[DifferenceGroup, ...]:
        """List the groups, counting ones first, then by number of requests."""
        ordered = sorted(
            tally.groups.items(),
            key=lambda item: (item[0] not in counts, -item[1].requests, item[1].endpoint, item[1].path, item[0]),
        )
        return tuple(self._group(group, run, key in counts) for key, group in ordered)

    def _group(self, group: GroupCount, run: RunInfo, counts: bool) -> DifferenceGroup:
        return DifferenceGroup(
            group.endpoint,
            group.path,
            group.kind,
            group.cause,
            self._causes.why(group.endpoint, group.path, group.kind, group.cause),
            group.requests,
            group.differences,
            counts,
            group.first_seen,
            group.last_seen,
            tuple(sorted(group.clients.values())),
            tuple(_sample(kept, run) for kept in group.samples.values()),
        )

    def _broken(self, tally: Tally, counts: frozenset[str]) -> Iterable[str]:
        """Describe the thresholds that are exceeded."""
        compared = sum(_compared(tally).values())
        for threshold in self._settings.fail_on:
            broken = threshold.broken(self._requests(threshold, tally, counts), compared)
            if broken:
                yield broken

    def _requests(self, threshold: Threshold, tally: Tally, counts: frozenset[str]) -> int:
        """Count the requests with a difference that a threshold is about; each request once."""
        looked_at = counts | {key for key, group in tally.groups.items() if group.cause == threshold.uncounted}
        about = {key for key in looked_at if _is_about(threshold, tally.groups[key])}
        patterns = (pattern for row in tally.rows.values() for pattern in row.patterns.values())
        known = sum(pattern.requests for pattern in patterns if about.intersection(pattern.groups))
        return max([known, *(tally.groups[key].requests for key in about)])

    def _exceeding_rules(self, tally: Tally) -> Iterable[str]:
        """Describe the rules that ignore more than the earlier run allows."""
        if self._baseline is None:
            return ()
        ignored = {name: times for name, times in tally.ignored.items() if name not in self._rules.varying}
        compared = sum(_compared(tally).values())
        return self._baseline.exceeded(ignored, compared, self._settings.ignored_margin)

    def _expired(self) -> Iterable[str]:
        return (f"the rule {rule.name} has expired: it held until {rule.expires}" for rule in self._rules.expired)


def _is_about(threshold: Threshold, group: GroupCount) -> bool:
    return threshold.is_about(group.endpoint, group.path, group.kind, group.cause)


def _compared(tally: Tally) -> Counter[str]:
    """Count compared requests by endpoint."""
    requests: Counter[str] = Counter()
    for row in tally.rows.values():
        requests[row.endpoint] += row.compared
    return requests


def _sample(sample: KeptSample, run: RunInfo) -> DifferenceSample:
    request = sample.request
    baseline, candidate = (
        request.curl(place) if place.startswith(("http:", "https:")) else ""
        for place in (run.baseline, run.candidate_url or run.candidate)
    )
    return DifferenceSample(
        request.target(),
        request.origin,
        sample.place,
        sample.baseline,
        sample.candidate,
        baseline,
        candidate,
        sample.message,
    )


def _times(tally: Tally) -> Iterable[LatencyDistribution]:
    for count in sorted(tally.times.values(), key=lambda each: (each.endpoint, each.side != "baseline")):
        p50, p95, p99 = (count.quantile(share) for share in (0.5, 0.95, 0.99))
        yield LatencyDistribution(
            count.endpoint, count.side, sum(count.buckets), p50, p95, p99, counting.BOUNDS, count.buckets
        )


def _unproven(rows: Sequence[EndpointResult]) -> Iterable[str]:
    for client in verdict.without_success(rows):
        yield f"{client} has no compared request that both services answered with 200, and so is never ready"


def _notes(tally: Tally, run: RunInfo) -> Iterable[str]:
    if run.seconds and run.seconds < DAY:
        yield f"the source covers {run.seconds / 3600:.1f} hours: a month's cost is a guess until it covers days"
    unknown = [group for group in tally.groups.values() if group.cause == "uid not known"]
    if unknown:
        differences, requests = sum(group.differences for group in unknown), max(group.requests for group in unknown)
        yield (
            f"{counted(differences, 'uid is', 'uids are')} not known (in {counted(requests, 'request')} or more): "
            "v3bridge sends others for the same objects. This does not count; programs that store uids need a table of "
            "them, which v3bridge compare --learn-uids writes"
        )
    if tally.rest:
        one = "difference of further sorts is counted against its request"
        many = "differences of further sorts are counted against their requests"
        yield f"{counted(tally.rest, one, many)}, and not listed"
