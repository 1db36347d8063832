"""Internal queries and fields of the service, and related parts (contract graphql.md §1.1, §1.2)."""

from typing import Any

from support import cases
from support.sandbox_client import SandboxClient, StartSandbox

from nexar_sandbox import applications

PART = "54445"
EXTRAS = (
    "partId description isRohsCompliant confidence datasheetUrls lifeCycle parameters { name unit value }"
    " technicalDetails { name value }"
)
BY_ID = "query($id: String!) { supPartExtrasByPartId(partId: $id) { %s alternatives(first: 2) { partId confidence } } }"


async def test_ciiva_ids_lead_to_parts_and_back(caller: SandboxClient) -> None:
    response = await caller.ask(
        '{ one: supCiivaIdFromPartId(partId: "54445") supCiivaIdsFromPartIds(partIds: ["54445", "1", "x", "54446"]) }'
    )
    ciiva = response.data["one"]
    assert ciiva != PART
    assert response.data["supCiivaIdsFromPartIds"][:3] == [ciiva, None, None]
    back = await caller.ask(
        "query($id: String!) { supPartIdFromCiivaId(ciivaId: $id)"
        ' old: supOctopartIdFromCiivaId(workspaceUrl: "https://a.example", ciivaId: $id)'
        ' supPartIdsFromCiivaIds(ciivaIds: [$id, "no", "12345678901234567890", "٣"]) }',
        {"id": ciiva},
    )
    assert back.data == {
        "supPartIdFromCiivaId": PART,
        "old": PART,
        "supPartIdsFromCiivaIds": [PART, None, None, None],
    }


async def test_extras_equal_the_fields_of_the_part(caller: SandboxClient) -> None:
    response = await caller.ask(
        BY_ID % EXTRAS,
        {"id": PART},
    )
    whole = await caller.ask(
        f'{{ supParts(ids: ["{PART}"]) {{ shortDescription documentCollections {{ name documents {{ url }} }}'
        f" specs {{ attribute {{ name shortname }} displayValue value }} similarParts {{ id }}"
        f" extras {{ {EXTRAS} }} }} }}"
    )
    extras = response.data["supPartExtrasByPartId"]
    (part,) = whole.data["supParts"]
    first, *_ = extras.pop("alternatives")
    assert part["extras"] == extras
    assert (extras["partId"], extras["confidence"]) == (PART, 1.0)
    assert extras["description"] == part["shortDescription"]
    assert (first["partId"], first["confidence"]) == (part["similarParts"][0]["id"], 0.9)
    assert [one["name"] for one in extras["parameters"]] == [one["attribute"]["name"] for one in part["specs"]]
    assert [one["value"] for one in extras["technicalDetails"]] == [one["displayValue"] for one in part["specs"]]
    sheets = [one for one in part["documentCollections"] if one["name"] == "Datasheets"]
    assert extras["datasheetUrls"] == [one["url"] for sheet in sheets for one in sheet["documents"]]
    values = {one["attribute"]["shortname"]: one["value"] for one in part["specs"]}
    assert extras["isRohsCompliant"] == {"Compliant": True, "Non-Compliant": False}.get(values["rohs"])
    assert extras["lifeCycle"] == {"Production": "ACTIVE", "Obsolete": "DISCONTINUED"}[values["lifecyclestatus"]]


async def test_extras_of_many_parts_have_an_error_as_value_where_there_is_no_part(caller: SandboxClient) -> None:
    response = await caller.ask(
        f'{{ supPartExtrasByPartIds(partIds: ["{PART}", "1"]) {{ __typename ... on SupPartExtras {{ partId }}'
        ' ... on SupErrorPayload { message } } none: supPartExtrasByPartId(partId: "1") { partId } }'
    )
    assert response.data == {
        "supPartExtrasByPartIds": [
            {"__typename": "SupPartExtras", "partId": PART},
            {"__typename": "SupErrorPayload", "message": "there is no part 1"},
        ],
        "none": None,
    }


@cases.parametrize("feature, field, left")
async def test_extras_do_not_bypass_the_plan(start: StartSandbox, feature: str, field: str, left: Any) -> None:
    features = applications.FEATURES - {feature}
    plan = (applications.SandboxApplication("plan", "app-plan", "plan-client", "plan-secret", features=features),)
    async with start(applications=plan) as caller:
        response = await caller.ask(BY_ID % f"partId {field}", {"id": PART})
    name = field.partition(" ")[0]
    assert response.body["data"]["supPartExtrasByPartId"][name] == left
    assert [error["path"] for error in response.body.get("errors", [])] == (
        [["supPartExtrasByPartId", name]] if left is None else []
    )
