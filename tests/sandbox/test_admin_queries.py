"""The adm* queries: visibility of organizations, users and applications (contract graphql.md §5.4)."""

import dataclasses
from collections.abc import AsyncIterator
from typing import Any

import pytest
from sandbox.design_client import APPLICATION, DesignClient, StartDesignSandbox
from support.sandbox_client import JsonResponse, SandboxClient

from nexar_sandbox import applications, user_directory

OTHERS = user_directory.Organization("9c1d6b11-9a86-4b37-8a64-2c50d0a6c001", "Others")
LIN = dataclasses.replace(
    user_directory.DEFAULT_USERS[0],
    id="9c1d6b11-9a86-4b37-8a64-2c50d0a6c002",
    email="lin@others.example",
    name="Lin van Others",
    organization=OTHERS.id,
)
THEIRS = dataclasses.replace(
    applications.DEFAULT_APPLICATION,
    name="theirs",
    application_id="9c1d6b11-9a86-4b37-8a64-2c50d0a6c003",
    client_id="client-theirs",
    client_secret="secret-theirs",
    organization=OTHERS.id,
)
DESIGN_ONLY = dataclasses.replace(
    THEIRS,
    name="boards",
    application_id="9c1d6b11-9a86-4b37-8a64-2c50d0a6c004",
    client_id="client-boards",
    client_secret="secret-boards",
    organization=user_directory.DEFAULT_ORGANIZATION.id,
    domains=("design",),
    description="only boards",
    created=1_600_000_000.0,
)
EVERYTHING = (
    "{ admOrganizations { id name isDefault createdDate invitations { email }"
    " users { userName firstName lastName createdDate id }"
    " applications { id name description deleted createdDate organizationId scopes { applicationId scope }"
    " security { applicationId clientId clientSecret } supplyCounts { partCounter partLimit } } } }"
)
BY_ID = "query($id: String!) { admApplicationById(id: $id) { name deleted supplyCounts { partCounter } } }"


@pytest.fixture
async def member(start_design: StartDesignSandbox) -> AsyncIterator[DesignClient]:
    """A client with a token of Ada of the organization Sandbox, in a sandbox with another organization."""
    async with start_design(
        applications=(APPLICATION, applications.DEFAULT_APPLICATION, DESIGN_ONLY, THEIRS),
        organizations=(user_directory.DEFAULT_ORGANIZATION, OTHERS),
        users=(*user_directory.DEFAULT_USERS, LIN),
    ) as ready:
        yield ready


async def log_in(caller: SandboxClient, application: applications.SandboxApplication) -> JsonResponse:
    return await caller.log_in(client_id=application.client_id, client_secret=application.client_secret)


async def own(caller: SandboxClient) -> Any:
    (organization,) = (await caller.ask(EVERYTHING)).data["admOrganizations"]
    return organization


async def test_a_user_sees_users_and_applications_of_the_own_organization_only(member: DesignClient) -> None:
    found = await own(member)
    assert (found["id"], found["name"], found["isDefault"]) == (user_directory.DEFAULT_ORGANIZATION.id, "Sandbox", True)
    assert found["createdDate"] == "2023-11-14T22:13:20Z"
    assert found["invitations"] == []
    assert [(one["userName"], one["firstName"], one["lastName"]) for one in found["users"]] == [
        ("ada@sandbox.example", "Ada", "Sandbox"),
        ("grace@sandbox.example", "Grace", "Sandbox"),
    ]
    assert [one["name"] for one in found["applications"]] == [
        APPLICATION.name,
        applications.DEFAULT_APPLICATION.name,
        DESIGN_ONLY.name,
    ]
    assert {one["organizationId"] for one in found["applications"]} == {user_directory.DEFAULT_ORGANIZATION.id}


async def test_a_user_token_shows_the_users_organization_instead_of_the_applications(member: DesignClient) -> None:
    password = user_directory.DEFAULT_PASSWORD
    await member.log_in(grant_type="password", username=LIN.email, password=password, scope="design.domain user.access")
    found = await own(member)
    assert found["id"] == OTHERS.id
    assert found["users"] == [
        {
            "userName": "lin@others.example",
            "firstName": "Lin",
            "lastName": "van Others",
            "createdDate": "2023-11-14T22:13:20Z",
            "id": LIN.id,
        }
    ]
    assert [one["id"] for one in found["applications"]] == [THEIRS.application_id]


async def test_an_application_token_shows_the_applications_organization(member: DesignClient) -> None:
    await log_in(member, THEIRS)
    assert (await own(member))["id"] == OTHERS.id
    await log_in(member, applications.DEFAULT_APPLICATION)
    assert (await own(member))["id"] == user_directory.DEFAULT_ORGANIZATION.id


async def test_an_application_has_all_its_fields_and_a_design_one_no_part_counts(member: DesignClient) -> None:
    found = {one["name"]: one for one in (await own(member))["applications"]}
    id_ = DESIGN_ONLY.application_id
    assert found["boards"] == {
        "id": id_,
        "name": "boards",
        "description": "only boards",
        "deleted": False,
        "createdDate": "2020-09-13T12:26:40Z",
        "organizationId": user_directory.DEFAULT_ORGANIZATION.id,
        "scopes": [{"applicationId": id_, "scope": "design.domain"}],
        "security": {"applicationId": id_, "clientId": "client-boards", "clientSecret": DESIGN_ONLY.client_secret},
        "supplyCounts": None,
    }
    both = found[APPLICATION.name]
    assert [one["scope"] for one in both["scopes"]] == ["supply.domain", "design.domain"]
    assert (both["description"], both["supplyCounts"]) == (None, {"partCounter": 0, "partLimit": 1000})


async def test_an_application_of_another_organization_is_null(member: DesignClient) -> None:
    assert (await member.get(BY_ID, id=THEIRS.application_id))["admApplicationById"] is None
    assert (await member.get(BY_ID, id=DESIGN_ONLY.application_id.upper()))["admApplicationById"] == {
        "name": "boards",
        "deleted": False,
        "supplyCounts": None,
    }
    await log_in(member, applications.DEFAULT_APPLICATION)
    assert (await member.get(BY_ID, id=THEIRS.application_id))["admApplicationById"] is None
