"""Example results of comparisons for tests of reports: a realistic one, and one with hostile texts."""

import itertools
import json
import math
from typing import Any

import msgspec

from proxy.tools.compare.results import (
    ComparisonCost,
    ComparisonResult,
    DifferenceGroup,
    DifferenceSample,
    EndpointResult,
    FailedRequests,
    Interval,
    LatencyDistribution,
    RuleUse,
    SideInfo,
)
from proxy.traffic.v3_request import V3Request

BASELINE, CANDIDATE = "https://v3.example.com", "http://127.0.0.1:8080"
AT = 1_772_366_400.0  # 2026-03-01 12:00 UTC
MATCH, SEARCH, MULTI, PART = "/parts/match", "/parts/search", "/parts/get_multi", "/parts/{uid}"
BOUNDS = tuple(round(0.001 * 2 ** (step / 2), 6) for step in range(28))

# Ends a string, a tag, a script, a comment, a table, a code span, a fence and a section; colors and clears a terminal,
# turns the direction of text, mentions, links, and runs if anything lets it.
HOSTILE = (
    """</script><script>window.hacked=1</script><img src=x onerror="window.hacked=1">'"-->"""
    "<svg/onload=window.hacked=1>]]>{{7*7}}{% raw %}[bold red]x[/bold red][link=http://evil.example]y[/link]"
    "|`~~~\n```\n| a | @octocat #1 http://evil.example www.evil.example <!-- _*x*_ \\| javascript:window.hacked=1"
    "\x1b[2J\x1b]8;;http://evil.example\x07\x9b31m\x00\x08\x7f\r\u202etxt.exe\u2066\u200b\ufeff\ufffe\ud800"
)


def sample(baseline: Any, candidate: Any, place: str, request: V3Request) -> DifferenceSample:
    """A sample difference, with values as JSON; Ellipsis is a missing value."""
    texts = [None if value is ... else json.dumps(value, ensure_ascii=False) for value in (baseline, candidate)]
    curls = (request.curl(f"{BASELINE}/v3"), request.curl(f"{CANDIDATE}/v3"))
    return DifferenceSample(request.target(), request.origin, place, texts[0], texts[1], curls[0], curls[1])


def result(**changes: Any) -> ComparisonResult:
    """Verdict "not ready": three kinds of differences, drifting data, and ignore rules of each kind."""
    return msgspec.structs.replace(_result(), **changes)


def ready_result() -> ComparisonResult:
    """Verdict "ready"."""
    rows = tuple(
        _row(row.client, row.endpoint, row.requests, row.occurrences, row.requests, 0, "ready")
        for row in _rows()
        if row.requests
    )
    rules = tuple(rule for rule in _rules() if rule.ignored)
    return result(verdict="ready", rows=rows, groups=(), rules=rules, failed=(), failures=(), notes=())


def hostile_result(text: str = HOSTILE) -> ComparisonResult:
    """One text in every field with foreign data."""
    whole = _result()
    bad = DifferenceSample(text, text, text, json.dumps(text, ensure_ascii=False), text, text, text)
    group = msgspec.structs.replace(
        whole.groups[2], path=text, why=text, endpoint=text, clients=(text,), samples=(bad, bad, bad)
    )
    return result(
        source=text,
        sides=(SideInfo("baseline", text), SideInfo("candidate", text)),
        rows=(msgspec.structs.replace(whole.rows[0], client=text, endpoint=text),),
        groups=(group, msgspec.structs.replace(group, counts=False)),
        rules=(RuleUse(text, text, text, 3, False), RuleUse(text, text, text, 0, True)),
        latencies=tuple(msgspec.structs.replace(times, endpoint=text) for times in whole.latencies[:2]),
        failures=(FailedRequests(text, 3, text),),
        failed=(text,),
        notes=(text,),
    )


def _result() -> ComparisonResult:
    return ComparisonResult(
        started=AT,
        ended=AT + 1_284.0,
        source="access.log (nginx, combined)",
        sides=(SideInfo("baseline", BASELINE), SideInfo("candidate", CANDIDATE)),
        verdict="not ready",
        rows=_rows(),
        groups=_groups(),
        rules=_rules(),
        latencies=_times(),
        cost=ComparisonCost(31_204, 50_000, 1_240_000),
        failures=(
            FailedRequests("the baseline answered HTML instead of JSON", 14, "access.log:8812"),
            FailedRequests("the candidate gave no response within 30 s", 3, "access.log:20117"),
        ),
        failed=("missing-part: 12 requests have it, none may", "price>1%: 1.9 % of requests have it"),
        notes=("37 lines of access.log are no v3 requests, the first at line 112: its path does not begin with /v3",),
        complete=True,
    )


def _row(
    client: str, endpoint: str, requests: int, occurrences: int, equivalent: int, not_compared: int, verdict: Any
) -> EndpointResult:
    share = equivalent / requests if requests else None
    wide = 1.96 * math.sqrt(max(share * (1 - share), 0.25 / requests) / requests) if share is not None else 0
    interval = Interval(max(0.0, share - wide), min(1.0, share + wide)) if share is not None else None
    counts = (requests, occurrences, equivalent, not_compared, requests)
    return EndpointResult(client, endpoint, *counts, share, interval, verdict)


