"""The authorization endpoint and what comes of it, where clients or browsers do not do as they should."""

import base64
import dataclasses
import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import yarl
from support.sandbox_caller import Caller, Reply, Starts
from support.visitor import Seen, Visitor

from proxy.kit import clock
from proxy.sandbox import accounts, people

DESIGN = accounts.READY_DESIGN
OTHER = dataclasses.replace(
    DESIGN, name="other", application_id="app-3", client_id="client-3", client_secret="s3", domains=("supply",)
)
PLAIN = dataclasses.replace(OTHER, application_id="app-4", client_id="client-4", flows=accounts.READY.flows)
CALLBACK = DESIGN.redirect_uris[0]
VERIFIER = "v" * 43
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
REQUEST = {
    "response_type": "code",
    "client_id": DESIGN.client_id,
    "redirect_uri": CALLBACK,
    "scope": "openid design.domain offline_access",
    "state": "a state",
    "code_challenge": CHALLENGE,
    "code_challenge_method": "S256",
}


class Desk:
    """An application, and a person whom it sends to the sandbox."""

    def __init__(self, caller: Caller, visitor: Visitor) -> None:
        self.caller, self.visitor = caller, visitor

    async def ask(self, **changes: str | None) -> Seen:
        """An authorization request; None leaves a parameter out."""
        asked = {name: value for name, value in {**REQUEST, **changes}.items() if value is not None}
        return await self.visitor.open("/connect/authorize", **asked)

    async def code(self, **changes: str | None) -> str:
        """A code, by signing in and allowing what is asked."""
        seen = await self.ask(**changes)
        if "password" in seen.page:
            seen = await self.visitor.sign_in(seen)
        if "decision" in seen.page:
            seen = await self.visitor.send(seen, decision="allow")
        return seen.address.query["code"]

    async def redeem(self, code_: str, account: accounts.Account = DESIGN, **changes: str) -> Reply:
        """The code for tokens."""
        form = {"code": code_, "redirect_uri": CALLBACK, "code_verifier": VERIFIER, **changes}
        return await self.token("authorization_code", account, **form)

    async def token(self, grant_type: str, account: accounts.Account = DESIGN, **form: str) -> Reply:
        """The token endpoint."""
        secret = {"client_id": account.client_id, "client_secret": account.client_secret}
        return await self.caller.post(self.caller.sandbox.token_url, data={"grant_type": grant_type, **secret, **form})

    async def is_good(self, token: str) -> bool:
        """Whether the query service takes it."""
        headers = {"Authorization": f"Bearer {token}"}
        return (await self.caller.ask("{ supAttributes { id } }", headers=headers)).status == 200


Opens = Callable[[], Any]


@pytest.fixture
def opens(start: Starts) -> Opens:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Desk]:
        applications = (accounts.READY, DESIGN, OTHER, PLAIN)
        async with start(accounts=applications, token_windows=()) as caller, Visitor(caller.sandbox.url) as visitor:
            yield Desk(caller, visitor)

    return opened


@pytest.fixture
async def desk(opens: Opens) -> AsyncIterator[Desk]:
    async with opens() as opened:
        yield opened


@pytest.mark.parametrize(
    "changes, code",
    [
        ({"redirect_uri": CALLBACK + "/"}, "invalid_request"),
        ({"redirect_uri": CALLBACK + "?next=1"}, "invalid_request"),
        ({"redirect_uri": "https://elsewhere.example/login"}, "invalid_request"),
        ({"redirect_uri": "http://localhost:3000/lögin"}, "invalid_request"),
        ({"redirect_uri": None}, "invalid_request"),
        ({"client_id": "nobody"}, "invalid_client"),
        ({"client_id": None}, "invalid_client"),
        ({"response_type": "code", "redirect_uri": "javascript:alert(1)"}, "invalid_request"),
        ({"max_age": "soon"}, "invalid_request"),
    ],
)
async def test_nobody_is_sent_to_an_address_that_the_application_has_not_named(
    desk: Desk, changes: dict[str, str | None], code: str
) -> None:
    await desk.visitor.sign_in(await desk.ask())
    seen = await desk.ask(**changes)
    assert (seen.status, seen.address.origin()) == (400, desk.visitor.url.origin())
    assert f"<code>{code}</code>" in seen.page


