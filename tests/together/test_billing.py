"""Tests of the cost of each endpoint in parts, by the sandbox's counter, as endpoints.py documents it.

For /parts/match see also test_match_billing.py.
"""

import json
from typing import Any
from urllib.parse import quote

import pytest
from support import cases, running_proxy
from together.environment import ProxyEnvironment, StartEnvironment, single_application, target

from proxy.v3 import endpoints

TI = "9cf2558336484335"
OLD, NEW = "103cdb613d20cffb", "bd4d768f82c5628a"
NOBODY = "ffffffffffffffff"
R = "specs.resistance.value"

MATCH = [
    ([{"mpn": "SN74S74N", "limit": 20}], 4),
    ([{"mpn": "SN74S74N", "limit": 20}, {"mpn": "none-such"}], 4),  # of several, matches alone
    ([{"mpn": "none-such"}], 0),
]
COUNTS = (
    "facet[fields][brand.name][include]=1&facet[fields][brand.name][exclude_filter]=1"
    f"&facet[fields][{R}][include]=1&stats[{R}][include]=1&stats[{R}][exclude_filter]=1"
    f"&facet[queries][]={R}:[1000+TO+*]&facet[queries][]=avg_avail:[1+TO+*]"
    "&spec_drilldown[include]=1&spec_drilldown[exclude_filter]=1"
)
COSTS = [
    *((f"/v3/parts/match?queries={quote(json.dumps(queries))}", parts) for queries, parts in MATCH),
    ("/v3/parts/search?q=resistor", 10),
    ("/v3/parts/search?q=resistor&limit=100", 78),
    ("/v3/parts/search?q=resistor&start=73", 5),
    ("/v3/parts/search?q=resistor&start=78", 0),
    ("/v3/parts/search?q=resistor&limit=0", 0),
    ("/v3/parts/search?q=none-such", 0),
    ("/v3/parts/search?q=resistor&limit=7&show[]=mpn", 7),
    ("/v3/parts/search?q=resistor&limit=7&show[]=no_such_field", 7),
    (f"/v3/parts/search?q=resistor&limit=2&filter[fields][brand.name][]=Yageo&{COUNTS}", 2),
    (f"/v3/parts/search?q=resistor&limit=0&filter[fields][brand.name][]=Yageo&{COUNTS}", 0),
    (f"/v3/parts/{TI}", 1),
    (f"/v3/parts/{OLD}", 1),
    (f"/v3/parts/{NOBODY}", 0),
    ("/v3/parts/no-uid", 0),
    (f"/v3/parts/get_multi?uid[]={TI}&uid[]={NOBODY}&uid[]={TI}&uid[]=no-uid", 1),  # unknown ones and repeated ones
    (f"/v3/parts/get_multi?uid[]={TI}&uid[]={NEW}", 2),
    (f"/v3/parts/get_multi?uid[]={OLD}&uid[]={NEW}", 1),  # two uids that lead to one part
    ("/v3/brands/search?q=texas&facet[fields][name][include]=1", 0),
    ("/v3/brands/2239e3330e2df5fe", 0),
    ("/v3/brands/get_multi?uid[]=2239e3330e2df5fe", 0),
    ("/v3/sellers/search?q=*", 0),
    ("/v3/sellers/2c3be9310496fffc", 0),
    ("/v3/seller/2c3be9310496fffc", 0),
    ("/v3/sellers/get_multi?uid[]=2c3be9310496fffc", 0),
    ("/v3/categories/search?stats[num_parts][include]=1", 0),
    ("/v3/categories/8a1e4714bb3951d9", 0),
    ("/v3/categories/get_multi?uid[]=8a1e4714bb3951d9", 0),
]


async def ask(environment: ProxyEnvironment, target: str) -> Any:
    return await environment.proxy.get(f"{target}{'&' if '?' in target else '?'}apikey={running_proxy.KEY}")


@pytest.mark.parametrize("target, parts", COSTS, ids=lambda value: str(value)[:60])
async def test_billed_parts_match_the_table(environment: ProxyEnvironment, target: str, parts: int) -> None:
    response = await ask(environment, target)
    assert response.status in (200, 404)
    assert environment.billed_parts == parts
    metrics = await (await environment.proxy.get("/metrics")).text()
    assert f'v3bridge_parts_returned_total{{application="demo"}} {parts:.1f}' in metrics or not parts


def test_billing_table_has_every_endpoint() -> None:
    paths = {target.partition("?")[0].removeprefix("/v3") for target, _ in COSTS}
    for endpoint in endpoints.ENDPOINTS:
        start = endpoint.path.partition("{")[0]
        assert any(path == start or (start.endswith("/") and path.startswith(start)) for path in paths), endpoint.path


def test_lists_are_documented_as_free_and_parts_are_not() -> None:
    said = {endpoint.path: endpoint.cost.startswith("nothing") for endpoint in endpoints.ENDPOINTS}
    assert all(free is not path.startswith("/parts") for path, free in said.items())


@cases.parametrize(
    "target",
    f"/v3/parts/{TI}?slice[offers]=x",
)
async def test_bad_request_is_free_and_not_sent_upstream(environment: ProxyEnvironment, target: str) -> None:
    assert (await ask(environment, target)).status == 400
    assert (environment.billed_parts, environment.sandbox.request_counts.graphql) == (0, 0)


@pytest.mark.parametrize("is_billed", [False, True])
@pytest.mark.parametrize(
    "sandbox",
    [{"applications": single_application(features=frozenset())}, {"answer_fields": 4_000}],
    ids=["features that the plan lacks", "operation that is too complex"],
)
async def test_refused_operations_are_counted_billed_or_not(
    start: StartEnvironment, sandbox: dict[str, Any], is_billed: bool
) -> None:
    refusing = {**sandbox, "bill_refused": is_billed}
    queries = [{"mpn": mpn, "limit": 1} for mpn in ("1N4007", "LM358", "NE555P", "SN74S74N")]
    async with start(sandbox=refusing, application={"features": "all"}) as environment:
        first = await environment.get(target(*queries))
        assert [(each["error"], len(each["items"])) for each in first.json["results"]] == [(None, 1)] * len(queries)
        then = await environment.get(target({"mpn": "none such"}))
        returned = len(queries)
        assert environment.billed_parts > returned if is_billed else environment.billed_parts == returned
        assert returned < int(then.headers["x-parts-used"]) >= environment.billed_parts
