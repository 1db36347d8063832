"""Wording of reports, common to all formats: values of both sides, safe to display and with their differences marked,
and the next steps that every report ends with."""

import os.path
from typing import NamedTuple

import msgspec

from proxy.kit import counted, printable
from proxy.tools.compare.judging.findings import Cause, Kind
from proxy.tools.compare.judging.result import ComparisonResult, DifferenceGroup, RuleUse, Verdict
from proxy.tools.compare.sides import KEY_REFUSED
from proxy.traffic.v3_request import UnnamedKey

NAMED = 3  # items listed in one sentence
LINE = 300  # most characters of a single-line value
WIDTH = 72  # a shorter JSON value stays on one line
SHOWN = 2_000  # most characters of a side
VERDICTS: dict[Verdict, str] = {"ready": "Ready", "not ready": "Not ready", "inconclusive": "Inconclusive"}
KINDS: dict[Kind, str] = {
    "status": "different status",
    "unreadable": "unreadable body",
    "missing": "missing on the candidate",
    "extra": "only on the candidate",
    "value": "different value",
    "type": "different type",
    "format": "different format",
    "order": "different order",
    "uid not known": "a uid unknown to v3bridge",
}
AGAIN = "Then compare again: a comparison of recorded responses costs no parts."
OTHERWISE = "Change its mapping, or write a rule with a reason into your file of --rules."
REMEDIES: dict[Cause, str] = {  # for causes that no mapping can resolve
    "status": "Look at a sample: the message of the service that refuses has the reason.",
    "unknown uid requested": "Learn the uids of a recording (`compare --learn-uids FILE`), and set `uids` to them.",
    "missing part": "Look such a part up in the new service: it may lack it, or spell it differently.",
    "extra part": "Look such a part up in the old service: it may lack it. A rule with a reason can ignore it.",
}


def headline(result: ComparisonResult) -> str:
    """Say the verdict and its main reason in one sentence."""
    compared = sum(row.requests for row in result.rows)
    differing = compared - sum(row.equivalent for row in result.rows)
    failed = sum(failure.requests for failure in result.failures)
    few = sum(row.verdict == "inconclusive" for row in result.rows)
    if result.verdict == "ready":
        reason = f"{counted(compared, 'request')} compared, all equivalent."
    elif result.verdict == "not ready":
        kinds = counted(sum(group.counts for group in result.groups), "kind")
        verb = "differs" if differing == 1 else "differ"
        reason = f"{differing} of {counted(compared, 'request')} {verb}, in {kinds} of difference."
    elif not compared:
        reason = "no request could be compared."
    elif failed:
        reason = f"{counted(failed, 'request')} could not be compared; the other {compared} are equivalent."
    elif not result.complete:
        reason = f"{counted(compared, 'request')} compared, all equivalent, but the run is not complete."
    else:
        places = counted(len(result.rows), "endpoint")
        reason = f"{counted(compared, 'request')} compared, all equivalent, but too few at {few} of {places}."
    return f"{VERDICTS[result.verdict]}: {reason}"


def seen_on(group: DifferenceGroup, result: ComparisonResult) -> str:
    """Format how many of the endpoint's requests have the difference."""
    requests = sum(row.requests for row in result.rows if row.endpoint == group.endpoint)
    return f"{group.requests} of {counted(requests, 'request')}"


def effect(group: DifferenceGroup) -> str:
    """Format whether a group counts against its requests, and why not."""
    if group.counts:
        return "counts"
    changed = group.cause == "moved"
    return f"does not count: {'the data changed during the run' if changed else 'v3 has its uid on no record'}"


def used(rule: RuleUse) -> str:
    """Format the effect of a rule."""
    if rule.expired:
        return f"ignores nothing: expired on {rule.expires}"
    return f"ignored {counted(rule.ignored, 'difference')}" if rule.ignored else "unused"


def key(unnamed: UnnamedKey) -> str:
    """Format an unnamed API key: `key 1 (fingerprint 3f2a, access.log:17 to access.log:90, python-requests/2.18.4)`."""
    places = unnamed.first if unnamed.first == unnamed.last else f"{unnamed.first} to {unnamed.last}"
    message = [f"fingerprint {unnamed.fingerprint}", places, *([unnamed.agent] if unnamed.agent else [])]
    return line(f"{unnamed.client} ({', '.join(message)})")


