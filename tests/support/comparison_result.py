"""Example results of comparisons for tests of reports: a realistic one, and one with hostile texts."""

import json
from typing import Any

import msgspec

from proxy.tools.compare.judging.result import (
    ComparisonResult,
    DifferenceGroup,
    DifferenceSample,
    EndpointResult,
    FailedRequests,
    RuleUse,
)
from proxy.traffic.v3_request import UnnamedKey

AT = 1_772_366_400.0  # 2026-03-01 12:00 UTC
MATCH, SEARCH = "/parts/match", "/parts/search"
PRICES, PARTS = "results[*].items[*].offers[*].prices.USD[*]", "results[*].items[*]"
STOCK, ORDER = "results[*].items[*].offers[*].in_stock_quantity", "results[*]"

# Ends a string, a tag, a script, a comment, a table, a code span, a fence and a section; colors and clears a terminal,
# turns the direction of text, mentions, links, and runs if anything lets it.
HOSTILE = (
    """</script><script>window.hacked=1</script><img src=x onerror="window.hacked=1">'"-->"""
    "<svg/onload=window.hacked=1>]]>{{7*7}}{% raw %}[bold red]x[/bold red][link=http://evil.example]y[/link]"
    "|`~~~\n```\n| a | @octocat #1 http://evil.example www.evil.example <!-- _*x*_ \\| javascript:window.hacked=1"
    "\x1b[2J\x1b]8;;http://evil.example\x07\x9b31m\x00\x08\x7f\r\u202etxt.exe\u2066\u200b\ufeff\ufffe"
)


def _sample(baseline: Any, candidate: Any) -> DifferenceSample:
    """A sample, with values as JSON; Ellipsis is a missing value."""
    old, new = (None if value is ... else json.dumps(value, ensure_ascii=False) for value in (baseline, candidate))
    return DifferenceSample('/parts/match?queries=[{"mpn":"SN74S74N"}]', "access.log:4711", PARTS, old, new)


def result(**changes: Any) -> ComparisonResult:
    """Verdict "not ready": kinds of differences that count and that do not, and ignore rules of each kind."""
    whole = ComparisonResult(
        started=AT,
        ended=AT + 1_284.0,
        source="access.log (nginx, combined)",
        baseline="https://v3.example.com",
        candidate="http://127.0.0.1:8080",
        verdict="not ready",
        rows=(
            EndpointResult(MATCH, 6_240, 88_112, 6_120, 9, 6_240, "not ready"),
            EndpointResult(SEARCH, 3_120, 21_480, 3_120, 2, 3_120, "ready"),
            EndpointResult("/sellers/{uid}", 0, 2, 0, 0, 0, "inconclusive"),
        ),
        groups=(
            DifferenceGroup(
                *(MATCH, PRICES, "value", "unexplained", "both sides have this price break", 120, 362, True),
                ("bom-tool",),
                (_sample([1000, "0.21430"], [1000, "0.21980"]),),
            ),
            DifferenceGroup(
                *(MATCH, PARTS, "missing", "missing part", "the candidate lacks this part", 31, 44, True),
                ("warehouse",),
                (_sample({"mpn": "LM358AN/NOPB", "offers": [{"sku": "LM358AN/NOPB-ND"}] * 3}, ...),),
            ),
            DifferenceGroup(
                MATCH, STOCK, "value", "moved", "it changed", 204, 519, False, ("bom-tool",), (_sample(1204, 1198),)
            ),
            DifferenceGroup(
                *(SEARCH, ORDER, "order", "order", "both rank by relevance", 61, 61, False, ("bom-tool", "warehouse")),
                (_sample(["LM358", "LM358N"], ["LM358N", "LM358"]),),
            ),
        ),
        rules=(
            RuleUse("old footprints", "the mapping is to be finished by then", "2026-02-01", 0, True),
            RuleUse("broker listings", "the service has none", "2027-01-01", 0),
            RuleUse("click link", "they lead through another host", None, 88_204),
        ),
        spent=31_204,
        budget=50_000,
        failures=(FailedRequests("the baseline sent HTML instead of JSON", 14, "access.log:8812"),),
        keys=(UnnamedKey("key 1", "3f2a", "access.log:17", "access.log:90", "python-requests/2.18.4"),),
        notes=("37 × no request: its path does not begin with /v3 (first: access.log:112)",),
        complete=True,
    )
    return msgspec.structs.replace(whole, **changes)


def ready_result() -> ComparisonResult:
    return result(verdict="ready", rows=result().rows[1:2], groups=(), rules=result().rules[2:], failures=(), notes=())


def hostile_result(text: str = HOSTILE) -> ComparisonResult:
    """One text in every field with foreign data."""
    bad = DifferenceSample(text, text, text, json.dumps(text, ensure_ascii=False), json.dumps(""), text)
    group = msgspec.structs.replace(result().groups[0], path=text, why=text, clients=(text,), samples=(bad, bad, bad))
    return result(
        source=text,
        baseline=text,
        candidate=text,
        groups=(group, msgspec.structs.replace(group, counts=False)),
        rules=(RuleUse(text, text, "2026-02-01", 3), RuleUse(text, text, None, 0, True)),
        failures=(FailedRequests(text, 3, text),),
        keys=(UnnamedKey("key 1", "3f2a", text, text, text),),
        notes=(text,),
    )
