"""Tests of an exhausted monthly quota (contract graphql.md §6)."""

from together.environment import ProxyEnvironment, StartEnvironment, single_application

ONE = {"mpn": "SN74S74N"}
NONE = {"sku": "none such"}
TO_DECEMBER = 1_388_800  # seconds from 2023-11-14T22:13:20Z


async def is_refused(environment: ProxyEnvironment, number: str) -> int:
    """The seconds of Retry-After of a 429."""
    failure = await environment.failure({"mpn": number})
    assert (failure.status, failure.json["__class__"]) == (429, "ClientErrorResponse")
    assert failure.json["message"].startswith("You have exceeded your part limit of 3.")
    return int(failure.headers["retry-after"])


async def test_exhausted_part_limit_is_a_429_until_the_next_month(start: StartEnvironment) -> None:
    async with start(sandbox={"applications": single_application(part_limit=3)}) as environment:
        assert (await environment.results(ONE, NONE))[0]["hits"] == 4
        assert await is_refused(environment, "NE555P") == TO_DECEMBER
        environment.time.advance(1_000)
        assert await is_refused(environment, "1N4007") == TO_DECEMBER - 1_000
        environment.time.advance(TO_DECEMBER - 1_000)
        assert (await environment.results(ONE, NONE))[0]["hits"] == 4
        assert environment.billed_parts == 3


async def test_plan_without_parts_says_so_and_promises_no_date(start: StartEnvironment) -> None:
    async with start(sandbox={"applications": single_application(part_limit=0)}) as environment:
        for _ in range(2):
            failure = await environment.failure({"mpn": "SN74S74N"})
            assert failure.status == 429
            assert failure.json["message"].startswith("this plan has no parts: ")
            assert not {"retry-after", "x-parts-reset"} & set(failure.headers)
            assert failure.headers["x-parts-used"] == "0"
        assert environment.sandbox.request_counts.graphql == 1


async def test_cached_results_are_served_with_an_exhausted_limit(start: StartEnvironment) -> None:
    async with start(sandbox={"applications": single_application(part_limit=3)}) as environment:
        before = await environment.results(ONE, NONE)
        await is_refused(environment, "1N4007")
        assert await environment.results(ONE, NONE) == before


async def test_billed_parts_are_returned_although_their_count_is_refused(start: StartEnvironment) -> None:
    async with start(sandbox={"applications": single_application(part_limit=3)}) as environment:
        (result,) = await environment.results(ONE)
        assert environment.billed_parts == 3
    assert (len(result["items"]), result["error"]) == (3, None)
