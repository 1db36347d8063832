"""The token endpoint, the tokens, and their published metadata (contract graphql.md §4)."""

import base64

import jwt
import pytest
from jwt.types import Options
from support import cases
from support.sandbox_client import SandboxClient, StartSandbox

from nexar_sandbox import applications
from proxy.kit import clock, windows

DESIGNER = applications.SandboxApplication("designer", "app-2", "client-2", "secret-2", domains=("design", "supply"))


async def test_the_token_response_has_the_fields_of_the_service_in_order(caller: SandboxClient) -> None:
    response = await caller.log_in(scope="supply.domain")
    assert response.status == 200
    assert list(response.body) == ["access_token", "expires_in", "token_type", "scope"]
    assert (response.body["expires_in"], response.body["token_type"]) == (86_400, "Bearer")
    assert response.body["scope"] == "supply.domain"
    assert "no-store" in response.headers["Cache-Control"]
    assert response.headers["Pragma"] == "no-cache"


async def test_a_token_has_the_claims_and_is_signed_by_the_published_key(
    caller: SandboxClient, manual_clock: clock.ManualClock
) -> None:
    async with caller.session.get(caller.sandbox.url + "/.well-known/openid-configuration") as response:
        document = await response.json()
    async with caller.session.get(document["jwks_uri"]) as response:
        key = jwt.PyJWKSet.from_dict(await response.json()).keys[0]
    assert jwt.get_unverified_header(caller.token)["kid"] == key.key_id
    untimed: Options = {"verify_exp": False, "verify_nbf": False, "verify_iat": False, "verify_aud": False}
    claims = jwt.decode(caller.token, key, algorithms=["RS256"], options=untimed)
    now = int(manual_clock.now())
    assert set(claims) == {"iat", "nbf", "exp", "iss", "aud", "client_id", "scope", "jti"}
    assert (claims["iat"], claims["nbf"], claims["exp"]) == (now, now, now + 86_400)
    assert claims["iss"] == document["issuer"] == caller.sandbox.url
    assert claims["client_id"] == caller.sandbox.default_application.client_id
    assert claims["scope"] == ["supply.domain"]
    assert document["token_endpoint"] == caller.sandbox.token_url


async def test_every_token_has_its_own_jti(start: StartSandbox) -> None:
    async with start(token_windows=()) as caller:
        tokens = [(await caller.log_in()).body["access_token"] for _ in range(5)]
    ids = {jwt.decode(token, options={"verify_signature": False})["jti"] for token in tokens}
    assert len(ids) == 5


async def test_client_credentials_may_use_basic_authentication(caller: SandboxClient) -> None:
    application = caller.sandbox.default_application
    pair = base64.b64encode(f"{application.client_id}:{application.client_secret}".encode()).decode()
    response = await caller.post(
        caller.sandbox.token_url,
        data={"grant_type": "client_credentials"},
        headers={"Authorization": f"Basic {pair}"},
    )
    assert (response.status, response.body["token_type"]) == (200, "Bearer")


@cases.parametrize("form, error")
async def test_an_invalid_token_request_gets_400_with_the_oauth_error(
    start: StartSandbox, form: dict[str, str], error: str
) -> None:
    async with start(token_windows=()) as caller:
        response = await caller.log_in(**form)
    assert (response.status, response.body) == (400, {"error": error})
    assert "no-store" in response.headers["Cache-Control"]


@pytest.mark.parametrize("header", ["Basic", "Basic !!!", "Basic Zm9v", "Basic bm9ib2R5Ong="])
async def test_an_unreadable_basic_header_is_an_invalid_client(start: StartSandbox, header: str) -> None:
    async with start(token_windows=()) as caller:
        response = await caller.post(
            caller.sandbox.token_url,
            data={"grant_type": "client_credentials"},
            headers={"Authorization": header},
        )
    assert (response.status, response.body) == (400, {"error": "invalid_client"})


