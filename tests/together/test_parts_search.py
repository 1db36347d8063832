"""Tests of parts/search with the sandbox: filters, orders and counts are consistent (contract v3-rest.md §1.1)."""

from itertools import pairwise
from typing import Any
from urllib.parse import quote

import pytest
from support import running_proxy
from together.environment import ProxyEnvironment

R = "specs.resistance.value"


async def search(environment: ProxyEnvironment, status: int = 200, /, **parameters: Any) -> Any:
    """A /parts/search; a list is a repeated parameter, `f` filters fields by their names."""
    filters = {f"filter[fields][{name}][]": value for name, value in parameters.pop("f", {}).items()}
    pairs = [
        (name, each)
        for name, value in {"q": "resistor", "limit": 0, **parameters, **filters}.items()
        for each in (value if isinstance(value, list) else [value])
    ]
    query = "&".join(f"{name}={quote(str(value))}" for name, value in pairs)
    response = await environment.proxy.get(f"/v3/parts/search?apikey={running_proxy.KEY}&{query}")
    assert response.status == status, await response.text()
    return await response.json()


async def hits(environment: ProxyEnvironment, **parameters: Any) -> int:
    return int((await search(environment, **parameters))["hits"])


def included(*fields: str, **more: Any) -> dict[str, Any]:
    return {
        f"facet[fields][{field}][{name}]": value for field in fields for name, value in {"include": 1, **more}.items()
    }


def values(reply: Any, field: str) -> dict[str, int]:
    return {each["value"]: each["count"] for each in reply["facet_results"]["fields"][field]["facets"]}


async def test_search_pages_are_consecutive_and_complete(environment: ProxyEnvironment) -> None:
    pages = [await search(environment, start=start, limit=20, **{"show[]": "uid"}) for start in (0, 20, 40, 60)]
    uids = [result["item"]["uid"] for page in pages for result in page["results"]]
    assert [len(page["results"]) for page in pages] == [20, 20, 20, 18]
    assert len(set(uids)) == pages[0]["hits"] == 78


@pytest.mark.parametrize(
    "field", ["brand.name", "brand.uid", "offers.seller.uid", "offers.seller.id", R, "specs.case_package.value"]
)
async def test_facet_value_as_filter_has_as_many_hits_as_counted(environment: ProxyEnvironment, field: str) -> None:
    counted = values(await search(environment, **included(field, limit=3)), field)
    assert len(counted) == 3
    for value, count in counted.items():
        assert await hits(environment, f={field: value}) == count


async def test_category_filter_includes_subcategories(environment: ProxyEnvironment) -> None:
    counted = values(await search(environment, **included("category_uids")), "category_uids")
    assert sum(counted.values()) == 78
    assert "8a1e4714bb3951d9" not in counted
    assert await hits(environment, f={"category_uids": "8a1e4714bb3951d9"}) == 78


async def test_in_stock_works_as_filter_and_facet(environment: ProxyEnvironment) -> None:
    counted = values(await search(environment, **included("avg_avail")), "avg_avail")
    assert await hits(environment, f={"avg_avail": "[1 TO *]"}) == counted["[1 TO *]"]
    assert await hits(environment, **{"filter[queries][]": "avg_avail:[1 TO *]"}) == counted["[1 TO *]"]
    assert sum(counted.values()) == await hits(environment)


async def test_ranges_and_groups_can_be_combined(environment: ProxyEnvironment) -> None:
    whole = await hits(environment)
    below, above = f"{R}:[* TO 999]", f"{R}:[1000 TO *]"
    split = [await hits(environment, **{"filter[queries][]": text}) for text in (below, above)]
    assert sum(split) == sum(values(await search(environment, **included(R, limit=100)), R).values()) <= whole
    sizes = [
        await hits(environment, **{"filter[queries][]": f"specs.case_package.value:{text}"})
        for text in ("0603", "0805")
    ]
    either = await hits(environment, **{"filter[queries][]": "specs.case_package.value:(0603 or 0805)"})
    assert either == sum(sizes) > max(sizes) > 0


async def test_facet_queries_count_within_the_search(environment: ProxyEnvironment) -> None:
    texts = [f"{R}:[1000 TO *]", 'brand.name:"Yageo"', "avg_avail:[1 TO *]"]
    reply = await search(environment, f={"brand.name": "Yageo"}, **{"facet[queries][]": texts})
    found = {text: each["count"] for text, each in reply["facet_results"]["queries"].items()}
    assert found[texts[1]] == reply["hits"] == 38
    assert found[texts[0]] == await hits(environment, f={"brand.name": "Yageo"}, **{"filter[queries][]": texts[0]})
    assert 0 < found[texts[2]] <= 38


