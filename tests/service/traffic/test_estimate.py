"""Tests of the estimated maximum cost of requests; tests/together/test_costs.py compares it with billed usage."""

import json
from typing import Any

import pytest

from proxy.traffic import estimate
from proxy.traffic.v3_request import V3Request


def match(*queries: Any, more: Any = ()) -> Any:
    return V3Request("/parts/match", (("queries", json.dumps(queries)), *more))


X = {"mpn": "SN74S74N"}
UID = "9cf2558336484335"


@pytest.mark.parametrize(
    "v3_request, parts",
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
        (V3Request("/parts/match", (("queries", "nonsense"),)), 0),
        (V3Request("/parts/match"), 0),
        (V3Request("/parts/search"), 10),
        (V3Request("/parts/search", (("limit", "100"),)), 100),
        (V3Request("/parts/search", (("limit", "100"), ("limit", "7"))), 7),
        (V3Request("/parts/search", (("limit[]", "4"), ("limit[x]", "9"))), 4),
        (V3Request("/parts/search", (("limit", ""),)), 10),
        (V3Request("/parts/search", (("limit", "101"),)), 0),
        (V3Request("/parts/search", (("limit", "ten"),)), 0),
        (V3Request(f"/parts/{UID}"), 1),
        (V3Request("/parts/none"), 0),
        (V3Request("/parts/get_multi", (("uid[]", UID), ("uid[1]", UID), ("uid", "f" * 16), ("uid[]", "x"))), 2),
        (V3Request("/brands/search", (("limit", "100"),)), 0),
        (V3Request("/brands/get_multi", (("uid[]", UID),)), 0),
        (V3Request(f"/categories/{UID}"), 0),
        (V3Request(f"/seller/{UID}"), 0),
        (V3Request("/nowhere"), 0),
    ],
)
def test_request_cost_is_the_maximum_of_its_plan(v3_request: Any, parts: int) -> None:
    assert estimate.worst_case_parts(v3_request) == parts