async def test_a_body_that_is_no_form_or_a_get_is_an_invalid_request(caller: SandboxClient) -> None:
    reply = await caller.post(caller.sandbox.token_url, json={"grant_type": "client_credentials"})
    assert (reply.status, reply.body) == (400, {"error": "invalid_request"})
    async with caller.session.get(caller.sandbox.token_url) as response:
        assert (response.status, await response.json()) == (400, {"error": "invalid_request"})


@pytest.mark.parametrize("charset, body", [("klingon", b"grant_type=x"), ("utf-8", b"grant_type=\xff")])
async def test_an_unreadable_form_is_an_invalid_request(caller: SandboxClient, charset: str, body: bytes) -> None:
    headers = {"Content-Type": f"application/x-www-form-urlencoded; charset={charset}"}
    response = await caller.post(caller.sandbox.token_url, data=body, headers=headers)
    assert (response.status, response.body) == (400, {"error": "invalid_request"})


async def test_a_token_request_without_a_scope_gets_all_scopes_of_the_application(start: StartSandbox) -> None:
    async with start(applications=(DESIGNER,), token_windows=()) as caller:
        both = await caller.log_in()
        one = await caller.log_in(scope="supply.domain")
    assert both.body["scope"] == "design.domain supply.domain"
    assert one.body["scope"] == "supply.domain"


async def test_the_third_token_request_in_a_second_is_rejected(
    caller: SandboxClient, manual_clock: clock.ManualClock
) -> None:
    assert (await caller.log_in()).status == 200
    response = await caller.log_in()
    assert (response.status, response.body["error"]) == (429, "slow_down")
    assert response.headers["Retry-After"] == "1"
    manual_clock.advance(1)
    assert (await caller.log_in()).status == 200


async def test_retry_after_is_in_whole_seconds_rounded_up(start: StartSandbox, manual_clock: clock.ManualClock) -> None:
    async with start(token_windows=(windows.Window(1, 10),)) as caller:
        manual_clock.advance(3.5)
        assert (await caller.log_in()).headers["Retry-After"] == "7"


async def test_token_rate_limits_apply_per_client(start: StartSandbox) -> None:
    ready = applications.DEFAULT_APPLICATION
    async with start(applications=(ready, DESIGNER), token_windows=(windows.Window(1, 60),)) as caller:
        assert (await caller.log_in()).status == 429
        other = await caller.log_in(client_id="client-2", client_secret="secret-2")
    assert other.status == 200


async def test_failed_authentications_count_against_the_rate_limit(start: StartSandbox) -> None:
    async with start(token_windows=(windows.Window(3, 60),)) as caller:
        statuses = [(await caller.log_in(client_secret="wrong")).status for _ in range(3)]
    assert statuses == [400, 400, 429]


async def test_token_requests_are_counted(caller: SandboxClient) -> None:
    assert caller.sandbox.request_counts.tokens == 1
    await caller.log_in(client_id="nobody")
    assert caller.sandbox.request_counts.tokens == 2


def test_the_repr_of_an_application_has_no_credentials() -> None:
    assert "secret-2" not in repr(DESIGNER)
    assert "client-2" not in repr(DESIGNER)


def test_an_application_with_an_unknown_feature_is_rejected_by_name() -> None:
    with pytest.raises(ValueError, match="FLYING"):
        applications.SandboxApplication("x", "1", "2", "3", features=frozenset({"FLYING"}))


def test_two_applications_may_not_share_a_client_id() -> None:
    with pytest.raises(ValueError, match="client ids"):
        applications.ApplicationRegistry((DESIGNER, DESIGNER))


async def test_a_repeated_form_field_is_an_invalid_request(caller: SandboxClient) -> None:
    application = caller.sandbox.default_application
    form = [
        ("grant_type", "client_credentials"),
        ("client_id", application.client_id),
        ("client_secret", application.client_secret),
        ("scope", "supply.domain"),
        ("scope", "supply.domain"),
    ]
    response = await caller.post(caller.sandbox.token_url, data=form)
    assert (response.status, response.body) == (400, {"error": "invalid_request"})
