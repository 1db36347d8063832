"""Wording of reports, common to all formats. Figures are sums of the numbers in the result."""

from datetime import UTC, datetime

from proxy.tools.compare.judging.findings import Kind
from proxy.tools.compare.reports import visible
from proxy.tools.compare.results import (
    ComparisonCost,
    ComparisonResult,
    DifferenceGroup,
    Interval,
    RuleUse,
    Verdict,
)
from proxy.traffic.clients import UnnamedKey

RULES = 4  # maximum number of rules in the headline
GAP = "\u00a0"  # between a number and its unit

VERDICTS: dict[Verdict, str] = {
    "ready": "Ready",
    "not ready": "Not ready",
    "inconclusive": "Inconclusive",
}
KINDS: dict[Kind, str] = {
    "status": "different status",
    "unreadable": "unreadable body",
    "missing": "missing on the candidate",
    "extra": "only on the candidate",
    "value": "different value",
    "type": "different type",
    "format": "different format",
    "order": "different order",
    "duplicate": "a duplicate key",
    "uid not known": "a uid unknown to v3bridge",
    "latency": "slower than allowed",
}


def number(value: int) -> str:
    """Format a number: `12 480`."""
    return f"{value:,}".replace(",", GAP)


def count(value: int, one: str, many: str | None = None) -> str:
    """Format a number with its noun: `1 request`, `12 480 requests`."""
    return f"{number(value)} {one if value == 1 else many or one + 's'}"


def share(value: float) -> str:
    """Format a share: `99.4 %`. Only exact values are shown as 100 % or 0 %."""
    percent = value * 100
    if 0 < percent < 0.1:
        return f"under 0.1{GAP}%"
    if 99.95 <= percent < 100:
        return f"{int(percent * 100) / 100:.2f}{GAP}%"
    return f"{percent:.1f}".removesuffix(".0") + f"{GAP}%"


def interval(value: Interval) -> str:
    """Format an interval: `99.2–99.5 %`."""
    return f"{share(value.low).removesuffix(f'{GAP}%')}–{share(value.high)}"


def seconds(value: float) -> str:
    """Format a duration: `0.8 ms`, `412 ms`, `1.24 s`, `3 min 20 s`."""
    if value >= 60:
        minutes, rest = divmod(round(value), 60)
        return f"{number(minutes)}{GAP}min" + (f" {rest}{GAP}s" if rest else "")
    if value >= 1:
        return f"{value:.2f}{GAP}s"
    return f"{value * 1000:.0f}{GAP}ms" if value >= 0.01 else f"{value * 1000:.1f}{GAP}ms"


def seconds_short(value: float) -> str:
    """Format a round duration for a scale: `5 ms`, `2 s`."""
    return f"{value:g}{GAP}s" if value >= 1 else f"{value * 1000:g}{GAP}ms"


def bucket(low: float, high: float | None) -> str:
    """Format the bounds of a latency bucket."""
    return f"over {seconds(low)}" if high is None else f"{seconds(low)} to {seconds(high)}"


def took(result: ComparisonResult) -> str:
    """Format the duration of the run."""
    return seconds(max(0.0, result.ended - result.started))


