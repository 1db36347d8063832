"""Tests of causes that lie in a search: fields without a source, and what the Nexar API does in its own way."""

from typing import Any

import pytest
from support.comparison_server import request_from_target

from proxy.tools.compare.judging.findings import Difference
from proxy.tools.compare.judging.unsupported_uses import UnsupportedUses

SELLERS, PARTS, MATCH = "/v3/sellers/search?", "/v3/parts/search?", "/v3/parts/match?queries=[]"
HITS, RESULT, ITEM = "hits", "results[*]", "results[*].item.mpn"
COUNT, QUERY = "facet_results.fields.has_ecommerce.missing", "facet_results.queries.x.count"
METADATA, STATS = "spec_metadata.resistance", "stats_results.avg_price.min"
FACET = 'facet_results.fields["specs.resistance.value"].facets[*]'
RANK = 'facet_results.fields["specs.resistance.value"].spec_drilldown_rank'
DRILLED, ASKED = "spec_drilldown[include]=1", "facet[fields][specs.resistance.value][include]=1"
A, B = ({"item": {"uid": uid, "mpn": "X1"}} for uid in ("aa", "bb"))
SHOWN = {"hits": 10, "results": [A]}


def cause(causes: Any, target: str, difference: Difference, *unsupported: str, **more: Any) -> str:
    given = {"baseline": SHOWN, "candidate": SHOWN, "all_uids_known": False, **more}
    uses = UnsupportedUses(request_from_target(target), causes, unsupported, **given)
    assert uses.cause(difference, "derived") == "derived"
    return uses.cause(difference, "unexplained")


@pytest.mark.parametrize(
    "target, unsupported, path, expected",
    [
        (f"{SELLERS}filter[fields][has_ecommerce][]=true", (), HITS, "no source"),
        (f"{SELLERS}filter[queries][]=name:x AND has_ecommerce:true", (), RESULT, "no source"),
        (f"{SELLERS}sortby=has_ecommerce+desc", (), RESULT, "no source"),
        (f"{SELLERS}facet[fields][has_ecommerce][include]=1", (), COUNT, "no source"),
        (f"{SELLERS}facet[fields][has_ecommerce][include]=1", (), HITS, "unexplained"),
        (f"{SELLERS}filter[fields][name][]=x", (), HITS, "unexplained"),
        (f"{SELLERS}facet[fields][uid][include]=1", (), "facet_results.fields.uid.facets[*]", "unknown uid requested"),
        (f"{SELLERS}facet[fields][uid][include]=1", (), HITS, "unexplained"),
        (f'{SELLERS}filter[queries][]=uid:"5e1*"', (), HITS, "unknown uid requested"),
        (f"{SELLERS}filter[fields][uid][]=00000000000000aa", (), COUNT, "unknown uid requested"),
        (f"{SELLERS}filter[fields][uid][]=00000000000000aa", (), HITS, "unexplained"),
        (f"{SELLERS}filter[fields][uid][]=2c3be9310496fffc", (), COUNT, "unexplained"),
        (f"{SELLERS}filter[queries][]=name:5e1*", (), HITS, "unexplained"),
        (f"{PARTS}sortby=mpn,avg_price", ("sortby=avg_price",), RESULT, "unsupported"),
        (f"{PARTS}sortby=mpn,avg_price", ("sortby=avg_price",), FACET, "unexplained"),
        (f"{PARTS}sortby=mpn,avg_price", ("sortby=avg_price",), HITS, "unexplained"),
        (f"{PARTS}sortby=mpn,avg_price", ("sortby=avg_price",), "request.q", "unexplained"),
        (f"{PARTS}sortby=mpn", (), RESULT, "unexplained"),
        (f"{PARTS}stats[avg_price][include]=1", ("stats[avg_price]",), STATS, "unsupported"),
        (f"{PARTS}stats[avg_price][include]=1", ("stats[avg_price]",), FACET, "unexplained"),
        (f"{PARTS}stats[avg_price][include]=1", ("stats[avg_price]",), RESULT, "unexplained"),
        (f"{PARTS}facet[queries][]=x", ("facet[queries]=x",), QUERY, "unsupported"),
        (f"{PARTS}facet[queries][]=x", ("facet[queries]=y",), QUERY, "unexplained"),
        (f"{PARTS}{ASKED}", ("facet[fields][specs.resistance.value]",), FACET, "unsupported"),
        (f"{PARTS}{DRILLED}", (), FACET, "unsupported"),
        (f"{PARTS}{DRILLED}", (), HITS, "unexplained"),
        (f"{PARTS}{DRILLED}&facet[queries][]=x", (), QUERY, "unexplained"),
        (f"{PARTS}{DRILLED}&{ASKED}", (), FACET, "unexplained"),
        (f"{PARTS}{DRILLED}&{ASKED}", (), METADATA, "unexplained"),
        (f"{PARTS}{DRILLED}&{ASKED}", (), RANK, "unsupported"),
        (f"{PARTS}spec_drilldown[include]=0", (), FACET, "unexplained"),
        (f"{PARTS}filter[fields][mpn][]=x", (), FACET, "unexplained"),
        (f"{PARTS}filter[fields][mpn][]=x", (), HITS, "unexplained"),
        (f"{PARTS}filter[fields][mpn][]=x&limit=0", (), HITS, "unsupported"),
        (f"{PARTS}filter[fields][mpn][]=x", (), RESULT, "unexplained"),
        (f"{PARTS}filter[fields][mpn][]=x&filter[fields][mpn][]=y", (), RESULT, "unsupported"),
        (f'{PARTS}filter[queries][]=mpn:("x" OR "y")', (), RESULT, "unsupported"),
        (f'{PARTS}filter[queries][]=brand.name:("x" OR "y")', (), RESULT, "unexplained"),
        (f"{PARTS}sortby=specs.resistance_tolerance.value", (), RESULT, "unsupported"),
        (f"{PARTS}sortby=specs.resistance.value", (), RESULT, "unexplained"),
        (MATCH, ("sortby=x",), RESULT, "unexplained"),
    ],
)
def test_cause_lies_in_the_request(
    causes: Any, target: str, unsupported: tuple[str, ...], path: str, expected: str
) -> None:
    assert cause(causes, target, Difference("value", path, path, 1, 2), *unsupported) == expected


