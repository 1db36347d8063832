"""Tests of the summary of a run: counted differences, and broken thresholds."""

from datetime import date
from typing import Any

import pytest

from proxy.tools.compare.judging.counting import SourceCount
from proxy.tools.compare.judging.findings import Comparison, Difference, Finding
from proxy.tools.compare.judging.rules import RuleSet
from proxy.tools.compare.judging.summary import RunInfo, Summary
from proxy.tools.compare.judging.tally import Tally
from proxy.traffic.v3_request import V3Request

MPN = Finding(Difference("value", "results[*].items[*].mpn", "results[0].items[0].mpn", "A", "B"), "unexplained")
PRICE = Finding(
    Difference("value", "results[*].items[*].offers[*].prices.USD[*]", "results[0]", "1.0", "2.0"), "unexplained"
)
RUN = RunInfo(
    started=10.0, ended=20.0, source="access.log", baseline="https://old/v3", candidate="http://127.0.0.1:8080/v3"
)


@pytest.fixture
def summarize(load: Any, causes: Any) -> Any:
    def of(made: Any, text: str = "shipped_rules: false", run: Any = RUN, today: Any = date(2026, 6, 1)) -> Any:
        settings = load(text)
        tally = Tally()
        for each in made:
            tally.add(each)
        summary = Summary(settings, RuleSet(settings.rules, causes, today), causes)
        return summary.result(tally, run)

    return of


def requests(number: Any, findings: Any = (), start: int = 0, client: str = "erp", **more: Any) -> Any:
    path = ("/parts/match", (("q", "x"),))
    more.setdefault("succeeded", "failure" not in more)
    return [
        Comparison(V3Request(*path, client, 2, f"log:{n}"), float(n), findings, **more)
        for n in range(start, start + number)
    ]


def test_row_has_equivalent_and_total_requests(summarize: Any) -> None:
    result = summarize([*requests(995), *requests(5, (MPN,), 1000), *requests(3, (), 2000, failure="old: gone")])
    (row,) = result.rows
    assert (row.client, row.endpoint, row.requests, row.occurrences, row.equivalent, row.not_compared) == (
        *("erp", "/parts/match"),
        *(1000, 2000, 995, 3),
    )
    assert row.share == 0.995
    assert (round(row.interval.low, 4), round(row.interval.high, 4)) == (0.9883, 0.9979)
    assert (row.verdict, result.verdict) == ("inconclusive", "inconclusive")
    assert [(each.reason, each.requests, each.first_origin) for each in result.failures] == [
        ("old: gone", 3, "log:2000")
    ]


def test_run_without_differences_is_ready(summarize: Any) -> None:
    result = summarize(requests(400))
    assert (result.verdict, result.failed, result.groups) == ("ready", (), ())


def test_run_with_many_failed_requests_is_not_ready(summarize: Any) -> None:
    result = summarize([*requests(400), *requests(300, (), 1000, failure="candidate: failed (HTTP 500)")])
    assert ([row.verdict for row in result.rows], result.verdict) == (["inconclusive"], "inconclusive")


def test_completely_compared_source_needs_no_minimum(summarize: Any) -> None:
    source_counts = {("erp", "/parts/match"): SourceCount(5, 10)}
    run = RunInfo(
        **{name: getattr(RUN, name) for name in ("started", "ended", "source", "baseline", "candidate")},
        source_counts=source_counts,
    )
    assert summarize(requests(5), run=run).verdict == "ready"
    assert summarize(requests(4), run=run).verdict == "inconclusive"


def test_client_never_compared_has_a_row(summarize: Any) -> None:
    source_counts = {("erp", "/parts/match"): SourceCount(400, 800), ("shop", "/parts/match"): SourceCount(5, 10)}
    result = summarize(
        requests(400),
        run=RunInfo(started=0, ended=1, source="log", baseline="a", candidate="b", source_counts=source_counts),
    )
    assert [(row.client, row.requests, row.share, row.verdict) for row in result.rows] == [
        ("erp", 400, 1.0, "ready"),
        ("shop", 0, None, "inconclusive"),
    ]
    assert result.verdict == "inconclusive"


def test_group_has_cause_and_samples(summarize: Any) -> None:
    (group,) = summarize(requests(3, (MPN, MPN))).groups
    assert (group.requests, group.differences, group.counts) == (3, 6, True)
    assert group.why == "Part.mpn is read from SupPart.mpn"
    sample = group.samples[0]
    assert (sample.request, sample.place, sample.baseline, sample.candidate) == (
        *("/parts/match?q=x", "results[0].items[0].mpn"),
        *('"A"', '"B"'),
    )
    assert sample.baseline_curl == """curl -g 'https://old/v3/parts/match?q=x'"&apikey=$APIKEY\""""


def test_moved_differences_are_shown_and_do_not_count(summarize: Any) -> None:
    result = summarize(requests(400, moved=(Finding(MPN.difference, "moved"),)))
    assert [(group.cause, group.counts) for group in result.groups] == [("moved", False)]
    assert result.verdict == "ready"


def test_exceeded_threshold_is_explained(summarize: Any) -> None:
    made = [*requests(97), *requests(2, (PRICE,), 100), *requests(1, (PRICE, MPN), 200)]
    result = summarize(made, "shipped_rules: false\nfail_on: [price>2%, value-price>5%, extra, value]")
    assert result.failed == (
        "price>2%: 3 of 100 requests have it (3.00%)",
        "value: 3 of 100 requests have it (3.00%)",
    )
    assert result.verdict == "not ready"


def test_expired_rule_fails_the_run(summarize: Any) -> None:
    text = "shipped_rules: false\nrules: [{name: old, path: a, ignore: all, reason: r, expires: 2026-05-31}]"
    result = summarize(requests(400), text)
    assert result.failed == ("the rule old has expired: it held until 2026-05-31",)
    assert (result.verdict, result.rules[0].expired) == ("not ready", True)


def test_ignored_differences_are_counted(summarize: Any) -> None:
    result = summarize(requests(3, ignored={"msec": 2}), "shipped_rules: true")
    assert {use.name: use.ignored for use in result.rules}["msec"] == 6


def test_summary_has_monthly_cost_and_usage(summarize: Any) -> None:
    run = RunInfo(started=0, ended=1, source="log", baseline="a", candidate="b", seconds=86_400.0, budget=50)
    cost = summarize(requests(10, price=2, parts=4), run=run).cost
    assert (cost.spent, cost.budget, cost.per_month) == (40, 50, 1200)


def test_incomplete_run_is_not_ready(summarize: Any) -> None:
    run = RunInfo(started=0, ended=1, source="log", baseline="a", candidate="b", complete=False)
    result = summarize(requests(400), run=run)
    assert (result.verdict, result.complete) == ("inconclusive", False)
