"""What calls cost at worst, by arithmetic; tests/integration/test_estimate.py holds it against what is billed."""

import json
from typing import Any

import pytest

from proxy.compare import estimate
from proxy.compare.calls import Call


def match(*queries: Any, more: Any = ()) -> Any:
    return Call("/parts/match", (("queries", json.dumps(queries)), *more))


X = {"mpn": "SN74S74N"}
UID = "9cf2558336484335"


@pytest.mark.parametrize(
    "call, parts",
    [
        (match(X), 3),
        (match({**X, "limit": 20}), 20),
        (match({**X, "limit": 0}), 0),
        (match(*[X] * 20), 60),
        (match(*[{**X, "limit": 20}] * 20), 400),
        (match({"mpn": "SN74*"}), 3),
        (match({"mpn": "SN74*N"}), 20),
        (match({"mpn": "SN74*N", "start": 60, "limit": 5}), 65),
        (match(X, more=[("exact_only", "true")]), 20),
        (match(X, more=[("exact_only[]", "")]), 20),
        (match(X, more=[("exact_only", "true"), ("exact_only", "0")]), 3),
        (match(X, more=[("exact_only", "maybe")]), 0),
        (match({"q": "flip flop"}, more=[("exact_only", "1")]), 3),
        (match(X, {"brand": 7}, {}, 5, {"mpn": "--"}, {**X, "limit": 21}), 3),
        (match(*[X] * 21), 0),
        (Call("/parts/match", (("queries", "nonsense"),)), 0),
        (Call("/parts/match"), 0),
        (Call("/parts/search"), 10),
        (Call("/parts/search", (("limit", "100"),)), 100),
        (Call("/parts/search", (("limit", "100"), ("limit", "7"))), 7),
        (Call("/parts/search", (("limit[]", "4"), ("limit[x]", "9"))), 4),
        (Call("/parts/search", (("limit", ""),)), 10),
        (Call("/parts/search", (("limit", "101"),)), 0),
        (Call("/parts/search", (("limit", "ten"),)), 0),
        (Call(f"/parts/{UID}"), 1),
        (Call("/parts/none"), 0),
        (Call("/parts/get_multi", (("uid[]", UID), ("uid[1]", UID), ("uid", "f" * 16), ("uid[]", "x"))), 2),
        (Call("/brands/search", (("limit", "100"),)), 0),
        (Call("/brands/get_multi", (("uid[]", UID),)), 0),
        (Call(f"/categories/{UID}"), 0),
        (Call(f"/seller/{UID}"), 0),
        (Call("/nowhere"), 0),
    ],
)
def test_a_call_costs_what_its_plan_could_return(call: Any, parts: int) -> None:
    assert estimate.parts_at_worst(call) == parts


def test_an_estimate_adds_up_by_endpoint() -> None:
    calls = [Call("/parts/search", times=5), match(X), match({**X, "limit": 20}), Call(f"/seller/{UID}", times=9)]
    found = estimate.of(calls)
    assert found.rows == (
        estimate.Row("/parts/match", 2, 2, 23),
        estimate.Row("/parts/search", 1, 5, 10),
        estimate.Row("/sellers/{uid}", 1, 9, 0),
    )
    assert (found.calls, found.asked, found.parts) == (4, 16, 33)
    assert estimate.of([]).parts == 0
