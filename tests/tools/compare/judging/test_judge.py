"""Tests of the judgement of two responses: completeness, changed data, repeated requests."""

from typing import Any

import msgspec
import pytest
from support import cases


def parts(*mpns: Any, **more: Any) -> Any:
    items = [{"__class__": "Part", "uid": f"{at:016}", "mpn": mpn} for at, mpn in enumerate(mpns)]
    return {"__class__": "PartsMatchResponse", "msec": 1, "results": [{"items": items, **more}]}


def stock(count: int) -> Any:
    offers = [
        {"__class__": "PartOffer", "sku": "S", "in_stock_quantity": count, "prices": {"USD": [[1, f"{count}.0"]]}}
    ]
    return {"results": [{"items": [{"__class__": "Part", "uid": "1" * 16, "mpn": "X1", "offers": offers}]}]}


def found(comparison: Any) -> Any:
    return [(each.difference.kind, each.difference.path, each.cause) for each in comparison.findings]


def test_difference_is_reported_with_its_cause(judge: Any, v3_request: Any, response: Any) -> None:
    comparison = judge().compare(v3_request, (response(parts("X1", "X2")), response(parts("X9"))))
    assert found(comparison) == [
        ("missing", "results[*].items[*]", "missing part"),
        ("value", "results[*].items[*].mpn", "unexplained"),
    ]


@cases.parametrize("baseline, candidate, findings")
def test_responses_differ_by_status_or_body(
    judge: Any, v3_request: Any, response: Any, baseline: Any, candidate: Any, findings: Any
) -> None:
    sides = (
        response(body.encode() if isinstance(body, str) else body, status) for body, status in (baseline, candidate)
    )
    comparison = judge().compare(v3_request, tuple(sides))
    assert found(comparison) == [tuple(finding) for finding in findings]


def test_price_and_stock_that_the_repeated_baseline_agrees_on_have_moved(
    judge: Any, v3_request: Any, response: Any
) -> None:
    pair = (response(stock(5)), response(stock(7)))
    assert judge().may_have_moved(v3_request, *pair)
    comparison = judge().compare(v3_request, pair, baseline_again=response(stock(7)))
    assert not comparison.findings
    assert {(each.difference.path.rpartition(".")[2], each.cause) for each in comparison.moved} == {
        ("in_stock_quantity", "moved"),
        ("USD[*]", "moved"),
    }


def test_other_data_have_not_moved(judge: Any, v3_request: Any, response: Any) -> None:
    pair = (response(parts("X1")), response(parts("X2")))
    assert not judge().may_have_moved(v3_request, *pair)
    comparison = judge().compare(v3_request, pair, baseline_again=response(parts("X2")))
    assert (len(comparison.findings), comparison.moved) == (1, ())


@pytest.mark.parametrize("again", [{}, {"status": 404}, {"body": b"<html>"}])
def test_difference_that_a_repetition_does_not_explain_is_a_finding(
    judge: Any, v3_request: Any, response: Any, again: Any
) -> None:
    pair = (response(stock(5)), response(stock(7)))
    repeated = msgspec.structs.replace(response(stock(6)), **again)
    comparison = judge().compare(v3_request, pair, baseline_again=repeated)
    assert (len(comparison.findings), comparison.moved) == (2, ())


def test_api_keys_are_redacted_in_samples_and_not_in_the_comparison(judge: Any, v3_request: Any, response: Any) -> None:
    hiding = judge(redact=lambda text: text.replace("k3y", "…").replace("0ther", "…"))
    comparison = hiding.compare(v3_request, (response(parts("k3y")), response(parts("0ther"))))
    (finding,) = comparison.findings
    assert (finding.difference.baseline, finding.difference.candidate) == ("…", "…")


RULES = """
rules:
  - {path: "results[*].hits", reason: a test, expires: never}
  - {cause: derived, path: "**.brand.**", reason: a test, expires: never}
  - {cause: missing part, reason: a test, expires: never}
"""


def test_rule_ignores_what_has_its_path_and_its_cause(judge: Any, v3_request: Any, response: Any) -> None:
    one, other = parts("X1", "X2", hits=1), parts("X1", hits=2)
    for body, name in ((one, "A"), (other, "B")):
        body["results"][0]["items"][0] |= {"brand": {"name": name}, "manufacturer": {"name": name}}
    comparison = judge(RULES).compare(v3_request, (response(one), response(other)))
    assert found(comparison) == [("value", "results[*].items[*].manufacturer.name", "unexplained")]
    assert comparison.ignored == {"results[*].hits": 1, "**.brand.**, derived": 1, "missing part": 1}


LINK = "https://octopart.com/opatz8j6/a1?t={}"


@pytest.mark.parametrize(
    "field, baseline, candidate, counts",
    [
        ("product_url", "http://ad/1", LINK.format(1), False),
        ("product_url", "http://ad/1", "https://octopart.com/", True),
        ("product_url", "http://ad/1", None, True),
        ("eligible_region", None, "", False),
        ("eligible_region", "US", "", True),
        ("is_realtime", True, False, False),  # no source
        ("is_realtime", False, True, True),
    ],
)
def test_known_difference_must_have_its_form(
    judge: Any, v3_request: Any, response: Any, field: str, baseline: Any, candidate: Any, counts: bool
) -> None:
    def of(value: Any) -> Any:
        return response({"results": [{"items": [{"mpn": "X1", "offers": [{"sku": "S", field: value}]}]}]})

    comparison = judge().compare(v3_request, (of(baseline), of(candidate)))
    assert bool(comparison.findings) is counts
    assert sum(comparison.ignored.values()) == (not counts)


def test_link_of_another_offer_counts(judge: Any, v3_request: Any, response: Any) -> None:
    def of(*links: str) -> Any:
        offers = [{"sku": f"S{n}", "product_url": link} for n, link in enumerate(links)]
        return response({"results": [{"items": [{"mpn": "X1", "offers": offers}]}]})

    old = of("http://ad/1", "http://ad/2")
    assert not judge().compare(v3_request, (old, of(LINK.format(1), LINK.format(2)))).findings
    assert judge().compare(v3_request, (old, of(LINK.format(1), LINK.format(1)))).findings
