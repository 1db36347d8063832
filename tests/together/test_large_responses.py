"""A response that is too large is fetched in halves, and its parts are counted."""

import re
from collections import Counter

import pytest
from together.environment import ProxyEnvironment, StartEnvironment, target

import nexar_sandbox
from proxy.upstream import http_post


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


async def test_batch_whose_response_is_too_large_is_halved_for_good(
    start: StartEnvironment, catalog: nexar_sandbox.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_post, "LONGEST", 400_000)
    queries = [{"mpn": mpn, "limit": 1} for mpn in unique_numbers(catalog, 20)]
    async with start() as environment:
        first = await environment.get(target(*queries))
        assert [(each["error"], len(each["items"])) for each in first.json["results"]] == [(None, 1)] * len(queries)
        # The first operation has one query, the next one the other 19, and those after it nine at most.
        assert environment.billed_parts == int(first.headers["x-parts-cost"]) == 1 + 2 * (len(queries) - 1)
        assert await operations(environment) == 5
