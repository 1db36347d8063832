"""The portal over sockets, without scripts: applications that work at once, seen by their organization alone."""

import re
from collections.abc import AsyncIterator
from typing import NamedTuple

import pytest
from sandbox.page_browser import PageBrowser, PageResult
from support.sandbox_client import JsonResponse, SandboxClient, StartSandbox

from nexar_sandbox import applications, user_directory
from sandbox import code_flow as desks

ELSEWHERE = user_directory.Organization("0d0e3c1a-2a3f-4a53-9f0b-6f0f3c2b1a01", "Elsewhere")
KAY = user_directory.SandboxUser(
    "u-kay", "kay@elsewhere.example", "Alan Kay", user_directory.DEFAULT_USERS[0].password, ELSEWHERE.id
)
THEIRS = applications.SandboxApplication(
    "Their secret plan", "app-theirs", "client-theirs", "s-theirs", organization=ELSEWHERE.id
)
CALLBACK = "http://localhost:3000/login"
READY_PATH = f"/portal/applications/{applications.DEFAULT_APPLICATION.application_id}"
SEARCH = '{ supSearch(q: "", limit: 7) { results { part { mpn } } } }'


class PortalClient(NamedTuple):
    """A user of the Sandbox organization at the portal, signed in; beside it a caller of the sandbox."""

    caller: SandboxClient
    visitor: PageBrowser

    async def new(self, **fields: str) -> PageResult:
        """Create an application; `fields` replace those of the form."""
        form = await self.visitor.open("/portal/applications/new")
        return await self.visitor.fill(form, "/new", fields)

    def application(self, name: str) -> applications.SandboxApplication:
        """The application with this name."""
        return next(one for one in self.caller.sandbox.applications.all if one.name == name)

    async def token(self, application: applications.SandboxApplication, **form: str) -> JsonResponse:
        """Response of the token endpoint to a request of the application."""
        return await self.caller.log_in(
            client_id=application.client_id, client_secret=application.client_secret, **form
        )


@pytest.fixture
async def portal(start: StartSandbox) -> AsyncIterator[PortalClient]:
    known = (applications.DEFAULT_APPLICATION, applications.DEFAULT_DESIGN_APPLICATION, THEIRS)
    organizations, users = (user_directory.DEFAULT_ORGANIZATION, ELSEWHERE), (*user_directory.DEFAULT_USERS, KAY)
    async with (
        start(applications=known, organizations=organizations, users=users, token_windows=()) as caller,
        PageBrowser(caller.sandbox.url) as visitor,
    ):
        await visitor.sign_in(await visitor.open("/portal"))
        yield PortalClient(caller, visitor)


def heading(page: PageResult) -> str:
    found = re.search(r"<h1>(.*?)</h1>", page.page)
    assert found, page.page
    return found[1]


def said(page: PageResult) -> str:
    found = re.search(r'role="status">(.*?)</p>', page.page)
    return found[1] if found else ""


async def test_the_portal_lists_the_applications_of_the_organization_with_usage(portal: PortalClient) -> None:
    await portal.caller.ask(SEARCH)
    for path in ("/portal/applications/new", READY_PATH, "/portal"):
        page = await portal.visitor.open(path)
        assert not re.search("<script|style=", page.page)
    assert heading(page) == "Applications of Sandbox"
    assert applications.DEFAULT_APPLICATION.name in page.page
    assert applications.DEFAULT_DESIGN_APPLICATION.name in page.page
    assert THEIRS.name not in page.page
    assert "7 of 1\N{NARROW NO-BREAK SPACE}000 parts in 2023-11" in page.page


async def test_the_portal_shows_plan_features_and_period(portal: PortalClient) -> None:
    seed = (await portal.visitor.open(READY_PATH)).page
    assert all(text in seed for text in ("<p>Custom plan</p>", "reset on the 1st of each month", "Tech specs"))
    trial = (await portal.new(name="Trial")).page
    assert all(text in trial for text in ("<p>Evaluation</p>", "0 of 100 parts for a lifetime", "never renewed"))
    small = (await portal.new(name="Small", plan="standard")).page
    assert "<p>Standard</p>" in small
    assert "Similar parts" not in small


NOT_AN_APPLICATION: list[tuple[dict[str, str], str]] = [
    ({}, "The name is missing."),
    ({"name": "x" * 101}, "The name has 101 characters; the limit is 100."),
    ({"name": "a\x00b"}, "The name contains invisible characters."),
    ({"name": "A", "description": "d" * 501}, "The description has 501 characters; the limit is 500."),
    ({"name": "A", "plan": "gold"}, "There is no plan &#39;gold&#39;."),
    ({"name": "A", "add-on-DATASHEETS": "on"}, "Add-ons are for Pro; Evaluation has what it has."),
    ({"name": "A", "plan": "pro", "add-on-LIFECYCLE": "on"}, "Lifecycle needs Tech specs."),
    ({"name": "A", "parts": "many"}, "Parts are a number from 0 to 1000000000, not &#39;many&#39;."),
    ({"name": "A", "parts": "-1"}, "Parts are a number from 0 to 1000000000, not &#39;-1&#39;."),
    ({"name": "A", "parts": "٣"}, "Parts are a number from 0 to 1000000000, not &#39;٣&#39;."),
    ({"name": "A", "callbacks": "/login"}, "&#39;/login&#39; is not an absolute URL without a fragment"),
    ({"name": "A", "callbacks": "http://x/#a"}, "&#39;http://x/#a&#39; is not an absolute URL without a fragment"),
]


