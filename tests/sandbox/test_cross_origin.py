"""Cross-origin requests of web pages: which endpoints of the sandbox allow them."""

import pytest
from sandbox.code_flow import CodeFlow
from support.sandbox_client import SandboxClient

from nexar_sandbox import faults
from nexar_sandbox.graphql import transport
from nexar_sandbox.identity import authorization_endpoint, discovery, login

ORIGIN = {"Origin": "https://pages.example"}
PREFLIGHT = {
    **ORIGIN,
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization,content-type",
}


@pytest.mark.parametrize("path", [*transport.PATHS, *discovery.CROSS_ORIGIN_PATHS])
async def test_a_preflight_allows_any_origin_without_credentials(caller: SandboxClient, path: str) -> None:
    caller.sandbox.journal.clear()
    async with caller.session.options(caller.sandbox.url + path, headers=PREFLIGHT) as response:
        assert (response.status, await response.read()) == (204, b"")
        assert response.headers["Access-Control-Allow-Origin"] == "*"
        assert response.headers["Access-Control-Allow-Methods"] == "POST"
        assert response.headers["Access-Control-Allow-Headers"] == "authorization,content-type"
        assert int(response.headers["Access-Control-Max-Age"]) == transport.PREFLIGHT_SECONDS
        assert "Access-Control-Allow-Credentials" not in response.headers
    assert not list(caller.sandbox.journal.last(10))


async def test_responses_of_every_status_are_readable_across_origins(caller: SandboxClient) -> None:
    form = {"grant_type": "client_credentials", "client_id": "nobody", "client_secret": "x"}
    asked = (
        await caller.log_in(),
        await caller.post(caller.sandbox.token_url, data=form, headers=ORIGIN),
        await caller.ask("{ __typename }", headers=ORIGIN),
        await caller.ask("{ nonsense", headers={**ORIGIN, "token": caller.token}),
        await caller.ask("{ supAttributes { id } }", headers=ORIGIN),
    )
    assert [response.status for response in asked] == [200, 400, 200, 400, 401]
    for response in asked:
        assert response.headers["Access-Control-Allow-Origin"] == "*"
        assert "Access-Control-Allow-Credentials" not in response.headers


async def test_retry_after_is_readable_across_origins(caller: SandboxClient) -> None:
    caller.sandbox.faults.replace(faults.parse_faults("429 retry_after=30 count=1"))
    async with caller.session.post(caller.sandbox.graphql_url, json={}, headers=ORIGIN) as response:
        assert response.status == 429
        assert response.headers["Access-Control-Allow-Origin"] == "*"
        assert "Retry-After" in response.headers["Access-Control-Expose-Headers"]


async def test_cookie_and_server_endpoints_are_not_cross_origin(flow: CodeFlow) -> None:
    shut = (
        authorization_endpoint.AUTHORIZE_PATH,
        authorization_endpoint.CONSENT_PATH,
        login.LOGIN_PATH,
        login.LOGOUT_PATH,
        login.END_SESSION_PATH,
        discovery.INTROSPECTION_PATH,
        "/admin/faults",
    )
    session = flow.caller.session
    for path in shut:
        for method in ("OPTIONS", "GET"):
            async with session.request(method, flow.caller.sandbox.url + path, headers=PREFLIGHT) as response:
                assert not [name for name in response.headers if name.startswith("Access-Control")], path
