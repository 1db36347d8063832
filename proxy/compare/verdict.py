"""Ready, not ready or inconclusive: what counts say of one client at one endpoint, of a whole run, and to a shell.

The table in docs/reference/comparison.md is this file in words.
"""

from collections.abc import Collection, Sequence

from proxy.compare import noise
from proxy.compare.costs import Place
from proxy.compare.result import Result, Row, Verdict
from proxy.compare.settings import Ready

EQUIVALENT, DIFFERENT, NOT_COMPARED = 0, 1, 2


def of_row(equivalent: int, compared: int, ready: Ready, *, whole: bool) -> Verdict:
    """Of one client at one endpoint. `whole`: every call of its source was compared, nothing is estimated."""
    if compared <= 1:
        return "inconclusive"
    share, interval = equivalent / compared, noise.wilson(equivalent, compared)
    if whole:
        return "ready" if share >= ready.share else "not ready"
    if interval.high < ready.share:
        return "not ready"
    if compared < ready.least_calls:
        return "inconclusive"
    if interval.low >= ready.share:
        return "ready"
    return "not ready" if share < ready.share else "inconclusive"


def of_run(rows: Sequence[Row], failed: Sequence[str], *, complete: bool, single: Collection[Place] = ()) -> Verdict:
    """Of all: as bad as its worst row, and never ready where a threshold is broken or the run was cut short.

    `single` are the rows whose source holds one call and no more: they cannot hold the others back where that call is
    equivalent, and the run is not ready where it differs.
    """
    alone = [row for row in rows if (row.client, row.endpoint) in single and row.calls == 1]
    verdicts = {row.verdict for row in rows if row not in alone}
    differs = any(not row.equivalent for row in alone)
    if failed or "not ready" in verdicts or (differs and len(rows) > 1):
        return "not ready"
    equal = verdicts == {"ready"} or (not verdicts and len(alone) > 1)
    return "ready" if equal and complete and not differs else "inconclusive"


def exit_code(result: Result, *, thresholds: bool) -> int:
    """0 equivalent, 1 differences, 2 could not compare. Where there are `thresholds`, they alone say what differs."""
    if result.failed or (not thresholds and any(group.counts for group in result.groups)):
        return DIFFERENT
    compared = result.rows and all(row.calls > 0 and not row.troubled for row in result.rows)
    return EQUIVALENT if compared and result.complete else NOT_COMPARED
