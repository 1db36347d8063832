"""A plan that lacks a feature, and a batch that is too complex or too large, break no request for other fields."""

import re
from collections import Counter

from together.environment import ProxyEnvironment, StartEnvironment, single_application, target

import nexar_sandbox

ONE, OTHER, THIRD = {"mpn": "SN74S74N"}, {"mpn": "1N4007"}, {"mpn": "NE555P"}


def unique_numbers(catalog: nexar_sandbox.Catalog, count: int) -> list[str]:
    """Numbers of one part each."""
    parts = list(catalog.parts())
    spellings = Counter(re.sub(r"\W", "", mpn).upper() for part in parts for mpn in (part.mpn, *part.aka_mpns))
    return [part.mpn for part in parts if spellings[re.sub(r"\W", "", part.mpn).upper()] == 1][:count]


async def operations(environment: ProxyEnvironment) -> int:
    """GraphQL requests sent, refused ones among them."""
    metrics = (await environment.get("/metrics")).body.decode()
    counts = re.findall(r'^v3bridge_upstream_requests_total\{.*"supMultiMatch.*\} (\S+)$', metrics, re.MULTILINE)
    return sum(map(int, map(float, counts)))


async def test_feature_that_the_plan_lacks_breaks_only_requests_for_it(start: StartEnvironment) -> None:
    plan = {"applications": single_application(features=frozenset())}
    async with start(sandbox=plan, application={"features": "all"}) as environment:
        (gated,) = await environment.results(ONE, more="&include[]=specs")
        sent = await operations(environment)
        (again,) = await environment.results(ONE, more="&include[]=specs")
        assert "TECH_SPECS" in gated["error"]
        assert again == gated
        assert await operations(environment) == sent + 1 == 3
        (plain,) = await environment.results(ONE)
        assert (plain["error"], len(plain["items"])) == (None, 3)


async def test_other_features_stay_in_parts_without_the_one_that_is_refused(start: StartEnvironment) -> None:
    """What a feature is missing for is fetched with the other request's fields: only the refused one is left out."""
    plan = {"applications": single_application(features=frozenset({"DATASHEETS"}))}
    async with start(sandbox=plan, application={"features": "all"}) as environment:
        first = await environment.get(target(ONE))
        assert (first.headers["x-parts-cost"], environment.billed_parts) == ("6", 3)  # 3 of them uncertain
        assert await operations(environment) == 2
        await environment.results(ONE, more="&include[]=descriptions&include[]=imagesets&include[]=category_uids")
        assert await operations(environment) == 2
        (documented,) = await environment.results(OTHER, more="&include[]=datasheets")
        assert (documented["error"], await operations(environment)) == (None, 3)


async def test_batch_that_is_too_complex_is_halved_for_good(
    start: StartEnvironment, catalog: nexar_sandbox.Catalog
) -> None:
    more = [{"mpn": mpn, "limit": 1} for mpn in unique_numbers(catalog, 31)]
    queries = more[:20]
    # 20 parts have more fields than this, 10 have not.
    async with start(sandbox={"answer_fields": 20_000}) as environment:
        first = await environment.get(target(*queries))
        assert [(each["error"], len(each["items"])) for each in first.json["results"]] == [(None, 1)] * len(queries)
        assert int(first.headers["x-parts-cost"]) == len(queries) + environment.billed_parts == 2 * len(queries)
        assert await operations(environment) == 3
        await environment.results(*more[20:])
        assert await operations(environment) == 5


async def test_batch_whose_response_is_too_large_is_halved_for_good(
    start: StartEnvironment, catalog: nexar_sandbox.Catalog
) -> None:
    queries = [{"mpn": mpn, "limit": 1} for mpn in unique_numbers(catalog, 20)]
    async with start(upstream={"response_bytes": 400_000}) as environment:
        first = await environment.get(target(*queries))
        assert [(each["error"], len(each["items"])) for each in first.json["results"]] == [(None, 1)] * len(queries)
        assert environment.billed_parts == int(first.headers["x-parts-cost"]) == 2 * len(queries)
        assert await operations(environment) == 3
