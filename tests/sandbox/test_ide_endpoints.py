"""Endpoints of the IDE: nothing before the sign-in, then the organization's application and a token."""

import dataclasses
from collections.abc import AsyncIterator

import pytest
import yarl
from sandbox.ide_page import IdePageClient
from support.sandbox_client import SandboxClient, StartSandbox

from nexar_sandbox import applications, user_directory
from proxy.kit import clock

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


async def _authorize(page: IdePageClient, decision: str = "allow") -> yarl.URL:
    """Through consent, back to the address of the IDE."""
    sent = await page.authorization()
    seen = await page.visitor.open(yarl.URL(sent.body["url"], encoded=True))
    if "decision" in seen.page:
        seen = await page.visitor.send(seen, decision=decision)
    return seen.address


async def test_the_ide_session_before_sign_in_has_links_only(page: IdePageClient) -> None:
    state = await page.state()
    assert (state["user"], state["organization"], state["application"], state["csrf"]) == (None,) * 4
    assert state["links"]["sign_in"] == "/account/login?return_to=%2Fgraphql"
    response = await page.token(csrf="")
    assert (response.status, response.body["error"]) == (401, "login_required")
    assert (await page.authorization(csrf="")).status == 401


async def test_the_ide_does_not_use_an_application_of_another_organization(
    caller: SandboxClient, page: IdePageClient
) -> None:
    await page.sign_in(GUEST, "sandbox-grace")
    assert (await page.state())["application"]["name"] == OTHERS.name
    caller.token = (await page.token()).body["access_token"]
    await caller.ask('{ supSearchMpn(q: "LM358", limit: 1) { results { part { mpn } } } }')
    assert caller.sandbox.part_usage.used(OTHERS.application_id) == 1
    assert caller.sandbox.part_usage.used(applications.DEFAULT_APPLICATION.application_id) == 0
    caller.sandbox.applications.remove(OTHERS.application_id)
    assert (await page.state())["application"] is None
    response = await page.token()
    assert (response.status, response.body["error"]) == (404, "no_application")


async def test_ide_responses_have_no_secret(page: IdePageClient) -> None:
    await page.sign_in()
    answers = [str(await page.state()), str((await page.token()).body), str((await page.authorization()).body)]
    assert [text for text in answers if applications.DEFAULT_APPLICATION.client_secret in text] == []


async def test_an_ide_request_without_the_csrf_token_is_rejected(page: IdePageClient) -> None:
    await page.sign_in()
    for response in (await page.token(csrf="x" * 64), await page.authorization(csrf="")):
        assert (response.status, response.body["error"]) == (403, "invalid_csrf")
        assert "X-CSRF-Token" in response.body["error_description"]


async def test_the_ide_requests_one_application_token_per_session(
    caller: SandboxClient, page: IdePageClient, manual_clock: clock.ManualClock
) -> None:
    await page.sign_in()
    before = caller.sandbox.request_counts.tokens
    first = (await page.token()).body["access_token"]
    assert (await page.token()).body["access_token"] == first
    assert caller.sandbox.request_counts.tokens == before + 1
    entry = caller.sandbox.journal.last(1)[0]
    assert (entry.service, entry.application, entry.status) == (
        "token",
        applications.DEFAULT_APPLICATION.application_id,
        200,
    )
    assert (await page.token(renew="1")).body["access_token"] != first
    manual_clock.advance(3600 * 9)  # the browser session's own end is later
    cached = (await page.token()).body
    manual_clock.advance(cached["expires_at"] - manual_clock.now() - 30)
    await page.sign_in()
    assert (await page.token()).body["expires_at"] > cached["expires_at"]


async def test_a_user_authorizes_the_ide_by_the_authorization_code_flow(
    caller: SandboxClient, page: IdePageClient
) -> None:
    caller.sandbox.applications.choose_for_ide(applications.DEFAULT_DESIGN_APPLICATION.application_id)
    await page.sign_in()
    asked = yarl.URL((await page.authorization()).body["url"]).query
    assert (asked["code_challenge_method"], asked["redirect_uri"]) == ("S256", caller.sandbox.graphql_url + "/")
    back = await _authorize(page)
    assert back.path == "/graphql/"
    response = await page.token(code=back.query["code"], state=back.query["state"])
    assert (response.status, response.body["by_user"]) == (200, True)
    assert "refresh_token" not in response.body
    caller.token = response.body["access_token"]
    assert (await caller.ask("{ desUserByAuth { firstName } }")).data == {"desUserByAuth": {"firstName": "Ada"}}
    assert not (await page.state())["application"]["needs_user"]
    # The refresh token stays at the server, which uses it.
    renewed = await page.token(renew="1")
    assert (renewed.status, renewed.body["by_user"]) == (200, True)
    assert renewed.body["access_token"] != caller.token
    plain = await page.token(grant="client_credentials")
    assert (plain.status, plain.body["by_user"]) == (200, False)


async def test_an_ide_code_is_valid_once_and_in_its_session(caller: SandboxClient, page: IdePageClient) -> None:
    caller.sandbox.applications.choose_for_ide(applications.DEFAULT_DESIGN_APPLICATION.application_id)
    await page.sign_in()
    back = await _authorize(page)
    came = {"code": back.query["code"], "state": back.query["state"]}
    async with IdePageClient(caller.sandbox.url) as another:
        await another.sign_in(user_directory.DEFAULT_USERS[1], "sandbox-grace")
        response = await another.token(**came)
        assert (response.status, response.body["error"]) == (400, "invalid_state")
    # Whoever tries has used it up.
    assert (await page.token(**came)).body["error"] == "invalid_state"
