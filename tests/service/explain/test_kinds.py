"""Requests that differ in values only are of one kind."""

import pytest

from proxy.explain import kinds
from proxy.traffic.v3_request import V3Request, parse_target


def request(target: str, times: int = 1) -> V3Request:
    path, query, _ = parse_target(target)
    return V3Request(path, query, times=times, origin="log:1")


@pytest.mark.parametrize(
    "first, second, equal",
    [
        ('/v3/parts/match?queries=[{"mpn":"A1"}]', '/v3/parts/match?queries=[{"mpn":"B2","limit":null}]', True),
        ('/v3/parts/match?queries=[{"mpn":"A1"}]', '/v3/parts/match?queries=[{"sku":"A1"}]', False),
        ('/v3/parts/match?queries=[{"mpn":"A1"}]', '/v3/parts/match?queries=[{"mpn":"A1"},{"mpn":"B"}]', False),
        ('/v3/parts/match?queries=[{"mpn":"A1"}]&include[]=specs', '/v3/parts/match?queries=[{"mpn":"A1"}]', False),
        ("/v3/parts/search?q=a&limit=3", "/v3/parts/search?limit=4&q=b", True),
        ("/v3/parts/get_multi?uid[]=a", "/v3/parts/get_multi?uid[0]=b&uid[1]=c", True),
        ("/v3/seller/1", "/v3/sellers/2", True),
        ("/v3/parts/match?queries=x", "/v3/parts/match?queries=", True),
    ],
)
def test_kind(first: str, second: str, equal: bool) -> None:
    assert (kinds.key_of(request(first)) == kinds.key_of(request(second))) is equal