@pytest.mark.parametrize(
    "changes, error",
    [
        ({"scope": "openid orders.write"}, "invalid_scope"),
        ({"scope": None}, "invalid_scope"),
        ({"client_id": OTHER.client_id, "scope": "openid design.domain"}, "invalid_scope"),
        ({"client_id": PLAIN.client_id, "scope": "supply.domain"}, "unauthorized_client"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"code_challenge": None, "code_challenge_method": None}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"code_challenge": "short"}, "invalid_request"),
        ({"prompt": "none"}, "login_required"),
        ({"prompt": "none login"}, "invalid_request"),
    ],
)
async def test_other_mistakes_are_told_to_the_application_with_its_state(
    desk: Desk, changes: dict[str, str | None], error: str
) -> None:
    seen = await desk.ask(**changes)
    assert str(seen.address.with_query(None)) == CALLBACK
    assert (seen.address.query["error"], seen.address.query["state"]) == (error, "a state")
    assert "code" not in seen.address.query


async def test_the_page_names_the_application_and_all_that_it_may_do(desk: Desk) -> None:
    login = await desk.ask()
    assert (login.status, login.address.path) == (200, "/account/login")
    assert DESIGN.name in login.page
    consent = await desk.visitor.sign_in(login)
    for shown in (DESIGN.name, "ada@sandbox.example", "openid", "design.domain", "offline_access", CALLBACK):
        assert shown in consent.page
    assert "supply.domain" not in consent.page


async def test_who_denies_it_is_sent_back_without_a_code_and_is_asked_again(desk: Desk) -> None:
    consent = await desk.visitor.sign_in(await desk.ask())
    denied = await desk.visitor.send(consent, decision="deny")
    assert (denied.address.query["error"], denied.address.query["state"]) == ("access_denied", "a state")
    assert "decision" in (await desk.ask()).page
    assert (await desk.ask(prompt="none")).address.query["error"] == "consent_required"


async def test_what_was_allowed_once_is_not_asked_again_but_more_is(desk: Desk) -> None:
    await desk.code()
    assert "code" in (await desk.ask()).address.query
    assert "code" in (await desk.ask(prompt="none", scope="openid")).address.query
    assert "decision" in (await desk.ask(scope="openid profile")).page
    assert "decision" in (await desk.ask(prompt="consent")).page


async def test_prompt_login_and_an_old_sign_in_ask_for_the_password_once(desk: Desk, turned: clock.ManualClock) -> None:
    await desk.code()
    seen = await desk.ask(prompt="login")
    assert "password" in seen.page
    assert "code" in (await desk.visitor.sign_in(seen)).address.query
    turned.advance(61)
    assert (await desk.ask(max_age="60", prompt="none")).address.query["error"] == "login_required"
    assert "code" in (await desk.visitor.sign_in(await desk.ask(max_age="60"))).address.query
    assert "code" in (await desk.ask(max_age="60")).address.query


async def test_a_request_by_post_is_as_good(desk: Desk) -> None:
    await desk.code()
    url = desk.caller.sandbox.url
    async with desk.caller.session.post(url + "/connect/authorize", data=REQUEST, allow_redirects=False) as response:
        target = yarl.URL(response.headers["Location"])
    assert (response.status, target.path) == (303, "/connect/authorize")
    assert dict(target.query) == REQUEST


@pytest.mark.parametrize("field, value", [("csrf", ""), ("csrf", "0" * 64)])
async def test_a_form_that_is_not_the_sandboxs_own_signs_nobody_in_and_allows_nothing(
    desk: Desk, field: str, value: str
) -> None:
    login = await desk.ask()
    refused = await desk.visitor.send(login, email=people.USERS[0].email, password=people.PASSWORD, **{field: value})
    assert refused.status == 400
    consent = await desk.visitor.sign_in(refused)
    assert (await desk.visitor.send(consent, decision="allow", **{field: value})).status == 400
    assert "decision" in (await desk.ask()).page


async def test_another_browsers_form_is_not_taken(opens: Opens) -> None:
    async with opens() as desk, Visitor(str(desk.visitor.url)) as stranger:
        await stranger.open("/account/login")
        login = await desk.ask()
        assert (await stranger.sign_in(login)).status == 400


