"""Tests of causes that lie in a search: fields without a source, and what the Nexar API does in its own way."""

from typing import Any

import pytest
from support.comparison_server import request_from_target

from proxy.tools.compare.judging.findings import Difference
from proxy.tools.compare.judging.unsupported_uses import UnsupportedUses
from proxy.traffic.v3_response import SideResponse

SELLERS, PARTS = "/v3/sellers/search?", "/v3/parts/search?"
HITS, RESULT, ITEM, COUNT = "hits", "results[*]", "results[*].item.mpn", "facet_results.fields.has_ecommerce.missing"
METADATA, FACET = "spec_metadata.resistance", 'facet_results.fields["specs.resistance.value"].facets[*]'


@pytest.mark.parametrize(
    "target, unsupported, path, cause",
    [
        (f"{SELLERS}filter[fields][has_ecommerce][]=true", (), HITS, "no source"),
        (f"{SELLERS}filter[queries][]=name:x AND has_ecommerce:true", (), RESULT, "no source"),
        (f"{SELLERS}sortby=has_ecommerce+desc", (), RESULT, "no source"),
        (f"{SELLERS}facet[fields][has_ecommerce][include]=1", (), COUNT, "no source"),
        (f"{SELLERS}facet[fields][has_ecommerce][include]=1", (), HITS, "unexplained"),
        (f"{SELLERS}filter[fields][name][]=x", (), HITS, "unexplained"),
        (f"{SELLERS}facet[fields][uid][include]=1", (), "facet_results.fields.uid.facets[*]", "unknown uid requested"),
        (f"{PARTS}sortby=mpn,avg_price", ("sortby=avg_price",), ITEM, "unsupported"),
        (f"{PARTS}sortby=mpn,avg_price", ("sortby=avg_price",), "request.q", "unexplained"),
        (f"{PARTS}sortby=mpn", (), ITEM, "unexplained"),
        (f"{PARTS}stats[avg_price][include]=1", ("stats[avg_price]",), FACET, "unsupported"),
        (f"{PARTS}stats[avg_price][include]=1", ("stats[avg_price]",), RESULT, "unexplained"),
        (f"{PARTS}spec_drilldown[include]=true", (), FACET, "unsupported"),
        (f"{PARTS}spec_drilldown[include]=0", (), FACET, "unexplained"),
        (f"{PARTS}filter[fields][mpn][]=x", (), METADATA, "unsupported"),
        (f"{PARTS}filter[fields][mpn][]=x", (), FACET, "unexplained"),
        ("/v3/parts/match?queries=[]", ("sortby=x",), RESULT, "unexplained"),
    ],
)
def test_cause_lies_in_the_request(
    causes: Any, target: str, unsupported: tuple[str, ...], path: str, cause: str
) -> None:
    response = SideResponse(200, b'{"hits": 3}', 0.1, unsupported=unsupported)
    uses = UnsupportedUses(request_from_target(target), causes, response, all_uids_known=False)
    assert uses.cause(Difference("value", path, path, 1, 2), "unexplained") == cause
    assert uses.cause(Difference("value", path, path, 1, 2), "derived") == "derived"


def test_specs_of_a_search_without_hits_are_not_described(causes: Any) -> None:
    for hits, cause in ((0, "unsupported"), (10, "unexplained")):
        response = SideResponse(200, b'{"hits":%d}' % hits, 0.1)
        uses = UnsupportedUses(request_from_target(PARTS), causes, response, all_uids_known=True)
        assert uses.cause(Difference("missing", METADATA, METADATA), "unexplained") == cause


def test_order_of_known_uids_is_no_excuse(causes: Any) -> None:
    request, response = request_from_target(f"{SELLERS}sortby=uid"), SideResponse(200, b"{}", 0.1)
    uses = UnsupportedUses(request, causes, response, all_uids_known=True)
    assert uses.cause(Difference("order", "results", "results"), "order") == "order"