async def test_an_invalid_application_form_shows_errors_and_keeps_the_input(portal: PortalClient) -> None:
    before = portal.caller.sandbox.applications.all
    for fields, complaint in NOT_AN_APPLICATION:
        page = await portal.new(**{"description": "Kept as typed", **fields})
        assert (page.status, heading(page)) == (400, "New application"), fields
        assert complaint in page.page, fields
        assert 'aria-invalid="true"' in page.page, fields
        assert fields.get("description", "Kept as typed") in page.page, fields
    assert portal.caller.sandbox.applications.all == before


async def test_after_a_rotation_only_the_new_secret_is_accepted(portal: PortalClient) -> None:
    question = await portal.visitor.open(f"{READY_PATH}/secret")
    assert (await portal.token(applications.DEFAULT_APPLICATION)).status == 200
    page = await portal.visitor.fill(question, "/secret")
    application = portal.application(applications.DEFAULT_APPLICATION.name)
    assert said(page) == "The secret was rotated. The old one is refused."
    assert application.client_secret in page.page
    assert (await portal.token(applications.DEFAULT_APPLICATION)).body == {"error": "invalid_client"}
    assert (await portal.token(application)).status == 200


async def test_a_secret_rotation_revokes_codes_and_refresh_tokens(flow: desks.CodeFlow) -> None:
    tokens, code = (
        (await flow.redeem(await flow.code())).body,
        await flow.code(),
    )
    path = f"/portal/applications/{desks.DESIGN.application_id}/secret"
    await flow.visitor.fill(await flow.visitor.open(path), "/secret")
    application = flow.caller.sandbox.applications.by_application(desks.DESIGN.application_id)
    assert application
    assert (await flow.redeem(code, application)).body == {"error": "invalid_grant"}
    refreshed = await flow.token("refresh_token", application, refresh_token=tokens["refresh_token"])
    assert refreshed.body == {"error": "invalid_grant"}
    assert await flow.is_good(tokens["access_token"])


async def test_name_flows_and_callback_urls_are_editable_and_domains_are_not(portal: PortalClient) -> None:
    form = await portal.visitor.open(f"{READY_PATH}/edit")
    assert 'name="domain' not in form.page
    changes = {"name": "Another", "description": "New", "flow-password": "on", "domain-design": "on"}
    changes["callbacks"] = f"{CALLBACK}\r\n\r\n{CALLBACK}\r\nmy.app:/back\r\n"
    page = await portal.visitor.fill(form, "/edit", changes)
    application = portal.application("Another")
    assert said(page) == "The changes are saved."
    assert (application.description, application.domains) == ("New", ("supply",))
    assert application.flows == {applications.CLIENT_CREDENTIALS, applications.PASSWORD}
    assert application.redirect_uris == (CALLBACK, "my.app:/back")
    assert f"{CALLBACK}\nmy.app:/back</textarea>" in (await portal.visitor.open(f"{READY_PATH}/edit")).page
    mistakes = {"name": "", "callbacks": "javascript:alert(1)"}
    wrong = await portal.visitor.fill(form, "/edit", mistakes, without="flow-client_credentials")
    assert wrong.status == 400
    said_ = ("The name is missing.", "Choose at least one.", "&#39;javascript:alert(1)&#39; is not an absolute URL")
    assert all(text in wrong.page for text in said_)
    assert portal.application("Another") == application


async def test_another_organizations_application_does_not_exist(portal: PortalClient) -> None:
    path = f"/portal/applications/{THEIRS.application_id}"
    for page in ("", "/edit", "/secret"):
        seen = await portal.visitor.open(path + page)
        assert (seen.status, heading(seen)) == (404, "Not found")
        assert THEIRS.name not in seen.page
    csrf = re.search(r'name="csrf" value="(\w+)"', seen.page)
    assert csrf
    for change in ("/edit", "/secret", "/ide"):
        assert (await portal.visitor.post(path + change, csrf=csrf[1], name="x")).status == 404
    assert portal.caller.sandbox.applications.by_application(THEIRS.application_id) == THEIRS


async def test_a_portal_form_without_a_csrf_token_changes_nothing(portal: PortalClient) -> None:
    before = portal.caller.sandbox.applications.all
    for fields in ({}, {"csrf": "0" * 64}):
        page = await portal.visitor.post("/portal/applications/new", name="Forged", **fields)
        assert (page.status, heading(page)) == (400, "Nothing was changed")
    async with PageBrowser(portal.caller.sandbox.url) as stranger:
        page = await stranger.post(f"{READY_PATH}/secret", csrf="0" * 64)
        assert page.address.path == "/account/login"
    assert portal.caller.sandbox.applications.all == before


async def test_the_home_page_links_to_every_service(portal: PortalClient) -> None:
    session = portal.caller.session
    async with session.get(portal.caller.sandbox.url, headers={"Accept": "text/html,*/*;q=0.8"}) as response:
        links = set(re.findall(r'href="(/[^"]*)"', await response.text()))
    assert {"/portal", "/graphql"} < links
    for link in links:
        async with session.get(portal.caller.sandbox.url + link, headers={"Accept": "text/html,*/*"}) as response:
            assert response.status == 200, link
    async with session.get(portal.caller.sandbox.url) as response:
        assert (await response.json())["portal"] == f"{portal.caller.sandbox.url}/portal"
