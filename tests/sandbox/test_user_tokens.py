"""Tokens of users: codes, refresh tokens, and the claims of the user."""

import dataclasses
import logging

import pytest
from sandbox.code_flow import DESIGN, OTHER, REQUEST, CodeFlow

from nexar_sandbox import applications, user_directory
from proxy.kit import clock


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


async def test_a_refresh_token_belongs_to_its_client_and_expires_after_thirty_days(
    flow: CodeFlow, manual_clock: clock.ManualClock
) -> None:
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


async def test_applications_can_be_changed_at_run_time(flow: CodeFlow) -> None:
    known = flow.caller.sandbox.applications
    added = dataclasses.replace(
        applications.DEFAULT_APPLICATION, name="new", application_id="app-9", client_id="c9", client_secret="s9"
    )
    assert (await flow.token("client_credentials", added)).body == {"error": "invalid_client"}
    known.add(added)
    token = (await flow.token("client_credentials", added)).body["access_token"]
    assert await flow.is_good(token)
    changed = dataclasses.replace(added, client_secret="rotated")
    known.replace(changed)
    assert (await flow.token("client_credentials", added)).body == {"error": "invalid_client"}
    assert (await flow.token("client_credentials", changed)).status == 200


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
