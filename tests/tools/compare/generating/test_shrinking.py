"""Tests of shrinking: what remains of a request that shows a difference, and what that takes."""

import json
from collections.abc import Callable

import pytest
from support.comparison_server import request_from_target

from proxy.tools.compare.generating import shrinking
from proxy.tools.compare.judging import tally
from proxy.tools.compare.judging.findings import Comparison, Difference, Finding
from proxy.traffic.v3_request import V3Request

SEARCH = "/v3/parts/search?q=op+amp&start=5&include[]=specs&include[]=datasheets&show[]=mpn&sortby=mpn+asc,score+desc"
QUERIES = [{"mpn": f"X{n}", "limit": 7, "reference": n} for n in range(5)]
MATCH = f"/v3/parts/match?queries={json.dumps(QUERIES)}&exact_only=1&include[]=specs"


def compared(request: V3Request, shows: Callable[[V3Request], bool], cause: str = "unexplained") -> Comparison:
    finding = Finding(Difference("value", "hits", "hits", 1, 2), cause)  # type: ignore[arg-type]
    return Comparison(request, 0.0, findings=(finding,) if shows(request) else ())


async def shrunk(target: str, shows: Callable[[V3Request], bool]) -> tuple[V3Request, list[V3Request]]:
    """Shrink the request of a target; return the result, and what was compared on the way."""
    sent: list[V3Request] = []

    async def examine(request: V3Request) -> Comparison:
        sent.append(request)
        return compared(request, shows)

    request = request_from_target(target, origin="generated:7")
    first = compared(request, shows)
    groups = tally.grouped(first, first.findings)
    [group] = (await shrinking.Shrinker(examine, 2).shrink(groups)).values()
    [sample] = group.samples.values()
    return sample.request, sent


@pytest.mark.parametrize(
    "target, needed, left",
    [
        (SEARCH, ("include[]=specs",), "/parts/search?include[]=specs"),
        (SEARCH, ("include[]=specs", "sortby"), "/parts/search?include[]=specs&sortby=mpn"),
        (SEARCH, ("start",), "/parts/search?start=0"),
        (SEARCH, ("q",), "/parts/search?q=op"),
        (MATCH, ("X3",), "/parts/match?queries=[{%22mpn%22:%20%22X3%22}]"),
        (
            MATCH,
            ("X3", "limit", "exact_only"),
            "/parts/match?queries=[{%22mpn%22:%20%22X3%22,%20%22limit%22:%200}]&exact_only=0",
        ),
    ],
)
async def test_what_a_difference_does_not_need_is_dropped_and_values_are_simplified(
    target: str, needed: tuple[str, ...], left: str
) -> None:
    request, sent = await shrunk(target, lambda request: all(each in request.target() for each in needed))
    assert request.target() == left
    assert len({each.id for each in sent}) == len(sent) <= shrinking.STEPS
    before = shrinking.parameters(request_from_target(target))
    assert request.origin == f"generated:7, shrunk from {before} parameters to {shrinking.parameters(request)}"


async def test_request_that_needs_everything_stays() -> None:
    request, sent = await shrunk(SEARCH, lambda request: request == request_from_target(SEARCH, origin="generated:7"))
    assert request.target() == request_from_target(SEARCH).target()
    assert sent


async def test_other_cause_is_another_difference() -> None:
    request = request_from_target(SEARCH)
    first = compared(request, lambda _: True)

    async def examine(smaller: V3Request) -> Comparison:
        return compared(smaller, lambda _: True, cause="order")

    [group] = (await shrinking.Shrinker(examine, 1).shrink(tally.grouped(first, first.findings))).values()
    [sample] = group.samples.values()
    assert sample.request.target() == request.target()


def test_parameters_are_those_of_the_query_and_keys_of_queries_and_the_uid_of_a_path() -> None:
    counts = {
        "/v3/parts/match": 0,
        MATCH: 17,
        "/v3/parts/match?queries=[": 1,
        "/v3/parts/bd4d768f82c5628a?show[]=mpn": 2,
        SEARCH: 6,
    }
    assert {target: shrinking.parameters(request_from_target(target)) for target in counts} == counts
