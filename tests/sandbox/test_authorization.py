"""The authorization endpoint and its pages, where clients or browsers do not do as they should."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest
import yarl
from sandbox.code_flow import CALLBACK, DESIGN, OTHER, PLAIN, REQUEST, CodeFlow
from sandbox.page_browser import PageBrowser
from support import cases

from nexar_sandbox import user_directory
from proxy.kit import clock

Opens = Callable[[], AbstractAsyncContextManager[CodeFlow]]


@cases.parametrize(
    "changes, error",
    ({"client_id": OTHER.client_id, "scope": "openid design.domain"}, "invalid_scope"),
    ({"client_id": PLAIN.client_id, "scope": "supply.domain"}, "unauthorized_client"),
    ({"max_age": "9" * 5000}, "invalid_request"),
)
async def test_other_authorization_errors_are_redirected_with_the_state(
    flow: CodeFlow, changes: dict[str, str | None], error: str
) -> None:
    response_page = await flow.ask(**changes)
    assert str(response_page.address.with_query(None)) == CALLBACK
    assert (response_page.address.query["error"], response_page.address.query["state"]) == (error, "a state")
    assert "code" not in response_page.address.query


async def test_the_consent_page_names_the_application_and_its_scopes(flow: CodeFlow) -> None:
    login = await flow.ask()
    assert (login.status, login.address.path) == (200, "/account/login")
    assert DESIGN.name in login.page
    consent = await flow.visitor.sign_in(login)
    for shown in (DESIGN.name, "ada@sandbox.example", "openid", "design.domain", "offline_access", CALLBACK):
        assert shown in consent.page
    assert "supply.domain" not in consent.page


async def test_denied_consent_redirects_without_a_code_and_is_requested_again(flow: CodeFlow) -> None:
    consent = await flow.visitor.sign_in(await flow.ask())
    denied = await flow.visitor.send(consent, decision="deny")
    assert (denied.address.query["error"], denied.address.query["state"]) == ("access_denied", "a state")
    assert "decision" in (await flow.ask()).page
    assert (await flow.ask(prompt="none")).address.query["error"] == "consent_required"


async def test_consent_is_remembered_and_requested_only_for_new_scopes(flow: CodeFlow) -> None:
    await flow.code()
    assert "code" in (await flow.ask()).address.query
    assert "code" in (await flow.ask(prompt="none", scope="openid")).address.query
    assert "decision" in (await flow.ask(scope="openid profile")).page
    assert "decision" in (await flow.ask(prompt="consent")).page


async def test_prompt_login_and_an_old_sign_in_require_one_login(
    flow: CodeFlow, manual_clock: clock.ManualClock
) -> None:
    await flow.code()
    response_page = await flow.ask(prompt="login")
    assert "password" in response_page.page
    assert "code" in (await flow.visitor.sign_in(response_page)).address.query
    manual_clock.advance(61)
    assert (await flow.ask(max_age="60", prompt="none")).address.query["error"] == "login_required"
    assert "code" in (await flow.visitor.sign_in(await flow.ask(max_age="60"))).address.query
    assert "code" in (await flow.ask(max_age="60")).address.query


async def test_max_age_zero_requires_one_login(flow: CodeFlow, manual_clock: clock.ManualClock) -> None:
    await flow.code()
    manual_clock.advance(0.5)
    login = await flow.ask(max_age="0")
    manual_clock.advance(0.2)
    back = await flow.visitor.sign_in(login)
    assert "code" in back.address.query


async def test_the_login_hint_prefills_the_email_address_escaped(flow: CodeFlow) -> None:
    response_page = await flow.ask(login_hint='ada@sandbox.example"><script>')
    assert 'value="ada@sandbox.example&#34;&gt;&lt;script&gt;"' in response_page.page


async def test_every_redirect_has_the_issuer(flow: CodeFlow) -> None:
    wrong = await flow.ask(scope="nonsense")
    denied = await flow.visitor.send(await flow.visitor.sign_in(await flow.ask()), decision="deny")
    allowed = await flow.visitor.send(await flow.ask(), decision="allow")
    assert [response_page.address.query["iss"] for response_page in (wrong, denied, allowed)] == [
        flow.caller.sandbox.url
    ] * 3
    assert ["error" in response_page.address.query for response_page in (wrong, denied, allowed)] == [True, True, False]


async def test_an_authorization_request_by_post_works_like_get(flow: CodeFlow) -> None:
    await flow.code()
    url = flow.caller.sandbox.url
    async with flow.caller.session.post(url + "/connect/authorize", data=REQUEST, allow_redirects=False) as response:
        target = yarl.URL(response.headers["Location"])
    assert (response.status, target.path) == (303, "/connect/authorize")
    assert dict(target.query) == REQUEST


@pytest.mark.parametrize("field, value", [("csrf", ""), ("csrf", "0" * 64)])
async def test_a_form_without_a_csrf_token_neither_signs_in_nor_consents(
    flow: CodeFlow, field: str, value: str
) -> None:
    login = await flow.ask()
    refused = await flow.visitor.send(
        login, email=user_directory.DEFAULT_USERS[0].email, password=user_directory.DEFAULT_PASSWORD, **{field: value}
    )
    assert refused.status == 400
    consent = await flow.visitor.sign_in(refused)
    assert (await flow.visitor.send(consent, decision="allow", **{field: value})).status == 400
    assert "decision" in (await flow.ask()).page


@pytest.mark.parametrize("path", ["/account/login", "/account/logout", "/account/consent", "/connect/authorize"])
async def test_an_unreadable_form_is_rejected(flow: CodeFlow, path: str) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded; charset=klingon"}
    url = flow.caller.sandbox.url + path
    async with flow.caller.session.post(url, data=b"csrf=x", headers=headers) as response:
        assert (response.status, await response.text()) == (400, "the form cannot be read")


async def test_a_form_of_another_session_is_rejected(opens: Opens) -> None:
    async with opens() as flow, PageBrowser(str(flow.visitor.url)) as stranger:
        await stranger.open("/account/login")
        login = await flow.ask()
        assert (await stranger.sign_in(login)).status == 400


async def test_a_wrong_password_shows_the_login_page_without_details(flow: CodeFlow) -> None:
    login = await flow.ask()
    wrong = await flow.visitor.sign_in(login, password="a guess")
    nobody = await flow.visitor.send(login, email="nobody@sandbox.example", password="a guess")
    assert wrong.status == nobody.status == 400
    assert 'role="alert"' in wrong.page
    assert "a guess" not in wrong.page
    assert wrong.page.replace('required value="ada@', 'required value="nobody@') == nobody.page
    assert "decision" in (await flow.visitor.sign_in(wrong)).page


@pytest.mark.parametrize(
    "return_to",
    ["https://elsewhere.example/", "//elsewhere.example", "/\\elsewhere.example", "/\t/elsewhere.example", ""],
)
async def test_login_redirects_to_the_sandbox_only(flow: CodeFlow, return_to: str) -> None:
    response_page = await flow.visitor.sign_in(await flow.visitor.open("/account/login", return_to=return_to))
    assert (response_page.status, response_page.address.path) == (200, "/account")
    assert "Ada Sandbox" in response_page.page


async def test_query_parameters_are_escaped_on_the_login_page(flow: CodeFlow) -> None:
    response_page = await flow.visitor.open("/account/login", return_to='/"><script>alert(1)</script>')
    assert "<script>" not in response_page.page


async def test_the_content_security_policy_allows_redirects_to_the_application_only(
    flow: CodeFlow,
) -> None:
    login = await flow.ask()
    policy = "default-src 'none'; style-src 'self'; form-action 'self' http://localhost:3000; base-uri 'none'; "
    for response_page in (login, await flow.visitor.sign_in(login)):
        assert response_page.headers["Content-Security-Policy"] == policy + "frame-ancestors 'none'"
        assert response_page.headers["Cache-Control"] == "no-store"
        assert (response_page.headers["X-Frame-Options"], response_page.headers["X-Content-Type-Options"]) == (
            "DENY",
            "nosniff",
        )
    own = await flow.visitor.open("/account")
    assert "form-action 'self'; " in own.headers["Content-Security-Policy"]


async def test_the_session_cookie_is_http_only_and_named_by_port(flow: CodeFlow) -> None:
    await flow.visitor.open("/account/login")
    (before,) = flow.visitor.jar
    assert before.key == f"sandbox_session_{flow.caller.sandbox.port}"
    assert (before["httponly"], before["samesite"], before["path"]) == (True, "Lax", "/")
    await flow.visitor.sign_in(await flow.ask())
    (after,) = flow.visitor.jar
    assert after.value != before.value


async def test_a_new_sign_in_ends_the_previous_session(flow: CodeFlow) -> None:
    await flow.visitor.sign_in(await flow.visitor.open("/account/login"))
    (before,) = flow.visitor.jar
    key, value = before.key, before.value
    await flow.visitor.sign_in(await flow.visitor.open("/account/login"))
    assert (await flow.visitor.open("/account")).address.path == "/account"
    flow.visitor.jar.update_cookies({key: value}, flow.visitor.url)
    assert (await flow.visitor.open("/account")).address.path == "/account/login"


@pytest.mark.parametrize(
    "forge", [lambda value: value[:-1] + "x", lambda value: value.partition(".")[0], lambda _: "x.y"]
)
async def test_a_cookie_with_a_wrong_signature_is_ignored(flow: CodeFlow, forge: Callable[[str], str]) -> None:
    await flow.visitor.sign_in(await flow.visitor.open("/account/login"))
    (cookie,) = flow.visitor.jar
    flow.visitor.jar.update_cookies({cookie.key: forge(cookie.value)}, flow.visitor.url)
    assert (await flow.visitor.open("/account")).address.path == "/account/login"


async def test_a_session_expires_after_ten_hours(flow: CodeFlow, manual_clock: clock.ManualClock) -> None:
    await flow.visitor.sign_in(await flow.visitor.open("/account/login"))
    manual_clock.advance(35_999)
    assert (await flow.visitor.open("/account")).address.path == "/account"
    manual_clock.advance(1)
    assert (await flow.visitor.open("/account")).address.path == "/account/login"


async def test_sign_out_needs_the_csrf_token(flow: CodeFlow) -> None:
    application = await flow.visitor.sign_in(await flow.visitor.open("/account/login"))
    assert (await flow.visitor.send(application, csrf="x")).status == 400
    assert (await flow.visitor.open("/account")).address.path == "/account"
    assert "You are signed out" in (await flow.visitor.send(application)).page
    assert (await flow.visitor.open("/account")).address.path == "/account/login"


async def test_an_application_cannot_end_a_session_without_an_id_token(flow: CodeFlow) -> None:
    tokens = (await flow.redeem(await flow.code())).body
    asked = await flow.visitor.open(
        "/connect/endsession", post_logout_redirect_uri=CALLBACK, client_id=DESIGN.client_id
    )
    assert asked.address.path == "/account/logout"
    bad = await flow.visitor.open("/connect/endsession", id_token_hint="not.a.token")
    assert bad.status == 400
    elsewhere = await flow.visitor.open(
        "/connect/endsession", id_token_hint=tokens["id_token"], post_logout_redirect_uri="https://elsewhere.example/"
    )
    assert elsewhere.address.origin() == flow.visitor.url.origin()
    assert "You are signed out" in elsewhere.page