async def test_a_wrong_password_shows_the_page_again_and_says_no_more_than_that(desk: Desk) -> None:
    login = await desk.ask()
    wrong = await desk.visitor.sign_in(login, password="a guess")
    nobody = await desk.visitor.send(login, email="nobody@sandbox.example", password="a guess")
    assert wrong.status == nobody.status == 400
    assert 'role="alert"' in wrong.page
    assert "a guess" not in wrong.page
    assert wrong.page.replace("ada@", "nobody@") == nobody.page
    assert "decision" in (await desk.visitor.sign_in(wrong)).page


@pytest.mark.parametrize(
    "return_to",
    ["https://elsewhere.example/", "//elsewhere.example", "/\\elsewhere.example", "/\t/elsewhere.example", ""],
)
async def test_signing_in_never_leads_elsewhere(desk: Desk, return_to: str) -> None:
    seen = await desk.visitor.sign_in(await desk.visitor.open("/account/login", return_to=return_to))
    assert (seen.status, seen.address.path) == (200, "/account")
    assert "Ada Sandbox" in seen.page


async def test_what_is_in_an_address_is_only_text_on_the_page(desk: Desk) -> None:
    seen = await desk.visitor.open("/account/login", return_to='/"><script>alert(1)</script>')
    assert "<script>" not in seen.page


async def test_pages_let_nothing_else_in_and_forms_lead_only_to_the_application(desk: Desk) -> None:
    login = await desk.ask()
    policy = "default-src 'none'; style-src 'self'; form-action 'self' http://localhost:3000; base-uri 'none'; "
    for seen in (login, await desk.visitor.sign_in(login)):
        assert seen.headers["Content-Security-Policy"] == policy + "frame-ancestors 'none'"
        assert seen.headers["Cache-Control"] == "no-store"
        assert (seen.headers["X-Frame-Options"], seen.headers["X-Content-Type-Options"]) == ("DENY", "nosniff")
    own = await desk.visitor.open("/account")
    assert "form-action 'self'; " in own.headers["Content-Security-Policy"]


async def test_the_cookie_is_for_this_sandbox_only_and_for_no_script(desk: Desk) -> None:
    await desk.visitor.open("/account/login")
    (before,) = desk.visitor.jar
    assert before.key == f"sandbox_session_{desk.caller.sandbox.port}"
    assert (before["httponly"], before["samesite"], before["path"]) == (True, "Lax", "/")
    await desk.visitor.sign_in(await desk.ask())
    (after,) = desk.visitor.jar
    assert after.value != before.value


@pytest.mark.parametrize(
    "forge", [lambda value: value[:-1] + "x", lambda value: value.partition(".")[0], lambda _: "x.y"]
)
async def test_a_cookie_that_was_not_signed_here_is_nobodys(desk: Desk, forge: Callable[[str], str]) -> None:
    await desk.visitor.sign_in(await desk.visitor.open("/account/login"))
    (cookie,) = desk.visitor.jar
    desk.visitor.jar.update_cookies({cookie.key: forge(cookie.value)}, desk.visitor.url)
    assert (await desk.visitor.open("/account")).address.path == "/account/login"


async def test_a_session_is_over_after_ten_hours(desk: Desk, turned: clock.ManualClock) -> None:
    await desk.visitor.sign_in(await desk.visitor.open("/account/login"))
    turned.advance(35_999)
    assert (await desk.visitor.open("/account")).address.path == "/account"
    turned.advance(1)
    assert (await desk.visitor.open("/account")).address.path == "/account/login"


async def test_signing_out_needs_the_pages_own_form(desk: Desk) -> None:
    account = await desk.visitor.sign_in(await desk.visitor.open("/account/login"))
    assert (await desk.visitor.send(account, csrf="x")).status == 400
    assert (await desk.visitor.open("/account")).address.path == "/account"
    assert "You are signed out" in (await desk.visitor.send(account)).page
    assert (await desk.visitor.open("/account")).address.path == "/account/login"


