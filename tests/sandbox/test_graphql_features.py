"""Fields that need a feature of the plan (contract graphql.md §6)."""

from support import cases
from support.sandbox_client import StartSandbox

from nexar_sandbox import applications
from nexar_sandbox.graphql import schema

PART = '{ supParts(ids: ["54445"]) { mpn %s } }'


def plan(*missing: str) -> tuple[applications.SandboxApplication, ...]:
    features = applications.FEATURES - frozenset(missing)
    return (applications.SandboxApplication("plan", "app-plan", "plan-client", "plan-secret", features=features),)


def test_every_required_feature_is_known_and_its_field_exists() -> None:
    built = schema.build()
    for place, feature in schema.REQUIRED_FEATURES.items():
        type_name, field_name = place.split(".")
        kind = built.get_type(type_name)
        assert kind is not None
        assert field_name in kind.fields  # type: ignore[attr-defined]
        assert feature in applications.FEATURES


@cases.parametrize("feature, selection")
async def test_a_nullable_field_outside_the_plan_is_null_with_an_error(
    start: StartSandbox, feature: str, selection: str
) -> None:
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
async def test_a_non_null_field_outside_the_plan_nulls_its_part(
    start: StartSandbox, feature: str, selection: str
) -> None:
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
        refused = await caller.ask(query)
    async with start() as caller:
        allowed = await caller.ask(query)
    assert feature in refused.messages[0]
    assert allowed.data


async def test_lifecycle_specs_are_omitted_without_the_feature(start: StartSandbox) -> None:
    query = PART % "specs { attribute { shortname } }"

    async def names(caller: object) -> set[str]:
        response = await caller.ask(query)  # type: ignore[attr-defined]
        return {spec["attribute"]["shortname"] for spec in response.data["supParts"][0]["specs"]}

    async with start() as caller:
        everything = await names(caller)
    async with start(applications=plan("LIFECYCLE")) as caller:
        rest = await names(caller)
    assert "lifecyclestatus" in everything
    assert rest == {name for name in everything if "lifecyclestatus" not in name}
