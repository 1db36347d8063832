"""Tests of an exhausted monthly quota, and of plans without features (contract graphql.md §6)."""

import pytest
from together.environment import ProxyEnvironment, StartEnvironment, single_application

import nexar_sandbox

ONE = {"mpn": "SN74S74N"}
NONE = {"sku": "none such"}
TO_DECEMBER = 1_388_800  # seconds from 2023-11-14T22:13:20Z
GATED = "&include[]=specs&include[]=datasheets&include[]=cad_models&include[]=compliance_documents"


async def is_refused(environment: ProxyEnvironment, number: str) -> int:
    """The seconds of Retry-After of a 429."""
    failure = await environment.failure({"mpn": number})
    assert (failure.status, failure.json["__class__"]) == (429, "ClientErrorResponse")
    assert failure.json["message"].startswith("You have exceeded your part limit of 3.")
    return int(failure.headers["retry-after"])


@pytest.mark.parametrize("status", [200, 500])
async def test_exhausted_part_limit_is_a_429_until_the_next_month(start: StartEnvironment, status: int) -> None:
    async with start(
        sandbox={
            "applications": single_application(part_limit=3),
            "behavior": nexar_sandbox.Behavior(part_limit_status=status),
        }
    ) as environment:
        assert (await environment.results(ONE, NONE))[0]["hits"] == 4
        assert await is_refused(environment, "SN74S74N") == TO_DECEMBER
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


async def test_exhausted_part_limit_is_not_retried_before_the_next_month(start: StartEnvironment) -> None:
    async with start(sandbox={"applications": single_application(part_limit=3)}) as environment:
        await environment.results(ONE, NONE)
        requests = environment.sandbox.request_counts
        await is_refused(environment, "A")
        asked = requests.graphql
        for number in ("A", "B", "C", "D"):
            environment.time.advance(300_000)
            await is_refused(environment, number)
        assert requests.graphql == asked


async def test_cached_results_are_served_with_an_exhausted_limit(start: StartEnvironment) -> None:
    async with start(sandbox={"applications": single_application(part_limit=3)}, cache={"seconds": 600}) as environment:
        before = await environment.results(ONE, NONE)
        await is_refused(environment, "1N4007")
        assert await environment.results(ONE, NONE) == before


async def test_billed_parts_are_returned_although_their_count_is_refused(start: StartEnvironment) -> None:
    async with start(sandbox={"applications": single_application(part_limit=3)}) as environment:
        (result,) = await environment.results(ONE)
        assert environment.billed_parts == 3
    assert (len(result["items"]), result["error"]) == (3, None)


async def test_plan_gated_fields_are_not_selected_without_the_feature(start: StartEnvironment) -> None:
    plan = {"applications": single_application(features=frozenset())}
    async with start(sandbox=plan, application={"features": ()}) as environment:
        (result,) = await environment.results(ONE, more=GATED)
        documents = [document for document, _ in environment.sandbox.documents]
    item = result["items"][0]
    assert result["error"] is None
    assert (item["specs"], item["datasheets"], item["cad_models"], item["compliance_documents"]) == ({}, [], [], [])
    gated = ("specs", "documentCollections", "bestDatasheet", "referenceDesigns", "cad {", "factoryLeadDays")
    assert not any(name in document for document in documents for name in gated)
    assert {offer["factory_lead_days"] for offer in item["offers"]} == {None}


async def test_sandbox_refuses_plan_gated_fields(start: StartEnvironment) -> None:
    plan = {"applications": single_application(features=frozenset({"CAD_MODELS"}))}
    async with start(sandbox=plan, application={"features": ("TECH_SPECS",)}) as environment:
        gated, _ = await environment.results(ONE, NONE, more="&include[]=specs")
        other, _ = await environment.results(ONE, NONE, more="&include[]=datasheets")
        assert environment.billed_parts == 3
    assert gated["items"] == []
    assert "TECH_SPECS" in gated["error"]
    assert (other["error"], other["items"][0]["datasheets"]) == (None, [])


async def test_exhausted_part_limit_of_a_part_by_uid_is_a_429(start: StartEnvironment) -> None:
    async with start(sandbox={"applications": single_application(features=frozenset())}) as environment:
        (found,) = await environment.results(ONE)
        reply = await environment.get(f"/v3/parts/{found['items'][0]['uid']}?apikey=EXAMPLE_KEY&include[]=specs")
    assert reply.status == 502
    assert "TECH_SPECS" in reply.json["message"]