async def test_an_application_without_a_token_of_the_user_cannot_sign_anybody_out(desk: Desk) -> None:
    tokens = (await desk.redeem(await desk.code())).body
    asked = await desk.visitor.open(
        "/connect/endsession", post_logout_redirect_uri=CALLBACK, client_id=DESIGN.client_id
    )
    assert asked.address.path == "/account/logout"
    bad = await desk.visitor.open("/connect/endsession", id_token_hint="not.a.token")
    assert bad.status == 400
    elsewhere = await desk.visitor.open(
        "/connect/endsession", id_token_hint=tokens["id_token"], post_logout_redirect_uri="https://elsewhere.example/"
    )
    assert elsewhere.address.origin() == desk.visitor.url.origin()
    assert "You are signed out" in elsewhere.page


@pytest.mark.parametrize(
    "changes",
    [
        {"code": "guessed"},
        {"redirect_uri": CALLBACK + "/"},
        {"redirect_uri": ""},
        {"code_verifier": "w" * 43},
        {"code_verifier": "short"},
        {"code_verifier": ""},
        {"client_id": OTHER.client_id, "client_secret": OTHER.client_secret},
    ],
)
async def test_a_code_is_worth_nothing_without_all_that_belongs_to_it(desk: Desk, changes: dict[str, str]) -> None:
    reply = await desk.redeem(await desk.code(), **changes)
    assert (reply.status, reply.body) == (400, {"error": "invalid_grant"})


async def test_the_answer_has_the_keys_of_the_service_in_its_order(desk: Desk) -> None:
    reply = await desk.redeem(await desk.code())
    assert list(reply.body) == ["id_token", "access_token", "expires_in", "token_type", "refresh_token", "scope"]
    assert reply.body["scope"] == REQUEST["scope"]
    assert "no-store" in reply.headers["Cache-Control"]


async def test_a_code_is_good_for_five_minutes(desk: Desk, turned: clock.ManualClock) -> None:
    late, in_time = await desk.code(), await desk.code()
    turned.advance(299)
    assert (await desk.redeem(in_time)).status == 200
    turned.advance(1)
    assert (await desk.redeem(late)).body == {"error": "invalid_grant"}


async def test_a_code_that_comes_twice_ends_what_came_of_it(desk: Desk) -> None:
    code = await desk.code()
    tokens = (await desk.redeem(code)).body
    assert await desk.is_good(tokens["access_token"])
    assert (await desk.redeem(code)).body == {"error": "invalid_grant"}
    assert not await desk.is_good(tokens["access_token"])
    refreshed = await desk.token("refresh_token", refresh_token=tokens["refresh_token"])
    assert refreshed.body == {"error": "invalid_grant"}


async def test_a_refresh_may_ask_for_less_but_never_for_more(desk: Desk) -> None:
    tokens = (await desk.redeem(await desk.code())).body
    more = await desk.token("refresh_token", refresh_token=tokens["refresh_token"], scope="openid email")
    assert more.body == {"error": "invalid_scope"}
    less = await desk.token("refresh_token", refresh_token=tokens["refresh_token"], scope="design.domain")
    assert less.body["scope"] == "design.domain"
    assert "id_token" not in less.body
    again = await desk.token("refresh_token", refresh_token=less.body["refresh_token"])
    assert again.body["scope"] == REQUEST["scope"]


async def test_a_refresh_token_is_one_applications_and_lasts_thirty_days(desk: Desk, turned: clock.ManualClock) -> None:
    tokens = (await desk.redeem(await desk.code())).body
    stolen = await desk.token("refresh_token", OTHER, refresh_token=tokens["refresh_token"])
    assert stolen.body == {"error": "invalid_grant"}
    turned.advance(30 * 86_400 - 1)
    renewed = await desk.token("refresh_token", refresh_token=tokens["refresh_token"])
    assert renewed.status == 200
    turned.advance(30 * 86_400)
    late = await desk.token("refresh_token", refresh_token=renewed.body["refresh_token"])
    assert late.body == {"error": "invalid_grant"}


async def test_a_user_who_is_gone_has_no_session_no_code_and_no_refresh(desk: Desk) -> None:
    tokens, code = (await desk.redeem(await desk.code())).body, await desk.code()
    desk.caller.sandbox.people.remove(people.USERS[0].id)
    assert (await desk.visitor.open("/account")).address.path == "/account/login"
    assert (await desk.redeem(code)).body == {"error": "invalid_grant"}
    refreshed = await desk.token("refresh_token", refresh_token=tokens["refresh_token"])
    assert refreshed.body == {"error": "invalid_grant"}


