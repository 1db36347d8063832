"""Verdicts: ready, not ready or inconclusive, for one client at one endpoint and for a run; confidence and noise.

The baseline costs nothing, so a sample of requests is sent to it twice. A path at which it differs from itself is noise
to that degree; differences there count only where they are significantly more frequent. The table of verdicts in
docs/reference/comparison.md is this file in words.
"""

import math
from collections.abc import Collection, Sequence

from proxy.compare.judging.counting import ClientEndpoint
from proxy.compare.judging.settings import ReadinessSettings
from proxy.compare.results import ComparisonResult, EndpointResult, Interval, Verdict

Z = 1.959963984540054  # 95 %, both sides
_IDS = 1 << 64


def wilson_interval(hits: int, of: int) -> Interval:
    """95 % of the share that `hits` of `of` is an estimate of (Wilson 1927). Nothing is known of none."""
    if of == 0:
        return Interval(0.0, 1.0)
    share, spread = hits / of, Z * Z / of
    middle = (share + spread / 2) / (1 + spread)
    half = Z * math.sqrt(share * (1 - share) / of + spread / (4 * of)) / (1 + spread)
    low = 0.0 if hits == 0 else max(0.0, middle - half)
    return Interval(low, 1.0 if hits == of else min(1.0, middle + half))


def exceeds_noise(requests: int, of: int, flaky_fields: int, twice: int, least: int) -> bool:
    """Whether `requests` of `of` that differ at a path exceed its noise: `flaky_fields` of `twice` that were repeated.

    Where fewer than `least` were asked twice, or none disagreed, there is no noise to speak of.
    """
    if flaky_fields == 0 or twice < least:
        return True
    return wilson_interval(requests, of).low > wilson_interval(flaky_fields, twice).high


def in_noise_sample(request_key: str, share: float) -> bool:
    """Whether a request is of the sample that is asked twice: the same requests in every run, whatever they answer."""
    return int(request_key, 16) < share * _IDS


EQUIVALENT, DIFFERENT, NOT_COMPARED = 0, 1, 2


def row_verdict(equivalent: int, compared: int, ready: ReadinessSettings, *, whole: bool) -> Verdict:
    """Of one client at one endpoint. `whole`: every request of its source was compared, nothing is estimated."""
    if compared <= 1:
        return "inconclusive"
    share, interval = equivalent / compared, wilson_interval(equivalent, compared)
    if whole:
        return "ready" if share >= ready.share else "not ready"
    if interval.high < ready.share:
        return "not ready"
    if compared < ready.min_requests:
        return "inconclusive"
    if interval.low >= ready.share:
        return "ready"
    return "not ready" if share < ready.share else "inconclusive"


def run_verdict(
    rows: Sequence[EndpointResult], failed: Sequence[str], *, complete: bool, single: Collection[ClientEndpoint] = ()
) -> Verdict:
    """Of all: as bad as its worst row, and never ready where a threshold is broken or the run was cut short.

    `single` are the rows with a single request in the source: they cannot hold the others back where that request is
    equivalent, and the run is not ready where it differs.
    """
    alone = [row for row in rows if (row.client, row.endpoint) in single and row.requests == 1]
    verdicts = {row.verdict for row in rows if row not in alone}
    differs = any(not row.equivalent for row in alone)
    if failed or "not ready" in verdicts or (differs and len(rows) > 1):
        return "not ready"
    equal = verdicts == {"ready"} or (not verdicts and len(alone) > 1)
    return "ready" if equal and complete and not differs else "inconclusive"


def exit_code(result: ComparisonResult, *, thresholds: bool) -> int:
    """0 equivalent, 1 differences, 2 could not compare. Where there are `thresholds`, they alone say what differs."""
    if result.failed or (not thresholds and any(group.counts for group in result.groups)):
        return DIFFERENT
    compared = result.rows and all(row.requests > 0 and not row.not_compared for row in result.rows)
    return EQUIVALENT if compared and result.complete else NOT_COMPARED