def _rows() -> tuple[EndpointResult, ...]:
    return (
        _row("bom-tool", MATCH, 6_240, 88_112, 6_120, 9, "not ready"),
        _row("bom-tool", SEARCH, 3_120, 21_480, 3_118, 2, "ready"),
        _row("warehouse", MATCH, 2_010, 14_901, 1_979, 0, "not ready"),
        _row("warehouse", MULTI, 1_050, 3_300, 1_050, 6, "ready"),
        _row("key 1", PART, 60, 71, 60, 0, "inconclusive"),
        _row("key 1", "/sellers/{uid}", 0, 2, 0, 0, "inconclusive"),
    )


QUERIES = '[{"mpn":"SN74S74N","reference":"line-4"},{"mpn":"LM358*","limit":20}]'
A_MATCH = V3Request(MATCH, (("queries", QUERIES), ("include[]", "specs")), "bom-tool", 12, "access.log:4711")
A_SEARCH = V3Request(SEARCH, (("q", "flip flop"), ("limit", "10")), "warehouse", 3, "access.log:902")
ITEMS, ITEM = "results[*].items[*]", "results[0].items[2c3be9310496fffc]"
LOST = {
    "__class__": "Part",
    "uid": "2c3be9310496fffc",
    "mpn": "LM358AN/NOPB",
    "brand": {"name": "National Semiconductor", "uid": "8b2c11a0e4a3c1f2"},
    "offers": [{"sku": "LM358AN/NOPB-ND", "in_stock_quantity": 1204, "prices": {"USD": [[1, "0.88000"]]}}],
}
TEXTS = (
    "IC OPAMP GP 2 CIRCUIT 8DIP, dual operational amplifier with a wide supply range",
    "Op Amp Dual GP ±16V/32V 8-Pin PDIP, dual operational amplifier with a wide supply range",
)


def _group(*values: Any) -> DifferenceGroup:
    return DifferenceGroup(*values)


def _groups() -> tuple[DifferenceGroup, ...]:
    """Difference groups, not in the order of importance."""
    return (
        _group(
            *(SEARCH, "results[*]", "order", "order", "both rank by relevance, and neither says how"),
            *(61, 61, False, AT + 4, AT + 1_201, ("bom-tool", "warehouse")),
            (sample(["LM358", "LM358N"], ["LM358N", "LM358"], "results", A_SEARCH),),
        ),
        _group(
            *(MATCH, ITEMS, "missing", "missing part", "the GraphQL service does not return this part"),
            *(31, 44, True, AT + 9, AT + 1_180, ("warehouse",)),
            (sample(LOST, ..., ITEM, A_MATCH),),
        ),
        _group(
            *(MATCH, f"{ITEMS}.offers[*].prices.USD[*]", "value", "unexplained", "both sides have this price break"),
            *(120, 362, True, AT + 2, AT + 1_279, ("bom-tool",)),
            (
                _price([1000, "0.21430"], [1000, "0.21980"], "Digi-Key 296-1-ND"),
                _price([1, "0.88000"], [1, "0.89000"], "Mouser 595-SN74S74N"),
                _price([100, "0.50"], [100, "0.5"], "Farnell 67K1122"),
            ),
        ),
        _group(
            *(SEARCH, "results[*].item.short_description", "value", "derived"),
            *("made of shortDescription, which is written in another style", 2, 2, True),
            *(AT + 88, AT + 640, ("bom-tool",)),
            (sample(*TEXTS, "results[3].item.short_description", A_SEARCH),),
        ),
        _group(
            *(MATCH, f"{ITEMS}.offers[*].in_stock_quantity", "value", "moved", "repeated, both sides agree"),
            *(204, 519, False, AT + 2, AT + 1_283, ("bom-tool", "warehouse")),
            (sample(1204, 1198, f"{ITEM}.offers[Digi-Key 296-1-ND].in_stock_quantity", A_MATCH),),
        ),
    )


def _price(baseline: Any, candidate: Any, offer: str) -> DifferenceSample:
    return sample(baseline, candidate, f"{ITEM}.offers[{offer}].prices.USD[{baseline[0]}]", A_MATCH)


def _rules() -> tuple[RuleUse, ...]:
    return (
        RuleUse("msec", "how long a response took differs every time", None, 12_480, False),
        RuleUse("click links", "they lead through another host", None, 88_204, False),
        RuleUse("old footprints", "the mapping is to be finished by then", "2026-02-01", 0, True),
        RuleUse("broker listings", "the service has none", "2027-01-01", 0, False),
    )


MEDIANS = {MATCH: (8_250, 0.31, 0.12), SEARCH: (3_120, 0.42, 0.21), MULTI: (1_050, 0.18, 0.09), PART: (60, 0.11, 0.07)}


def _times() -> tuple[LatencyDistribution, ...]:
    return tuple(
        _distribution(endpoint, side, median, spread, answers)
        for endpoint, (answers, baseline, candidate) in MEDIANS.items()
        for side, median, spread in (("baseline", baseline, 0.45), ("candidate", candidate, 0.7))
    )


def _distribution(endpoint: str, side: Any, median: float, spread: float, answers: int) -> LatencyDistribution:
    """Log-normal, as latencies are."""

    def below(at: float) -> float:
        return 0.5 * (1 + math.erf(math.log(at / median) / (spread * math.sqrt(2))))

    edges = [0.0, *(below(at) for at in BOUNDS), 1.0]
    buckets = tuple(round(answers * (high - low)) for low, high in itertools.pairwise(edges))
    p95, p99 = (median * math.exp(spread * z) for z in (1.645, 2.326))
    return LatencyDistribution(endpoint, side, sum(buckets), median, p95, p99, BOUNDS, buckets)