def test_ignored_order_changes_a_whole_result_only_in_order(causes: Any) -> None:
    whole, page = {"hits": 1, "results": [A]}, {"hits": 2, "results": [A]}
    order, missing = Difference("order", "results", "results"), Difference("missing", RESULT, "results[aa]")
    for response, choice in ((whole, "unexplained"), (page, "unsupported")):
        both = {"baseline": response, "candidate": response}
        assert cause(causes, f"{PARTS}sortby=x", order, "sortby=x", **both) == "unsupported"
        assert cause(causes, f"{PARTS}sortby=x", missing, "sortby=x", **both) == choice


def test_ignored_order_excuses_other_parts_but_not_the_same(causes: Any) -> None:
    """Two parts of one number are taken for one; a field of one that both pages have may not differ."""
    difference = Difference("value", ITEM, "results[aa].item.mpn", "X1", "X2")
    for other, expected in ((A, "unexplained"), (B, "unsupported")):
        found = cause(causes, f"{PARTS}sortby=x", difference, "sortby=x", candidate={"hits": 10, "results": [other]})
        assert found == expected


def test_ignored_filter_explains_fewer_hits_only(causes: Any) -> None:
    named, hits = "filter[fields][brand.name]=x", Difference("value", HITS, HITS, 10, 0)
    target = f"{PARTS}filter[fields][brand.name][]=x"
    assert cause(causes, target, hits, named, candidate={"hits": 0, "results": []}) == "unsupported"
    assert cause(causes, target, hits, named, candidate={"hits": 11, "results": [A]}) == "unexplained"


def test_hits_of_a_number_with_a_wildcard_are_an_upper_bound(causes: Any) -> None:
    response = {"request": {"queries": [{"mpn": "SN74S74N"}, {"mpn": None, "mpn_or_sku": "SN74*"}]}, "results": []}
    for place, more, expected in ((0, 2, "unexplained"), (1, 2, "unsupported"), (1, 0, "unexplained")):
        difference = Difference("value", "results[*].hits", f"results[{place}].hits", 1, more)
        assert cause(causes, MATCH, difference, baseline=response) == expected