async def test_applications_come_go_and_change_while_it_runs(desk: Desk) -> None:
    known = desk.caller.sandbox.accounts
    added = dataclasses.replace(accounts.READY, name="new", application_id="app-9", client_id="c9", client_secret="s9")
    assert (await desk.token("client_credentials", added)).body == {"error": "invalid_client"}
    known.add(added)
    token = (await desk.token("client_credentials", added)).body["access_token"]
    assert await desk.is_good(token)
    changed = dataclasses.replace(added, client_secret="rotated")
    known.replace(changed)
    assert (await desk.token("client_credentials", added)).body == {"error": "invalid_client"}
    assert (await desk.token("client_credentials", changed)).status == 200
    known.remove(added.application_id)
    assert not await desk.is_good(token)
    assert (await desk.token("client_credentials", changed)).body == {"error": "invalid_client"}


@pytest.mark.parametrize("scope", ["openid", "user.access", "offline_access"])
async def test_without_a_user_there_is_no_scope_about_one(desk: Desk, scope: str) -> None:
    assert (await desk.token("client_credentials", scope=scope)).body == {"error": "invalid_scope"}


async def test_two_sandboxes_know_neither_each_others_sessions_nor_codes(opens: Opens) -> None:
    async with opens() as one, opens() as other:
        code = await one.code()
        assert "password" in (await other.ask()).page
        assert (await other.redeem(code)).body == {"error": "invalid_grant"}


async def test_the_discovery_document_names_what_the_applications_may_use(start: Starts) -> None:
    async def document(caller: Caller) -> Any:
        async with caller.session.get(caller.sandbox.url + "/.well-known/openid-configuration") as response:
            return await response.json()

    async with start() as caller:
        plain = await document(caller)
        caller.sandbox.accounts.add(DESIGN)
        whole = await document(caller)
    assert (plain["grant_types_supported"], plain["scopes_supported"]) == (["client_credentials"], ["supply.domain"])
    assert whole["grant_types_supported"] == ["authorization_code", "client_credentials", "refresh_token"]
    assert set(whole["scopes_supported"]) >= {"openid", "profile", "email", "user.access", "design.domain"}
    assert whole["code_challenge_methods_supported"] == ["S256"]


@pytest.mark.parametrize("path, status", [("/connect/revocation", 400), ("/connect/introspect", 401)])
async def test_only_an_application_with_its_secret_may_ask_about_tokens(desk: Desk, path: str, status: int) -> None:
    form = {"client_id": DESIGN.client_id, "client_secret": "wrong", "token": "x"}
    reply = await desk.caller.post(desk.caller.sandbox.url + path, data=form)
    assert (reply.status, reply.body) == (status, {"error": "invalid_client"})


async def test_an_application_learns_nothing_of_anothers_tokens_and_cannot_end_them(desk: Desk) -> None:
    tokens = (await desk.redeem(await desk.code())).body
    url, secret = desk.caller.sandbox.url, {"client_id": OTHER.client_id, "client_secret": OTHER.client_secret}
    for name in ("access_token", "refresh_token"):
        form = {**secret, "token": tokens[name]}
        assert (await desk.caller.post(url + "/connect/introspect", data=form)).body == {"active": False}
        assert (await desk.caller.post(url + "/connect/revocation", data=form)).body == {"error": "invalid_grant"}
    assert await desk.is_good(tokens["access_token"])


@pytest.mark.parametrize("token", ["", "not.a.token"])
async def test_userinfo_wants_a_good_token(desk: Desk, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    async with desk.caller.session.get(desk.caller.sandbox.url + "/connect/userinfo", headers=headers) as response:
        assert (response.status, await response.json()) == (401, {"error": "invalid_token"})
        assert response.headers["WWW-Authenticate"] == 'Bearer error="invalid_token"'


async def test_an_id_token_is_no_access_token(desk: Desk) -> None:
    tokens = (await desk.redeem(await desk.code())).body
    assert not await desk.is_good(tokens["id_token"])
