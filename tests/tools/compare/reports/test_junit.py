"""Tests of the JUnit report."""

from xml.etree import ElementTree

from support import comparison_result

from proxy.tools.compare.reports import junit
from proxy.tools.compare.results import ComparisonResult


def parsed(result: ComparisonResult) -> ElementTree.Element:
    return ElementTree.fromstring(junit.render(result))


def cases(top: ElementTree.Element, suite: str) -> dict[str, str]:
    """The outcome of each case of a suite by name."""
    found = top.findall(f"testsuite[@name='{suite}']/testcase")
    outcomes = [next((part.tag for part in case if part.tag in junit.OUTCOMES), "passed") for case in found]
    return dict(zip([case.get("name", "") for case in found], outcomes, strict=True))


def test_row_is_a_case_of_its_endpoint() -> None:
    top = parsed(comparison_result.result())
    assert cases(top, "/parts/match") == {"bom-tool": "failure", "warehouse": "failure"}
    assert cases(top, "/parts/search") == {"bom-tool": "passed"}
    assert cases(top, "/parts/{uid}") == {"key 1": "skipped"}


def test_run_is_a_suite() -> None:
    assert cases(parsed(comparison_result.result(complete=False)), "run") == {
        "verdict": "failure",
        "rule: old footprints": "failure",
        "rule: broker listings": "passed",
        "rule: click links": "passed",
        "rule: msec": "passed",
        "not compared: the baseline answered HTML instead of JSON": "error",
        "not compared: the candidate gave no response within 30 s": "error",
        "complete": "error",
    }


def test_failure_lists_differences_of_its_client_only() -> None:
    match = parsed(comparison_result.result()).findall("testsuite[@name='/parts/match']/testcase")
    told = {case.get("name"): case.findtext("failure") or "" for case in match}
    assert "prices.USD[*]: different value" in told["bom-tool"]
    assert "results[*].items[*]: missing on the candidate" in told["warehouse"]
    assert "prices.USD" not in told["warehouse"]


def test_counts_are_those_of_the_cases() -> None:
    top = parsed(comparison_result.result())
    for suite in (top, *top.iter("testsuite")):
        counted = [len(list(suite.iter(name))) for name in ("testcase", "failure", "error", "skipped")]
        assert [int(suite.get(name, -1)) for name in ("tests", "failures", "errors", "skipped")] == counted


def test_ready_run_has_no_failure() -> None:
    top = parsed(comparison_result.ready_result())
    assert (top.get("failures"), top.get("errors"), top.get("skipped")) == ("0", "0", "0")


def test_too_few_requests_are_skipped_not_passed() -> None:
    assert cases(parsed(comparison_result.result(verdict="inconclusive")), "run")["verdict"] == "skipped"
