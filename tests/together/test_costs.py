"""What requests cost, by the sandbox's counter: as the documentation of the endpoints says, and at most what is
estimated before."""

import json
from typing import Any
from urllib.parse import quote

import pytest
from support import running_proxy
from together.environment import StartEnvironment

from proxy.traffic import estimate
from proxy.traffic.v3_request import V3Request, parse_target
from proxy.v3 import endpoints

DAY = 86_401
TI = "9cf2558336484335"
OLD, NEW = "103cdb613d20cffb", "bd4d768f82c5628a"
NOBODY = "ffffffffffffffff"
R = "specs.resistance.value"
COUNTS = (
    "facet[fields][brand.name][include]=1&facet[fields][brand.name][exclude_filter]=1"
    f"&facet[fields][{R}][include]=1&stats[{R}][include]=1&stats[{R}][exclude_filter]=1"
    f"&facet[queries][]={R}:[1000+TO+*]&facet[queries][]=avg_avail:[1+TO+*]"
    "&spec_drilldown[include]=1&spec_drilldown[exclude_filter]=1"
)
COSTS = [
    ("/v3/parts/search?q=resistor", 10),
    ("/v3/parts/search?q=resistor&limit=100", 78),
    ("/v3/parts/search?q=resistor&start=73", 5),
    ("/v3/parts/search?q=resistor&start=78", 0),
    ("/v3/parts/search?q=resistor&limit=0", 0),
    ("/v3/parts/search?q=none-such", 0),
    ("/v3/parts/search?q=resistor&limit=7&show[]=no_such_field", 7),
    (f"/v3/parts/search?q=resistor&limit=2&filter[fields][brand.name][]=Yageo&{COUNTS}", 2),
    (f"/v3/parts/{TI}", 1),
    (f"/v3/parts/{OLD}", 1),
    (f"/v3/parts/{NOBODY}", 0),
    (f"/v3/parts/get_multi?uid[]={TI}&uid[]={NOBODY}&uid[]={TI}&uid[]=no-uid", 1),  # unknown ones and repeated ones
    (f"/v3/parts/get_multi?uid[]={TI}&uid[]={NEW}", 2),
    (f"/v3/parts/get_multi?uid[]={OLD}&uid[]={NEW}", 2),  # both lead to one part
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
ONE, STAR = {"mpn": "SN74S74N"}, {"mpn": "atmega328*"}
# Queries of /parts/match, and the parts that they cost by supMultiMatch, and where a single one goes by supSearchMpn,
# which bills partial matches, too.
MATCHES: list[tuple[list[dict[str, Any]], int, int]] = [
    ([ONE], 3, 3),
    ([{**ONE, "limit": 20}], 4, 6),
    ([{**ONE, "limit": 0}], 0, 0),
    ([{"mpn": "SN74S7"}], 0, 3),
    ([{"mpn": "none-such-number"}], 0, 0),
    ([ONE, ONE], 3, 3),
    ([{**ONE, "limit": 20}, {"mpn": "none-such-number"}], 4, 4),
    ([{**ONE, "brand": "TI"}], 1, 1),
    ([{"sku": "67K1122"}], 1, 1),
    ([{"mpn_or_sku": "67K1122"}], 1, 1),
    ([{"sku": "67K1122", "seller": "Digi-Key"}], 0, 0),
    ([{"q": "flip-flop"}], 3, 3),
    ([STAR], 3, 3),
    ([{**STAR, "limit": 20}], 5, 5),
    ([{"q": "flip-flop"}, STAR, ONE, {"sku": "67K1122"}], 10, 10),
    ([{}], 0, 0),
    ([STAR, {"mpn": "X", "limit": 21}, {"mpn": "a*"}], 3, 3),
]
EXACT = "&exact_only=true"


def match(queries: list[dict[str, Any]], more: str = "") -> str:
    return f"/v3/parts/match?queries={quote(json.dumps(queries))}{more}"


@pytest.mark.parametrize("single", ["supMultiMatch", "supSearchMpn"])
async def test_billed_parts_are_those_of_the_table_and_at_most_the_estimate(
    start: StartEnvironment, single: str
) -> None:
    known: list[tuple[str, int | None]] = [*COSTS]
    for queries, by_multi_match, by_search in MATCHES:
        known.append((match(queries), by_multi_match if single == "supMultiMatch" else by_search))
        known.append((match(queries, EXACT), None))
    total = 0
    async with start(translation={"single_query": single}) as environment:
        for target, parts in known:
            environment.time.advance(DAY)  # nothing is stored any more
            before = environment.billed_parts
            reply = await environment.get(f"{target}{'&' if '?' in target else '?'}apikey={running_proxy.KEY}")
            billed = environment.billed_parts - before
            total += billed
            assert (reply.status in (200, 404), billed) == (True, billed if parts is None else parts), target
            path, query, _ = parse_target(target)
            assert billed <= estimate.worst_case_parts(V3Request(path, query)), target
        metrics = (await environment.get("/metrics")).body.decode()
        assert f'v3bridge_parts_returned_total{{application="demo"}} {total:.1f}' in metrics


def test_table_has_every_endpoint_and_those_of_lists_are_documented_as_free() -> None:
    paths = {target.partition("?")[0].removeprefix("/v3") for target in (*(each for each, _ in COSTS), match([]))}
    for endpoint in endpoints.ENDPOINTS:
        start = endpoint.path.partition("{")[0]
        assert any(path == start or (start.endswith("/") and path.startswith(start)) for path in paths), endpoint.path
        assert endpoint.cost.startswith("nothing") is not endpoint.path.startswith("/parts")
