"""Tests of the estimated maximum cost of requests against the usage that the sandbox bills.

Every request costs at most the estimate, and exactly the estimate if the catalog has enough matching parts.
"""

import json
from typing import Any

import pytest
from support import running_proxy
from together.environment import ProxyEnvironment, StartEnvironment

from proxy.traffic import estimate
from proxy.traffic.v3_request import V3Request

DAY = 86_401
TI = "9cf2558336484335"
TEXTS = ({"mpn": "SN74S74N"}, {"mpn": "LM358"}, {"mpn": "SN74*"}, {"mpn": "SN74*N"}, {"mpn": "*74*"}, {"q": "resistor"})
OTHERS = ({"sku": "67K1122"}, {"mpn_or_sku": "SN74S74N"}, {"mpn": "SN74S74N", "brand": "Texas Instruments"}, {"mpn": 5})
EXACT = ("exact_only", "true")


def match(*queries: dict[str, Any], more: tuple[tuple[str, str], ...] = ()) -> V3Request:
    return V3Request("/parts/match", (("queries", json.dumps(queries)), *more))


VARIETY = [
    *(match({**text, "limit": limit}) for text in TEXTS for limit in (0, 1, 3, 20)),
    *(match({**text, "start": 10, "limit": 10}) for text in TEXTS),
    *(match(text, more=(EXACT,)) for text in (*TEXTS, *OTHERS)),
    *(match(text) for text in OTHERS),
    match(*TEXTS, *OTHERS),
    match(*TEXTS, *OTHERS, more=(EXACT,)),
    match(*[{**text, "limit": 20} for text in (*TEXTS, *OTHERS) for _ in range(2)]),
    V3Request("/parts/match", (("queries", "nonsense"),)),
    *(V3Request("/parts/search", (("q", "resistor"), ("limit", str(limit)))) for limit in (0, 1, 10, 100, 101)),
    V3Request(
        "/parts/search",
        (("q", "resistor"), ("facet[fields][brand.name][include]", "1"), ("stats[avg_avail][include]", "1")),
    ),
    V3Request("/parts/get_multi", (("uid[]", TI), ("uid[]", TI), ("uid[]", "f" * 16), ("uid[]", "nonsense"))),
    V3Request(f"/parts/{TI}"),
    V3Request("/parts/ffffffffffffffff"),
    V3Request("/brands/search", (("q", "texas"), ("limit", "100"))),
    V3Request("/categories/get_multi", (("uid[]", "5c6a91606d4187ad"),)),
]
FULL = [
    (match({"q": "resistor", "limit": 20}), 20),
    (match({"q": "resistor"}, {"mpn": "SN74S74N", "limit": 1}), 4),
    (V3Request("/parts/search", (("q", "resistor"), ("limit", "50"))), 50),
    (V3Request(f"/parts/{TI}"), 1),
]


async def billed(environment: ProxyEnvironment, request: V3Request) -> int:
    environment.time.advance(DAY)  # nothing is stored any more
    before = environment.billed_parts
    await environment.get("/v3" + request.target(running_proxy.KEY))
    return environment.billed_parts - before


@pytest.mark.parametrize("single", ["supSearchMpn", "supMultiMatch"])
async def test_no_request_costs_more_than_estimated(start: StartEnvironment, single: str) -> None:
    async with start(translation={"single_query": single}) as environment:
        costs = {request.target(): await billed(environment, request) for request in VARIETY}
    worst = {request.target(): estimate.worst_case_parts(request) for request in VARIETY}
    assert {target: (cost, worst[target]) for target, cost in costs.items() if cost > worst[target]} == {}
    assert sum(costs.values()) > 150


async def test_requests_with_enough_hits_cost_the_estimate(start: StartEnvironment) -> None:
    async with start() as environment:
        assert [await billed(environment, request) for request, _ in FULL] == [parts for _, parts in FULL]
    assert [estimate.worst_case_parts(request) for request, _ in FULL] == [parts for _, parts in FULL]
