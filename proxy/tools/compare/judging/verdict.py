"""Verdicts (ready, not ready, inconclusive) for one client at one endpoint and for a run, with their confidence.

docs/reference/comparison.md has the table of verdicts in words.
"""

import math
from collections.abc import Sequence

from proxy.tools.compare.judging.settings import ReadinessSettings
from proxy.tools.compare.results import ComparisonResult, EndpointResult, Interval, Verdict

Z = 1.959963984540054  # two-sided 95 % quantile of the normal distribution


def wilson_interval(hits: int, of: int) -> Interval:
    """Return the 95 % Wilson score interval (Wilson 1927) of the share `hits / of`; 0 to 1 where `of` is 0."""
    if of == 0:
        return Interval(0.0, 1.0)
    share, spread = hits / of, Z * Z / of
    middle = (share + spread / 2) / (1 + spread)
    half = Z * math.sqrt(share * (1 - share) / of + spread / (4 * of)) / (1 + spread)
    low = 0.0 if hits == 0 else max(0.0, middle - half)
    return Interval(low, 1.0 if hits == of else min(1.0, middle + half))


EQUIVALENT, DIFFERENT, NOT_COMPARED = 0, 1, 2


def row_verdict(
    equivalent: int,
    compared: int,
    ready: ReadinessSettings,
    *,
    whole: bool,
    succeeded: bool = True,
    not_compared: int = 0,
) -> Verdict:
    """Return the verdict for one client at one endpoint. With `whole`, all requests of the source were compared, so no
    interval is needed. `succeeded`: the client had a compared 200 at any endpoint. `not_compared` requests failed.
    """
    # One equivalent request proves nothing about a client.
    if compared == 0 or (compared == 1 and equivalent):
        return "inconclusive"
    share, interval = equivalent / compared, wilson_interval(equivalent, compared)
    # Too many differences are certain after few requests, equivalence is not.
    if interval.high < ready.share or (whole and share < ready.share):
        return "not ready"
    # Equal errors do not show that a client is served.
    if not succeeded or not (whole or compared >= ready.min_requests):
        return "inconclusive"
    # What failed may differ.
    if whole or wilson_interval(equivalent, compared + not_compared).low >= ready.share:
        return "ready"
    return "not ready" if share < ready.share else "inconclusive"


def run_verdict(rows: Sequence[EndpointResult], failed: Sequence[str], *, complete: bool) -> Verdict:
    """Return the verdict of a run: the worst of its rows, and never ready with an exceeded threshold or an incomplete
    run.
    """
    verdicts = {row.verdict for row in rows}
    if failed or "not ready" in verdicts:
        return "not ready"
    return "ready" if complete and verdicts == {"ready"} else "inconclusive"


def without_success(rows: Sequence[EndpointResult]) -> list[str]:
    """List the clients without any compared request to which both services responded with 200."""
    succeeded = {row.client for row in rows if row.succeeded}
    return [client for client in dict.fromkeys(row.client for row in rows) if client not in succeeded]


def exit_code(result: ComparisonResult, *, thresholds: bool) -> int:
    """Return the exit code: 0 equivalent, 1 differences, 2 could not compare. With `thresholds`, only these count as
    differences.
    """
    if result.failed or (not thresholds and any(group.counts for group in result.groups)):
        return DIFFERENT
    compared = result.rows and all(row.requests > 0 and not row.not_compared for row in result.rows)
    proven = compared and result.complete and not without_success(result.rows)
    return EQUIVALENT if proven else NOT_COMPARED