def cost(result: ComparisonResult) -> str:
    """Format the cost of the run."""
    budget = f" of a budget of {result.budget}" if result.budget is not None else ""
    return f"This run cost {counted(result.spent, 'part')}{budget}."


def next_steps(result: ComparisonResult) -> list[str]:
    """List the next steps, the most urgent first; never empty."""
    steps, names = [], {each.client: key(each) for each in result.keys}
    # Requests of a refused key could not be compared at all.
    for failure in [each for each in result.failures if KEY_REFUSED in each.reason][:NAMED]:
        side, _, rest = failure.reason.partition(KEY_REFUSED)
        client = rest.partition(" (HTTP")[0].strip()
        remedy = "give keys[].baseline or --baseline-key one that it accepts"
        if "baseline" not in side:
            remedy = "add the key to the apikeys of an application, or give keys[].candidate or --candidate-key another"
        name = line(names.get(client, client))
        failed = counted(failure.requests, "request")
        steps.append(f"{side[:1].upper()}{side[1:]}{KEY_REFUSED} {name}: {remedy}. {failed} could not be compared.")
    if not result.complete:
        steps.append("The run is not complete: the same command with --record FILE goes on where it stopped.")
    if others := [failure for failure in result.failures if KEY_REFUSED not in failure.reason]:
        failed = counted(sum(failure.requests for failure in others), "request")
        steps.append(f"{failed} could not be compared, most because of: {line(others[0].reason)}. Fix that first.")
    if first := next((group for group in result.groups if group.counts), None):
        where = f"{line(first.endpoint)}, {line(first.path)}: {KINDS[first.kind]}"
        remedy = REMEDIES.get(first.cause, OTHERWISE)
        steps.append(f"Begin with {where}, on {seen_on(first, result)}. {remedy}")
    if few := [row.endpoint for row in result.rows if row.verdict == "inconclusive" and not row.not_compared]:
        steps.append(f"Compare more requests of {_named(few)}: there are too few for a verdict.")
    if expired := [line(rule.name) for rule in result.rules if rule.expired]:
        steps.append(f"Renew or remove the expired rules: {_named(expired)}.")
    if unused := [line(rule.name) for rule in result.rules if not rule.expired and not rule.ignored]:
        steps.append(f"Remove the rules that ignored nothing: {_named(unused)}.")
    is_ready = result.verdict == "ready"
    steps.append("Point the clients at the candidate, as docs/connect.md describes." if is_ready else AGAIN)
    return steps


def _named(names: list[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


class Marked(NamedTuple):
    """Text of one side: what both have at its beginning and end, and what differs between."""

    before: str
    differing: str
    after: str


def line(text: str, most: int = LINE) -> str:
    """Make a text of a client visible in one line: it cannot control a terminal or mislead a reader."""
    cut = f"… ({len(text) - most:,} characters more)" if len(text) > most else ""
    return printable(text[:most]).replace("\n", "\\n") + cut


def pair(baseline: str | None, candidate: str | None) -> tuple[Marked | None, Marked | None]:
    """Mark where two JSON texts differ; None is a side without a value."""
    sides = (baseline, candidate)
    laid_out = (msgspec.json.format(text, indent=2) if text and len(text) > WIDTH else text for text in sides)
    one, other = (text and printable(text[:SHOWN]) + ("…" if len(text) > SHOWN else "") for text in laid_out)
    if one is None or other is None:
        return None if one is None else Marked("", one, ""), None if other is None else Marked("", other, "")
    head = len(os.path.commonprefix((one, other)))  # noqa: RUF071 - of texts, by characters
    rest = min(len(one), len(other)) - head
    tail = min(rest, len(os.path.commonprefix((one[::-1], other[::-1]))))  # noqa: RUF071
    ends = len(one) - tail, len(other) - tail
    return (
        Marked(one[:head], one[head : ends[0]], one[ends[0] :]),
        Marked(other[:head], other[head : ends[1]], other[ends[1] :]),
    )
