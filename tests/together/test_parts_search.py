"""Tests of parts/search with the sandbox: filters, orders and counts are consistent (contract v3-rest.md §1.1)."""

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


@pytest.mark.parametrize(
    "field", ["brand.name", "brand.uid", "offers.seller.uid", "offers.seller.id", R, "specs.case_package.value"]
)
async def test_facet_value_as_filter_has_as_many_hits_as_counted(environment: ProxyEnvironment, field: str) -> None:
    counted = values(await search(environment, **included(field, limit=3)), field)
    assert len(counted) == 3
    for value, count in counted.items():
        assert await hits(environment, f={field: value}) == count


async def test_in_stock_works_as_filter_and_facet(environment: ProxyEnvironment) -> None:
    counted = values(await search(environment, **included("avg_avail")), "avg_avail")
    assert await hits(environment, f={"avg_avail": "[1 TO *]"}) == counted["[1 TO *]"]
    assert await hits(environment, **{"filter[queries][]": "avg_avail:[1 TO *]"}) == counted["[1 TO *]"]
    assert sum(counted.values()) == await hits(environment)


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


async def test_snippet_is_plain_text(environment: ProxyEnvironment) -> None:
    (result,) = (await search(environment, limit=1, **{"show[]": "mpn"}))["results"]
    assert "resistor" in result["snippet"]
    assert "<" not in result["snippet"]


async def test_counts_beside_a_search_are_free(environment: ProxyEnvironment) -> None:
    await search(
        environment, limit=2, f={"brand.name": "Yageo"}, **included("brand.name", exclude_filter=1), **included(R)
    )
    brands, *searches = environment.sent_variables
    assert brands == {}
    assert sorted(variables["limit"] for variables in searches) == [0, 0, 2]
    assert environment.billed_parts == 2
