"""The authorization code flow, where clients or browsers do not do as they should: its endpoint and pages, codes,
refresh tokens, and the tokens of users."""

import logging

import pytest
from sandbox.code_flow import CALLBACK, DESIGN, OTHER, PLAIN, REQUEST, CodeFlow
from sandbox.page_browser import PageBrowser
from support import cases

from nexar_sandbox import user_directory
from proxy.kit import clock


@cases.parametrize(
    "changes, error",
    ({"client_id": OTHER.client_id, "scope": "openid design.domain"}, "invalid_scope"),
    ({"client_id": PLAIN.client_id, "scope": "supply.domain"}, "unauthorized_client"),
)
async def test_other_errors_redirect_with_the_state(flow: CodeFlow, changes: dict[str, str | None], error: str) -> None:
    response_page = await flow.ask(**changes)
    assert str(response_page.address.with_query(None)) == CALLBACK
    assert (response_page.address.query["error"], response_page.address.query["state"]) == (error, "a state")
    assert response_page.address.query["iss"] == flow.caller.sandbox.url
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
    assert (await flow.ask(prompt="none")).address.query["error"] == "consent_required"
    denied = await flow.visitor.send(consent, decision="deny")
    assert (denied.address.query["error"], denied.address.query["state"]) == ("access_denied", "a state")
    allowed = await flow.visitor.send(await flow.ask(), decision="allow")
    assert "error" not in allowed.address.query
    assert denied.address.query["iss"] == allowed.address.query["iss"] == flow.caller.sandbox.url


async def test_prompt_login_requires_one_login(flow: CodeFlow) -> None:
    await flow.code()
    response_page = await flow.ask(prompt="login")
    assert "password" in response_page.page
    assert "code" in (await flow.visitor.sign_in(response_page)).address.query


@pytest.mark.parametrize("field, value", [("csrf", ""), ("csrf", "0" * 64)])
async def test_form_without_a_csrf_token_neither_signs_in_nor_consents(flow: CodeFlow, field: str, value: str) -> None:
    login = await flow.ask()
    refused = await flow.visitor.send(
        login, email=user_directory.DEFAULT_USERS[0].email, password=user_directory.DEFAULT_PASSWORD, **{field: value}
    )
    assert refused.status == 400
    consent = await flow.visitor.sign_in(refused)
    assert (await flow.visitor.send(consent, decision="allow", **{field: value})).status == 400
    assert "decision" in (await flow.ask()).page


async def test_a_form_of_another_session_is_rejected(flow: CodeFlow) -> None:
    async with PageBrowser(str(flow.visitor.url)) as stranger:
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


async def test_the_content_security_policy_allows_redirects_to_the_application_only(flow: CodeFlow) -> None:
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


async def test_no_token_code_or_password_is_in_any_log_line(flow: CodeFlow, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        code = await flow.code()
        tokens = (await flow.redeem(code)).body
        await flow.token("refresh_token", refresh_token=tokens["refresh_token"])
    secrets = [
        code,
        user_directory.DEFAULT_PASSWORD,
        DESIGN.client_secret,
        *(tokens[name] for name in tokens if "token" in name[-5:]),
    ]
    assert len(secrets) == 6
    assert [secret for secret in secrets if secret in caplog.text] == []


async def test_a_code_expires_after_five_minutes(flow: CodeFlow, manual_clock: clock.ManualClock) -> None:
    late, in_time = await flow.code(), await flow.code()
    manual_clock.advance(299)
    assert (await flow.redeem(in_time)).status == 200
    manual_clock.advance(1)
    assert (await flow.redeem(late)).body == {"error": "invalid_grant"}


async def test_a_reused_code_revokes_its_tokens(flow: CodeFlow) -> None:
    code = await flow.code()
    tokens = (await flow.redeem(code)).body
    assert await flow.is_good(tokens["access_token"])
    assert (await flow.redeem(code)).body == {"error": "invalid_grant"}
    assert not await flow.is_good(tokens["access_token"])
    refreshed = await flow.token("refresh_token", refresh_token=tokens["refresh_token"])
    assert refreshed.body == {"error": "invalid_grant"}


async def test_a_refresh_may_reduce_scopes_but_not_extend_them(flow: CodeFlow) -> None:
    tokens = (await flow.redeem(await flow.code())).body
    more = await flow.token("refresh_token", refresh_token=tokens["refresh_token"], scope="openid email")
    assert more.body == {"error": "invalid_scope"}
    less = await flow.token("refresh_token", refresh_token=tokens["refresh_token"], scope="design.domain")
    assert less.body["scope"] == "design.domain"
    assert "id_token" not in less.body
    again = await flow.token("refresh_token", refresh_token=less.body["refresh_token"])
    assert again.body["scope"] == REQUEST["scope"]


async def test_refresh_token_is_its_clients_for_30_days(flow: CodeFlow, manual_clock: clock.ManualClock) -> None:
    tokens = (await flow.redeem(await flow.code())).body
    stolen = await flow.token("refresh_token", OTHER, refresh_token=tokens["refresh_token"])
    assert stolen.body == {"error": "invalid_grant"}
    manual_clock.advance(30 * 86_400 - 1)
    renewed = await flow.token("refresh_token", refresh_token=tokens["refresh_token"])
    assert renewed.status == 200
    manual_clock.advance(30 * 86_400)
    late = await flow.token("refresh_token", refresh_token=renewed.body["refresh_token"])
    assert late.body == {"error": "invalid_grant"}


async def test_another_application_cannot_use_a_code(flow: CodeFlow) -> None:
    code = await flow.code()
    assert (await flow.redeem(code, OTHER)).body == {"error": "invalid_grant"}
    assert (await flow.redeem(code)).status == 200


async def test_revocation_ends_all_refresh_tokens_of_one_sign_in(flow: CodeFlow) -> None:
    first, other = [(await flow.redeem(await flow.code())).body for _ in range(2)]
    second = (await flow.token("refresh_token", refresh_token=first["refresh_token"])).body
    third = (await flow.token("refresh_token", refresh_token=second["refresh_token"])).body
    stolen = await flow.token("refresh_token", refresh_token=first["refresh_token"])
    assert stolen.body == {"error": "invalid_grant"}
    for tokens in (first, second, third):
        assert not await flow.is_good(tokens["access_token"])
    assert (await flow.token("refresh_token", refresh_token=third["refresh_token"])).status == 400
    assert await flow.is_good(other["access_token"])
    assert (await flow.token("refresh_token", refresh_token=other["refresh_token"])).status == 200


@pytest.mark.parametrize("scope", ["openid", "user.access", "offline_access"])
async def test_client_credentials_get_no_user_scopes(flow: CodeFlow, scope: str) -> None:
    assert (await flow.token("client_credentials", scope=scope)).body == {"error": "invalid_scope"}


@pytest.mark.parametrize("token", ["", "not.a.token"])
async def test_userinfo_needs_a_valid_token(flow: CodeFlow, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    async with flow.caller.session.get(flow.caller.sandbox.url + "/connect/userinfo", headers=headers) as response:
        assert (response.status, await response.json()) == (401, {"error": "invalid_token"})
        assert response.headers["WWW-Authenticate"] == 'Bearer error="invalid_token"'


async def test_an_id_token_is_not_accepted_as_an_access_token(flow: CodeFlow) -> None:
    tokens = (await flow.redeem(await flow.code())).body
    assert not await flow.is_good(tokens["id_token"])
