"""The judgement of two responses: completeness, changed data, repeated requests, trimmed data."""

from decimal import Decimal
from typing import Any

import msgspec
import pytest
from support import cases

from proxy.tools.compare.judging.findings import ABSENT, Difference
from proxy.tools.compare.judging.judge import trimmed


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
    assert judge().compare(v3_request, pair).may_have_moved
    comparison = judge().compare(v3_request, pair, baseline_again=response(stock(7)))
    assert not comparison.findings
    assert {(each.difference.path.rpartition(".")[2], each.cause) for each in comparison.moved} == {
        ("in_stock_quantity", "moved"),
        ("USD[*]", "moved"),
    }


def test_other_data_have_not_moved(judge: Any, v3_request: Any, response: Any) -> None:
    pair = (response(parts("X1")), response(parts("X2")))
    assert not judge().compare(v3_request, pair).may_have_moved
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


def shown(value: Any) -> Any:
    return trimmed(value, lambda text: text.replace("s3cret", "…"))


ENCODER = msgspec.json.Encoder(decimal_format="number")


def test_small_difference_is_unchanged() -> None:
    difference = Difference("value", "a[*].b", "a[1].b", [1, "0.64700"], {"x": Decimal("1.50"), "y": None})
    assert shown(difference) == difference


def test_keys_are_redacted_in_values_names_and_paths() -> None:
    found = shown(Difference("value", "a.s3cret", "a[s3cret]", "http://x/?apikey=s3cret", {"s3cret": ["s3cret"]}))
    assert "s3cret" not in repr(found)


def test_key_is_redacted_before_truncation() -> None:
    text = "x" * 497 + "s3cret"
    assert shown(text) == "x" * 497 + "…"


def test_huge_difference_is_truncated() -> None:
    huge = {f"k{n}": ["x" * 1000] * 1000 for n in range(100)}
    found = shown(Difference("missing", "p" * 10_000, "q" * 10_000, baseline=huge))
    assert len(ENCODER.encode(found)) < 300_000
    assert found.candidate is ABSENT


def test_deep_nesting_is_truncated() -> None:
    deep: list[Any] = []
    for _ in range(500):
        deep = [deep]
    assert len(repr(shown(deep))) < 40


def test_lone_surrogates_can_be_written_to_a_file() -> None:
    found = shown(Difference("value", "a\ud800", "b\udfff", "\ud83d", {"\ud800": "😀"}))
    assert ENCODER.encode(found)
    assert found.candidate == {"�": "😀"}
