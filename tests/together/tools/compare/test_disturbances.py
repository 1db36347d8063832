"""A disturbed baseline: each difference is found with its cause, and nothing else is."""

import pytest
from together.tools.compare.comparison import WHOLE, CompareRequests, reported_differences

from nexar_sandbox.legacy_v3 import disturbances

pytestmark = pytest.mark.asyncio(loop_scope="module")  # of the environment, which is that of the file

Sorts = set[tuple[str, str, str]]  # last field, kind and cause
EXTRA: Sorts = {
    (at, kind, "extra part") for at, kind in (("hits", "value"), ("items[*]", "extra"), ("results[*]", "extra"))
}
MISSING: Sorts = {
    (at, kind, "missing part") for at, kind in (("hits", "value"), ("items[*]", "missing"), ("results[*]", "missing"))
}
SINGLE: Sorts = {("[*]", "extra", "extra part"), ("(status)", "status", "extra part"), ("count", "value", "extra part")}
UPPER_BOUND: Sorts = {("hits", "value", "unsupported")}  # of a number with `*`


async def test_reordered_offers_are_reported_and_count(compare: CompareRequests) -> None:
    result = await compare(WHOLE[:20], disturbances.ReorderedOffers(share=0.5))
    assert reported_differences(result) == {("offers", "order", True)}
    assert (result["verdict"], result["code"]) == ("not ready", 1)


@pytest.mark.parametrize(
    "disturbance, always, rarely",
    [
        # A page shows one more part where another is missing, and vice versa.
        (
            disturbances.FewerParts(),
            EXTRA,
            SINGLE | UPPER_BOUND | {each for each in MISSING if each[0] != "hits"},
        ),
        (
            disturbances.MoreParts(),
            MISSING,
            {("count", "value", "missing part"), ("hits", "uid not known", "unknown uid requested")}
            | {each for each in EXTRA if each[0] != "hits"},
        ),
    ],
)
async def test_parts_of_one_side_only_are_reported_and_count(
    compare: CompareRequests,
    disturbance: disturbances.Disturbance,
    always: Sorts,
    rarely: Sorts,
) -> None:
    """`rarely`: where a request happens to be for such a part by its uid, or for its facet, or filters by a uid that
    the candidate cannot know."""
    result = await compare(WHOLE[::4], disturbance)
    sorts = {(_last(group["path"]), group["kind"], group["cause"]) for group in result["groups"]}
    assert always <= sorts <= always | rarely
    assert all(group["counts"] for group in result["groups"])
    assert (result["verdict"], result["code"]) == ("not ready", 1)


def _last(path: str) -> str:
    return path.rpartition(".")[2]


async def test_slow_service_affects_only_response_times(compare: CompareRequests) -> None:
    result = await compare(WHOLE[:15], disturbances.Slowness(ms=300))
    assert (reported_differences(result), result["code"]) == (set(), 0)
    times = {(each["endpoint"], each["side"]): each for each in result["latencies"]}
    for endpoint, side in times:
        assert times[endpoint, "baseline"]["p50"] >= 0.25, (endpoint, side)


async def test_intermittent_errors_are_failures_and_no_differences(compare: CompareRequests) -> None:
    result = await compare(WHOLE[:20], disturbances.Errors(share=0.15, body="html"))
    assert reported_differences(result) == set()
    assert result["failures"]
    for failure in result["failures"]:
        assert "HTML" in failure["reason"]
        assert failure["reason"].startswith("the baseline ")
    compared = sum(row["requests"] for row in result["rows"])
    assert compared + sum(failure["requests"] for failure in result["failures"]) == 20
    assert {row["share"] for row in result["rows"] if row["requests"]} == {1.0}
