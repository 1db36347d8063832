"""Parts by GraphQL: what documents may say in several ways."""

from typing import Any

import pytest
from support import running_proxy


@pytest.mark.parametrize("order", [({}, {"brokers": None}), ({"brokers": None}, {})])
async def test_null_is_not_a_variable_without_a_value(pair: Any, order: Any) -> None:
    """Null is an error of each part; without a value the argument has its default, in whatever order they come."""
    document = (
        'query ($brokers: Boolean) { supParts(ids: ["1"]) { mpn sellers(includeBrokers: $brokers) { isBroker } } }'
    )
    async with pair() as both:
        for variables in order:
            await both.assert_same(document, variables)
        billed = both.billed
        assert (await both.ask(document, {})).headers["X-Parts-Cost"] == "0"
        assert (both.billed, (await both.ask('{ supParts(ids: ["1"]) { mpn } }')).headers["X-Cache"]) == (billed, "hit")


async def test_empty_operation_name_is_none(pair: Any) -> None:
    async with pair() as both:
        for path in ("/graphql", "/api/v4/endpoint"):
            sent = {"query": "query Name { __typename }", "operationName": ""}
            reply = await both.post(f"{both.environment.proxy.url}{path}", sent, token=running_proxy.KEY)
            assert (reply.status, reply.data) == (200, {"__typename": "Query"})


@pytest.mark.parametrize("name", ["supSearch", "supSearchMpn"])
async def test_arguments_that_change_nothing_cost_nothing(pair: Any, name: str) -> None:
    """Programs send null, or the default, for what others leave out."""
    document = f"""query ($start: Int, $stock: Boolean, $filters: Map, $sort: String, $limit: Int = 2) {{
      {name}(q: "SN74", start: $start, limit: $limit, inStockOnly: $stock, filters: $filters, sort: $sort) {{
        hits results {{ part {{ mpn }} }} }} }}"""
    async with pair() as both:
        first = await both.assert_same(document)
        billed = both.billed
        nothing: tuple[dict[str, Any], ...] = (
            {"start": None, "stock": None, "filters": None, "sort": None},
            {"start": 0},
            {"stock": False, "filters": {}},
        )
        for variables in nothing:
            again = await both.ask(document, variables)
            assert (again.data, again.headers["X-Parts-Cost"], both.billed) == (first.data, "0", billed), variables
        for changed in ({"start": 1}, {"limit": 1}, {"limit": 0}, {"sort": "median_price_1000"}):
            await both.assert_same(document, changed)
        assert both.billed > billed


@pytest.mark.parametrize("name", ["supSearch", "supSearchMpn"])
async def test_search_without_hits_has_null_results_from_the_store_too(pair: Any, name: str) -> None:
    """Programs test for null."""
    async with pair() as both:
        for source in ("miss", "hit"):
            reply = await both.assert_same(f'{{ {name}(q: "no such number") {{ hits results {{ part {{ mpn }} }} }} }}')
            assert (reply.data, reply.headers["X-Cache"]) == ({name: {"hits": 0, "results": None}}, source)
        behind = f'{{ {name}(q: "SN74S74N", start: 900) {{ hits results {{ part {{ mpn }} }} }} }}'
        assert (await both.assert_same(behind)).data[name]["results"] == []