async def test_exclude_filter_counts_without_the_filter_of_its_field(environment: ProxyEnvironment) -> None:
    filtered = {"f": {"brand.name": "Yageo", "specs.case_package.value": "0603"}}
    apart = await search(environment, **filtered, **included("brand.name", exclude_filter=1))
    alone = await search(environment, f={"specs.case_package.value": "0603"}, **included("brand.name"))
    assert values(apart, "brand.name") == values(alone, "brand.name")
    assert apart["hits"] == values(alone, "brand.name")["Yageo"] < alone["hits"]


async def test_facets_are_paged(environment: ProxyEnvironment) -> None:
    whole = list(values(await search(environment, **included("brand.name", limit=100)), "brand.name"))
    page = list(values(await search(environment, **included("brand.name", start=2, limit=3)), "brand.name"))
    assert page == whole[2:5]


async def test_stats_equal_minimum_and_maximum_of_facets(environment: ProxyEnvironment) -> None:
    reply = await search(environment, **included(R, limit=100), **{f"stats[{R}][include]": "true"})
    numbers = sorted(map(float, values(reply, R)))
    stats = reply["stats_results"][R]
    assert (stats["min"], stats["max"]) == (numbers[0], numbers[-1])
    assert reply["spec_metadata"]["resistance"]["unit"]["symbol"] == "Ω"


async def test_drilldown_suggests_filterable_specs(environment: ProxyEnvironment) -> None:
    reply = await search(environment, **{"spec_drilldown[include]": "true", "spec_drilldown[limit]": 3})
    fields = reply["facet_results"]["fields"]
    assert sorted(facet["spec_drilldown_rank"] for facet in fields.values()) == [1, 2, 3]
    assert {f"specs.{key}.value" for key in reply["spec_metadata"]} == set(fields)
    for field in fields:
        value, count = next(iter(values(reply, field).items()))
        assert await hits(environment, f={field: value}) == count


async def test_drilldown_ranks_suggestions_without_requested_specs(environment: ProxyEnvironment) -> None:
    drilldown = {"spec_drilldown[include]": "true", "spec_drilldown[limit]": 2}
    alone = (await search(environment, **drilldown))["facet_results"]["fields"]
    beside = (await search(environment, **drilldown, **{f"stats[{R}][include]": 1}))["facet_results"]["fields"]
    assert {name: facet["spec_drilldown_rank"] for name, facet in beside.items()} == {
        name: facet["spec_drilldown_rank"] for name, facet in alone.items()
    }


@pytest.mark.parametrize("direction", ["asc", "desc"])
async def test_sort_by_spec_orders_parts(environment: ProxyEnvironment, direction: str) -> None:
    shown = {"show[]": f"{R}", "include[]": "specs", "f": {"brand.name": "Yageo"}}
    reply = await search(environment, limit=20, sortby=f"{R} {direction}", **shown)
    found = [float(r["item"]["specs"]["resistance"]["value"][0]) for r in reply["results"] if r["item"]["specs"]]
    assert len(found) > 10
    assert all(one <= other if direction == "asc" else one >= other for one, other in pairwise(found))


async def test_sort_by_brand_and_mpn_orders_parts(environment: ProxyEnvironment) -> None:
    by_brand = await search(environment, limit=55, sortby="brand.name asc", **{"show[]": "brand.name"})
    names = [result["item"]["brand"]["name"].casefold() for result in by_brand["results"]]
    assert names == sorted(names)
    by_mpn = await search(environment, limit=55, sortby="mpn desc, score desc", **{"show[]": "mpn"})
    numbers = [result["item"]["mpn"].casefold() for result in by_mpn["results"]]
    assert numbers == sorted(numbers, reverse=True)


async def test_snippet_highlights_search_terms(environment: ProxyEnvironment) -> None:
    (result,) = (await search(environment, limit=1, **{"show[]": "mpn"}))["results"]
    assert "<strong>resistor</strong>" in result["snippet"]


async def test_concurrent_identical_searches_are_sent_once_and_counts_are_free(environment: ProxyEnvironment) -> None:
    await search(
        environment, limit=2, f={"brand.name": "Yageo"}, **included("brand.name", exclude_filter=1), **included(R)
    )
    brands, page, apart = environment.sent_variables
    assert brands == {}
    assert (page["limit"], apart["limit"]) == (2, 0) or (page["limit"], apart["limit"]) == (0, 2)
    assert environment.billed_parts == 2
