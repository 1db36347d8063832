"""Endpoints of the IDE: nothing before the sign-in, then the organization's application and a token."""

import dataclasses
from collections.abc import AsyncIterator

import pytest
from sandbox.ide_page import IdePageClient
from support.sandbox_client import SandboxClient, StartSandbox

from nexar_sandbox import applications, user_directory

GUESTS = user_directory.Organization("5b1ac5f0-7d0a-4f0c-8a53-0e4a6f1f7c99", "Guests")
GUEST = dataclasses.replace(
    user_directory.DEFAULT_USERS[1], id="guest", email="guest@sandbox.example", organization=GUESTS.id
)
OTHERS = dataclasses.replace(
    applications.DEFAULT_APPLICATION,
    name="of others",
    application_id="app-of-others",
    client_id="client-of-others",
    organization=GUESTS.id,
)


@pytest.fixture
async def caller(start: StartSandbox) -> AsyncIterator[SandboxClient]:
    """A sandbox with two organizations; the first has an application for parts, then one for users' tokens."""
    known = (OTHERS, applications.DEFAULT_APPLICATION, applications.DEFAULT_DESIGN_APPLICATION)
    async with start(
        applications=known,
        organizations=(user_directory.DEFAULT_ORGANIZATION, GUESTS),
        users=(*user_directory.DEFAULT_USERS, GUEST),
        token_windows=(),
    ) as ready:
        yield ready


@pytest.fixture
async def page(caller: SandboxClient) -> AsyncIterator[IdePageClient]:
    async with IdePageClient(caller.sandbox.url) as opened:
        yield opened


async def test_the_ide_session_before_sign_in_has_links_only(page: IdePageClient) -> None:
    state = await page.state()
    assert (state["user"], state["organization"], state["application"], state["csrf"]) == (None,) * 4
    assert state["links"]["sign_in"] == "/account/login?return_to=%2Fgraphql"
    response = await page.token(csrf="")
    assert (response.status, response.body["error"]) == (401, "login_required")


async def test_the_ide_does_not_use_an_application_of_another_organization(
    caller: SandboxClient, page: IdePageClient
) -> None:
    await page.sign_in(GUEST, "sandbox-grace")
    assert (await page.state())["application"]["name"] == OTHERS.name
    caller.token = (await page.token()).body["access_token"]
    await caller.ask('{ supSearchMpn(q: "LM358", limit: 1) { results { part { mpn } } } }')
    assert caller.sandbox.part_usage.used(OTHERS.application_id) == 1
    assert caller.sandbox.part_usage.used(applications.DEFAULT_APPLICATION.application_id) == 0


async def test_ide_responses_have_no_secret(page: IdePageClient) -> None:
    await page.sign_in()
    answers = [str(await page.state()), str((await page.token()).body)]
    assert [text for text in answers if applications.DEFAULT_APPLICATION.client_secret in text] == []


async def test_an_ide_request_without_the_csrf_token_is_rejected(page: IdePageClient) -> None:
    await page.sign_in()
    response = await page.token(csrf="x" * 64)
    assert (response.status, response.body["error"]) == (403, "invalid_csrf")
    assert "X-CSRF-Token" in response.body["error_description"]


async def test_the_ide_has_a_token_of_the_user_for_design_data(caller: SandboxClient, page: IdePageClient) -> None:
    caller.sandbox.applications.choose_for_ide(applications.DEFAULT_DESIGN_APPLICATION.application_id)
    await page.sign_in()
    caller.token = (await page.token()).body["access_token"]
    assert (await caller.ask("{ desUserByAuth { firstName } }")).data == {"desUserByAuth": {"firstName": "Ada"}}
    entry = next(entry for entry in reversed(caller.sandbox.journal.entries) if entry.service == "token")
    assert (entry.application, entry.status) == (applications.DEFAULT_DESIGN_APPLICATION.application_id, 200)
