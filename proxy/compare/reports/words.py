"""Wording of reports, the same for all formats. Figures are sums of what the result holds."""

from datetime import UTC, datetime

from proxy.compare.judging.findings import Kind
from proxy.compare.reports import visible
from proxy.compare.results import (
    ComparisonCost,
    ComparisonResult,
    DifferenceGroup,
    EndpointResult,
    Interval,
    RuleUse,
    UnnamedKey,
    Verdict,
)

RULES = 4  # that the headline names
GAP = "\u00a0"  # between a figure and what belongs to it

VERDICTS: dict[Verdict, str] = {
    "ready": "Ready",
    "not ready": "Not ready",
    "inconclusive": "Inconclusive",
}
KINDS: dict[Kind, str] = {
    "status": "another status",
    "unreadable": "not readable",
    "missing": "missing on the candidate",
    "extra": "only on the candidate",
    "value": "another value",
    "type": "another type",
    "format": "written in another way",
    "order": "another order",
    "twice": "a key that stands twice",
    "uid not known": "a uid that v3bridge does not know",
    "latency": "slower than it may be",
}


def number(value: int) -> str:
    """`12 480`."""
    return f"{value:,}".replace(",", GAP)


def count(value: int, one: str, many: str | None = None) -> str:
    """`1 request`, `12 480 requests`."""
    return f"{number(value)} {one if value == 1 else many or one + 's'}"


def share(value: float) -> str:
    """`99.4 %`. Never 100 % or 0 % of what is only nearly so."""
    percent = value * 100
    if 0 < percent < 0.1:
        return f"under 0.1{GAP}%"
    if 99.95 <= percent < 100:
        return f"{int(percent * 100) / 100:.2f}{GAP}%"
    return f"{percent:.1f}".removesuffix(".0") + f"{GAP}%"


def interval(value: Interval) -> str:
    """`99.2–99.5 %`."""
    return f"{share(value.low).removesuffix(f'{GAP}%')}–{share(value.high)}"


def seconds(value: float) -> str:
    """`0.8 ms`, `412 ms`, `1.24 s`, `3 min 20 s`."""
    if value >= 60:
        minutes, rest = divmod(round(value), 60)
        return f"{number(minutes)}{GAP}min" + (f" {rest}{GAP}s" if rest else "")
    if value >= 1:
        return f"{value:.2f}{GAP}s"
    return f"{value * 1000:.0f}{GAP}ms" if value >= 0.01 else f"{value * 1000:.1f}{GAP}ms"


def seconds_short(value: float) -> str:
    """The same for a scale, whose figures are round: `5 ms`, `2 s`."""
    return f"{value:g}{GAP}s" if value >= 1 else f"{value * 1000:g}{GAP}ms"


def bucket(low: float, high: float | None) -> str:
    """From where to where answers are counted together."""
    return f"over {seconds(low)}" if high is None else f"{seconds(low)} to {seconds(high)}"


def took(result: ComparisonResult) -> str:
    """How long the run was under way."""
    return seconds(max(0.0, result.ended - result.started))


def moment(at: float) -> str:
    """`2026-03-01 12:30:05 UTC`."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"


def headline(result: ComparisonResult) -> str:
    """The verdict and what it rests on, in one line."""
    return f"{VERDICTS[result.verdict]}: {because(result)}"


def because(result: ComparisonResult) -> str:
    """What the verdict rests on."""
    message = [equivalence(sum(row.equivalent for row in result.rows), compared(result))]
    left = sum(group.counts for group in result.groups)
    if left or compared(result):
        message.append(f"{count(left, 'kind')} of difference left" if left else "no difference left")
    if compared(result) and (hides := hidden(result)):
        message.append(hides)
    if result.cost.per_month is not None:
        message.append(f"a month will cost {count(result.cost.per_month, 'part')}")
    if not result.complete:
        message.append("but the run did not reach its end")
    return f"{', '.join(message)}."


def hidden(result: ComparisonResult) -> str:
    """`rules hid 3 022 differences (click link 3 000, region 22)`; empty where they hid none."""
    hiding = sorted((rule for rule in result.rules if rule.hidden), key=lambda rule: (-rule.hidden, rule.name))
    if not hiding:
        return ""
    most = [f"{visible.line(rule.name)} {number(rule.hidden)}" for rule in hiding[:RULES]]
    more = [f"{count(len(hiding) - RULES, 'rule')} more"] if len(hiding) > RULES else []
    total = count(sum(rule.hidden for rule in hiding), "difference")
    return f"rules hid {total} ({', '.join([*most, *more])})"


def compared(result: ComparisonResult) -> int:
    """Requests that were compared."""
    return sum(row.requests for row in result.rows)


def not_compared(result: ComparisonResult) -> int:
    """Requests that could not be."""
    return sum(failure.requests for failure in result.failures)


def equivalence(equivalent: int, requests: int) -> str:
    """`equivalent on 99.4 % of 12 480 requests`."""
    if not requests:
        return "no request could be compared"
    return f"equivalent on {share(equivalent / requests)} of {count(requests, 'request')}"


def row(value: EndpointResult) -> str:
    """What holds for one client at one endpoint."""
    message = equivalence(value.equivalent, value.requests)
    if value.interval is not None:
        message += f" (95{GAP}% interval {interval(value.interval)})"
    return message + (f"; {number(value.not_compared)} could not be compared" if value.not_compared else "")


def seen_on(group: DifferenceGroup, result: ComparisonResult) -> str:
    """How many of the endpoint's requests have it."""
    requests = sum(row.requests for row in result.rows if row.endpoint == group.endpoint)
    return f"{number(group.requests)} of {count(requests, 'request')}" + (
        f" ({share(group.requests / requests)})" if requests else ""
    )


def standing(group: DifferenceGroup) -> str:
    """Whether it counts against its requests, and why not."""
    if group.counts:
        return "counts"
    if group.cause == "moved":
        return "does not count: the data has moved"
    if group.cause == "uid not known":
        return "does not count: v3's uid is on no record"
    return "does not count: no more than noise" if group.noise is not None else "does not count"


def noise(group: DifferenceGroup) -> str:
    """How much the baseline disagrees with itself there."""
    if group.noise is None:
        return "not looked at"
    return f"{share(group.noise)} of requests that were asked twice"


def used(rule: RuleUse) -> str:
    """What a rule did."""
    if rule.expired:
        return f"hides nothing: expired on {visible.line(rule.expires or '')}"
    return f"hid {count(rule.hidden, 'difference')}" if rule.hidden else "unused"


def key(seen: UnnamedKey) -> str:
    """`key 1 (fingerprint 3f2a, access.log:17 to access.log:90, python-requests/2.18.4)`."""
    places = seen.first if seen.first == seen.last else f"{seen.first} to {seen.last}"
    message = [f"fingerprint {seen.fingerprint}", places, *([seen.agent] if seen.agent else [])]
    return visible.line(f"{seen.client} ({', '.join(message)})")


def spent(cost: ComparisonCost) -> str:
    """What this run was paid for with."""
    budget = f" of a budget of {number(cost.budget)}" if cost.budget is not None else ""
    return f"this run cost {count(cost.spent, 'part')}{budget}"


def per_month(cost: ComparisonCost) -> str:
    """What the source's requests come to in 30 days."""
    if cost.per_month is None:
        return (
            "the cost of a month is not known: that takes a source with timestamps, and a candidate that says at each "
            "endpoint what its responses cost"
        )
    return f"a month of these requests will cost {count(cost.per_month, 'part')}"
