"""The cause of a difference: from the list of v3 fields, or in the request, where Nexar does it in its own way."""

from typing import Any

import pytest
import yaml
from support import cases
from support.comparison_server import request_from_target

from proxy.kit import shipped
from proxy.tools.compare.judging.causes import SITE, field_at, load_fields
from proxy.tools.compare.judging.findings import CAUSES, Difference
from proxy.tools.compare.judging.unsupported_uses import UnsupportedUses

MATCH, SEARCH, ONE, SEVERAL = "/parts/match", "/parts/search", "/parts/{uid}", "/parts/get_multi"


@cases.parametrize("endpoint, path, field, rest")
def test_field_of_a_path_is_found_through_the_list(endpoint: Any, path: str, field: str, rest: Any) -> None:
    found: Any = field_at(SITE, endpoint, path)
    assert (f"{found.row.object}.{found.row.field}", list(found.rest)) == (field, rest)


@cases.parametrize("endpoint, path")
def test_envelope_paths_have_no_field(endpoint: Any, path: str) -> None:
    assert field_at(SITE, endpoint, path) is None


def test_every_listed_field_is_reachable_from_an_endpoint() -> None:
    """No object of the list is out of reach."""
    objects, found = load_fields(), set()

    def walk(name: Any, path: Any, endpoint: Any, depth: Any) -> None:
        for field, entry in objects[name].items():
            at = f"{path}.{field}".lstrip(".")
            located: Any = field_at(SITE, endpoint, at)
            assert located.row[:2] == (name, field)
            found.add((name, field))
            below = at + ("[*]" if entry.each else ".some_key" if entry.keyed else "")
            target = entry.is_ or entry.each or entry.keyed
            if target and depth:
                walk(target, below, endpoint, depth - 1)

    walk("Part", "", ONE, 6)
    walk("Category", "[*]", "/categories/get_multi", 6)
    assert found == {(name, field) for name, listed in objects.items() for field in listed}


@cases.parametrize("difference, cause")
def test_difference_has_its_cause(causes: Any, difference: Any, cause: str) -> None:
    assert causes.of(MATCH, Difference(*difference)) == cause
    assert cause in CAUSES


@pytest.mark.parametrize(
    "endpoint, path, cause",
    [
        (SEARCH, "results[*]", "extra part"),
        (SEARCH, "results[*].item", "extra part"),
        (SEVERAL, "[*]", "extra part"),
        ("/brands/get_multi", "[*]", "unexplained"),
        (MATCH, "results[*]", "unexplained"),
    ],
)
def test_part_paths_are_recognized_in_every_endpoint(causes: Any, endpoint: Any, path: str, cause: str) -> None:
    assert causes.of(endpoint, Difference("extra", path, path, candidate={})) == cause


def test_difference_between_two_errors_is_the_shape_of_errors(causes: Any) -> None:
    assert causes.of(MATCH, Difference("value", "message", "message", "a", "b"), refused=True) == "error shape"
    assert causes.of(MATCH, Difference("status", "(status)", "(status)", 403, 400), refused=True) == "status"


@pytest.mark.parametrize(
    "endpoint, baseline, candidate, cause",
    [
        (ONE, 200, 404, "missing part"),
        (ONE, 404, 200, "extra part"),
        (ONE, 200, 503, "status"),
        ("/brands/{uid}", 200, 404, "status"),
    ],
)
def test_part_unknown_to_one_side_is_missing_or_extra(
    causes: Any, endpoint: Any, baseline: int, candidate: int, cause: str
) -> None:
    assert causes.of(endpoint, Difference("status", "(status)", "(status)", baseline, candidate)) == cause


SELLERS, PARTS, MATCHES = "/v3/sellers/search?", "/v3/parts/search?", "/v3/parts/match?queries=[]"
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
        (f"{PARTS}sortby=mpn,", (), RESULT, "unexplained"),
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
        (MATCHES, ("sortby=x",), RESULT, "unexplained"),
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
        assert cause(causes, MATCHES, difference, baseline=response) == expected


def test_catalog_site_name_is_inserted() -> None:
    assert "shop_url" in load_fields("shop")["Part"]


def test_fields_without_source_are_those_that_mappings_give_up() -> None:
    """By a rule that says `none` or `always`, or without a rule (contract graphql.md §10)."""
    listed = {
        f"{name}.{field}"
        for name, fields in load_fields("{site}").items()
        for field, entry in fields.items()
        if entry.kind == "no source"
    }
    files = [file for file in shipped("mappings").glob("*.yaml")]
    objects = {name: rules for file in files for name, rules in yaml.safe_load(file.read_text("utf-8")).items()}
    given_up = {
        f"{name}.{field}"
        for name, rules in objects.items()
        if isinstance(rules, dict) and "reads" in rules
        for field, rule in rules["fields"].items()
        if isinstance(rule, dict) and rule.keys() & {"none", "always"}
    }
    assert len(given_up) > 10
    assert listed - given_up == {"Category.imagesets", "Seller.has_ecommerce"}
    assert given_up <= listed
