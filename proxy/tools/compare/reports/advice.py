"""Next steps for the reader of a report; every report ends with them."""

from collections.abc import Iterator

from proxy.tools.compare.judging.findings import Cause
from proxy.tools.compare.reports import ordering, visible, words
from proxy.tools.compare.results import ComparisonResult
from proxy.traffic.v3_response import KEY_REFUSED

NAMED = 3  # items listed in one sentence
OTHERWISE = "Change its mapping, or give compare.yaml a rule with a reason."
REMEDIES: dict[Cause, str] = {  # for causes that no mapping can resolve
    "status": "Look at a sample: the message of the service that refuses has the reason.",
    "unknown uid requested": "Learn the uids of a recording (`compare --learn-uids FILE`), and set `uids` to them.",
    "latency": "Compare again when the candidate's cache is warm, or raise `latency` in compare.yaml.",
    "missing part": "Look such a part up in the new service: it may lack it, or spell it differently.",
    "extra part": "Look such a part up in the old service: it may lack it. A rule with a reason can ignore it.",
}


def next_steps(result: ComparisonResult) -> list[str]:
    """List the next steps, the most urgent first; never empty."""
    return [
        *_keys(result),
        *_incomplete_run(result),
        *_differences(result),
        *_inconclusive_rows(result),
        *_rules(result),
        *_ready(result),
    ]


def _keys(result: ComparisonResult) -> Iterator[str]:
    """Yield steps for refused API keys; their requests could not be compared at all."""
    names = {key.client: words.key(key) for key in result.keys}
    refused = [failure for failure in result.failures if KEY_REFUSED in failure.reason]
    for failure in refused[:NAMED]:
        client = failure.reason.partition(KEY_REFUSED)[2].partition(" (HTTP")[0].strip()
        key, requests = visible.line(names.get(client, client)), words.count(failure.requests, "request")
        if "baseline" in failure.reason.partition(KEY_REFUSED)[0]:
            yield (
                f"The baseline {KEY_REFUSED} {key}: set keys[].baseline or --baseline-key to one that it accepts. "
                f"{requests} could not be compared, and nothing was sent to the candidate for them."
            )
        else:
            yield (
                f"The candidate {KEY_REFUSED} {key}: add the key to the apikeys of an application, or set "
                f"keys[].candidate or --candidate-key to one that it accepts. {requests} could not be compared."
            )


def _incomplete_run(result: ComparisonResult) -> Iterator[str]:
    if not result.complete:
        yield "The run is not complete: run the same command again to resume it."
    others = [failure for failure in result.failures if KEY_REFUSED not in failure.reason]
    if others:
        first = max(others, key=lambda failure: failure.requests)
        requests = words.count(sum(failure.requests for failure in others), "request")
        yield f"{requests} could not be compared, most because of: {visible.line(first.reason)}. Fix that first."


def _differences(result: ComparisonResult) -> Iterator[str]:
    left = [group for group in ordering.groups(result) if group.counts]
    if left:
        first = left[0]
        yield (
            f"Begin with {visible.line(first.endpoint)}, {visible.line(first.path)}: {words.KINDS[first.kind]}, "
            f"on {words.seen_on(first, result)}. {REMEDIES.get(first.cause, OTHERWISE)}"
        )


def _inconclusive_rows(result: ComparisonResult) -> Iterator[str]:
    few = [
        f"{visible.line(row.client)} at {visible.line(row.endpoint)}"
        for row in result.rows
        if row.verdict == "inconclusive" and row.not_compared < max(1, row.occurrences)
    ]
    if few and result.verdict != "ready":
        yield f"Compare more requests of {_named(few)}: there are too few for a verdict."


def _rules(result: ComparisonResult) -> Iterator[str]:
    expired = [visible.line(rule.name) for rule in result.rules if rule.expired]
    unused = [visible.line(rule.name) for rule in result.rules if not rule.expired and not rule.ignored]
    if expired:
        yield f"Renew or remove the expired rules of compare.yaml: {_named(expired)}."
    if unused:
        yield f"Remove unused rules from compare.yaml: {_named(unused)}."


def _ready(result: ComparisonResult) -> Iterator[str]:
    if result.verdict == "ready" and result.complete:
        yield "Point the clients at the candidate, as docs/how-to/connect.md describes."
    elif result.verdict == "inconclusive" and not any(row.verdict == "inconclusive" for row in result.rows):
        yield "Compare more requests: there are too few for a verdict."
    elif result.verdict == "not ready":
        yield "Then compare again: a comparison of recorded responses costs no parts."


def _named(names: list[str]) -> str:
    more = f" and {words.number(len(names) - NAMED)} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
