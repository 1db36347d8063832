"""Plans with their features, part limits and bills (contract graphql.md §6)."""

import dataclasses
import datetime

import pytest
from support import cases
from support.sandbox_client import SandboxClient, StartSandbox

import nexar_sandbox
from nexar_sandbox import applications
from nexar_sandbox.graphql import schema
from proxy.kit import clock

PART = '{ supParts(ids: ["54445"]) { mpn %s } }'
QUERIES = {
    "LEAD_TIME": PART % "estimatedFactoryLeadDays",
    "TECH_SPECS": PART % "specs { value }",
    "DATASHEETS": PART % "documentCollections { name }",
    "CAD_MODELS": PART % "cad { hasKicad }",
    "SIMILAR_PARTS": PART % "similarParts { id }",
    "SUGGESTIONS": '{ supSuggest(q: "LM") { text } }',
    "SPELLING_CORRECTIONS": '{ supSpellingCorrection(q: "LM") { hits } }',
}
FREE = {"SUGGESTIONS", "SPELLING_CORRECTIONS"}
PAGE = '{ supSearch(q: "", limit: 100) { results { part { mpn } } } }'
COUNTS = "{ admOrganizations { applications { supplyCounts { partCounter partLimit } } } }"
DECEMBER = datetime.datetime(2023, 12, 1, tzinfo=datetime.UTC).timestamp()


def on(plan: str, *add_ons: str) -> tuple[applications.SandboxApplication, ...]:
    return (nexar_sandbox.with_plan(nexar_sandbox.DEFAULT_APPLICATION, plan, add_ons),)


async def counts(caller: SandboxClient) -> tuple[int, int]:
    (organization,) = (await caller.ask(COUNTS)).data["admOrganizations"]
    found = organization["applications"][0]["supplyCounts"]
    return found["partCounter"], found["partLimit"]


@pytest.mark.parametrize(
    "plan, add_ons, features",
    [
        ("evaluation", (), set(QUERIES)),
        ("standard", (), FREE),
        ("pro", (), FREE | {"SIMILAR_PARTS"}),
        ("pro", ("TECH_SPECS", "LEAD_TIME"), FREE | {"SIMILAR_PARTS", "TECH_SPECS", "LEAD_TIME"}),
        ("pro", ("DATASHEETS",), FREE | {"SIMILAR_PARTS", "DATASHEETS"}),
        ("enterprise", (), set(QUERIES)),
    ],
)
async def test_plan_answers_its_features_and_refuses_the_others(
    start: StartSandbox, plan: str, add_ons: tuple[str, ...], features: set[str]
) -> None:
    async with start(applications=on(plan, *add_ons)) as caller:
        for feature, query in QUERIES.items():
            response = await caller.ask(query)
            refused = [message for message in response.body.get("errors", ()) if feature in message["message"]]
            assert (response.status, not refused) == (200, feature in features), feature
        assert (await caller.ask(PART % "sellers { company { name } }")).data["supParts"][0]["sellers"]


@pytest.mark.parametrize("add_ons, shown", [(("TECH_SPECS",), False), (("TECH_SPECS", "LIFECYCLE"), True)])
async def test_lifecycle_is_an_add_on_of_its_own(start: StartSandbox, add_ons: tuple[str, ...], shown: bool) -> None:
    counted = (
        '{ supSearch(q: "") { specAggs(attributeNames: ["lifecyclestatus", "rohs"]) { attribute { shortname } } } }'
    )
    async with start(applications=on("pro", *add_ons)) as caller:
        (part,) = (await caller.ask(PART % "specs { attribute { shortname } }")).data["supParts"]
        aggregations = (await caller.ask(counted)).data["supSearch"]["specAggs"]
    for found, other in ((part["specs"], "numberofpins"), (aggregations, "rohs")):
        names = {spec["attribute"]["shortname"] for spec in found}
        assert other in names
        assert ("lifecyclestatus" in names) is shown


async def test_parts_of_an_evaluation_are_for_a_lifetime(start: StartSandbox, manual_clock: clock.ManualClock) -> None:
    async with start(applications=on("evaluation"), token_lifetime=60 * 86_400) as caller:
        assert (await caller.ask(PART % "id")).data
        assert await counts(caller) == (1, 100)
        manual_clock.advance(DECEMBER - manual_clock.now())
        assert await counts(caller) == (1, 100)
        assert (await caller.ask(PAGE)).data
        for _ in range(2):
            (message,) = (await caller.ask(PAGE)).messages
            assert message.startswith("You have exceeded your part limit of 100.")
            manual_clock.advance(31 * 86_400 / 2)


@pytest.mark.parametrize(
    "plan, add_ons, complaint",
    [
        ("gold", (), "'gold' is not a plan; there are evaluation, standard, pro, enterprise."),
        ("pro", ("CAD_MODELS",), "Pro has no add-on 'CAD_MODELS'; its add-ons are LEAD_TIME, TECH_SPECS, "),
    ],
)
def test_unknown_plan_and_add_on_it_lacks_are_refused(plan: str, add_ons: tuple[str, ...], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        on(plan, *add_ons)


def plan(*missing: str) -> tuple[applications.SandboxApplication, ...]:
    features = applications.FEATURES - frozenset(missing)
    return (dataclasses.replace(nexar_sandbox.DEFAULT_APPLICATION, features=features),)


def test_every_required_feature_is_known_and_its_field_exists() -> None:
    built = schema.build()
    for place, feature in schema.REQUIRED_FEATURES.items():
        type_name, field_name = place.split(".")
        kind = built.get_type(type_name)
        assert kind is not None
        assert field_name in kind.fields  # type: ignore[attr-defined]
        assert feature in applications.FEATURES


@cases.parametrize("feature, selection")
async def test_nullable_field_beyond_the_plan_is_an_error(start: StartSandbox, feature: str, selection: str) -> None:
    async with start(applications=plan(feature)) as caller:
        response = await caller.ask(PART % selection)
        other = await caller.ask(PART % "shortDescription")
    field = selection.partition(" ")[0]
    message = (
        f"You do not have access to SupPart.{field}: your plan lacks the feature {feature}. Please upgrade your plan."
    )
    assert response.status == 200
    assert response.body["data"] == {"supParts": [{"mpn": "SN74S74N", field: None}]}
    (error,) = response.body["errors"]
    assert (error["message"], error["path"]) == (message, ["supParts", 0, field])
    assert error["extensions"]["remote"] == {"message": message, "path": ["supParts", 0, field]}
    assert error["extensions"]["schemaName"] == "Supply"
    assert other.data["supParts"][0]["shortDescription"]


@cases.parametrize("feature, selection")
async def test_non_null_field_beyond_the_plan_nulls_its_part(start: StartSandbox, feature: str, selection: str) -> None:
    async with start(applications=plan(feature)) as caller:
        response = await caller.ask(PART % selection)
        whole = await caller.ask(f'{{ supMultiMatch(queries: [{{mpn: "SN74S74N"}}]) {{ parts {{ {selection} }} }} }}')
    assert response.body["data"] == {"supParts": [None]}
    assert feature in response.messages[0]
    assert (whole.status, whole.body["data"]) == (200, None)
    assert feature in whole.messages[0]


@cases.parametrize("feature, query")
async def test_queries_and_aggregations_require_features(start: StartSandbox, feature: str, query: str) -> None:
    async with start(applications=plan(feature)) as caller:
        assert feature in (await caller.ask(query)).messages[0]