def moment(at: float) -> str:
    """Format a time: `2026-03-01 12:30:05 UTC`."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"


def because(result: ComparisonResult) -> str:
    """Format the reasons of the verdict."""
    failed, few = not_compared(result), [row for row in result.rows if row.verdict == "inconclusive"]
    message = [f"{count(failed, 'request')} could not be compared"] if failed and compared(result) else []
    message.append(equivalence(sum(row.equivalent for row in result.rows), compared(result)))
    if few and compared(result) and result.verdict == "inconclusive":
        alone = len({row.client for row in result.rows}) == 1
        places = ("endpoint", None) if alone else ("pair of client and endpoint", "pairs of client and endpoint")
        message.append(f"too few for {number(len(few))} of {count(len(result.rows), *places)}")
    left = sum(group.counts for group in result.groups)
    if left:
        message.append(f"{count(left, 'kind')} of difference remain")
    elif compared(result):
        excused = len(result.groups)
        message.append(f"{count(excused, 'kind')} of difference, none counts" if excused else "no difference remains")
    if compared(result) and (ignored_by_rules := ignored(result)):
        message.append(ignored_by_rules)
    if result.cost.per_month is not None:
        message.append(f"a month will cost {count(result.cost.per_month, 'part')}")
    if not result.complete:
        message.append("but the run is not complete")
    return f"{', '.join(message)}."


def ignored(result: ComparisonResult) -> str:
    """Format the ignored differences: `rules ignored 3 022 differences (click link 3 000, region 22)`; empty without
    any.
    """
    used_rules = sorted((rule for rule in result.rules if rule.ignored), key=lambda rule: (-rule.ignored, rule.name))
    if not used_rules:
        return ""
    most = [f"{visible.line(rule.name)} {number(rule.ignored)}" for rule in used_rules[:RULES]]
    more = [f"{count(len(used_rules) - RULES, 'rule')} more"] if len(used_rules) > RULES else []
    total = count(sum(rule.ignored for rule in used_rules), "difference")
    return f"rules ignored {total} ({', '.join([*most, *more])})"


def compared(result: ComparisonResult) -> int:
    """Return the number of compared requests."""
    return sum(row.requests for row in result.rows)


def not_compared(result: ComparisonResult) -> int:
    """Return the number of requests that could not be compared."""
    return sum(failure.requests for failure in result.failures)


def equivalence(equivalent: int, requests: int) -> str:
    """Format the share of equivalent requests: `equivalent on 99.4 % of 12 480 requests`."""
    if not requests:
        return "no request could be compared"
    return f"equivalent on {share(equivalent / requests)} of {count(requests, 'request')}"


def seen_on(group: DifferenceGroup, result: ComparisonResult) -> str:
    """Format how many of the endpoint's requests have the difference."""
    requests = sum(row.requests for row in result.rows if row.endpoint == group.endpoint)
    return f"{number(group.requests)} of {count(requests, 'request')}" + (
        f" ({share(group.requests / requests)})" if requests else ""
    )


def effect(group: DifferenceGroup) -> str:
    """Format whether a group counts against its requests, and why not."""
    if group.counts:
        return "counts"
    if group.cause == "moved":
        return "does not count: the data changed during the run"
    return "does not count: v3's uid is not on record"


def used(rule: RuleUse) -> str:
    """Format the effect of a rule."""
    if rule.expired:
        return f"ignores nothing: expired on {visible.line(rule.expires or '')}"
    return f"ignored {count(rule.ignored, 'difference')}" if rule.ignored else "unused"


def key(unnamed: UnnamedKey) -> str:
    """Format an unnamed API key: `key 1 (fingerprint 3f2a, access.log:17 to access.log:90, python-requests/2.18.4)`."""
    places = unnamed.first if unnamed.first == unnamed.last else f"{unnamed.first} to {unnamed.last}"
    message = [f"fingerprint {unnamed.fingerprint}", places, *([unnamed.agent] if unnamed.agent else [])]
    return visible.line(f"{unnamed.client} ({', '.join(message)})")


def spent(cost: ComparisonCost) -> str:
    """Format the cost of this run."""
    budget = f" of a budget of {number(cost.budget)}" if cost.budget is not None else ""
    return f"this run cost {count(cost.spent, 'part')}{budget}"


def per_month(cost: ComparisonCost) -> str:
    """Format the estimated cost of the source's requests in 30 days."""
    if cost.per_month is None:
        return (
            "the cost of a month is unknown: it needs a source with timestamps, and a candidate that states the cost "
            "of its responses at every endpoint"
        )
    return f"a month of these requests will cost {count(cost.per_month, 'part')}"
