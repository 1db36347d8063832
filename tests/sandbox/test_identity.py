"""The token endpoint, tokens, their published metadata, users and applications (contract graphql.md §4)."""

import dataclasses
from typing import Any

import jwt
import pytest
from support import cases
from support.sandbox_client import SandboxClient, StartSandbox

from nexar_sandbox import applications, clocks, user_directory
from proxy.kit import clock

DESIGNER = applications.SandboxApplication("designer", "app-2", "client-2", "secret-2", domains=("design", "supply"))


async def test_every_token_has_its_own_jti(start: StartSandbox) -> None:
    async with start(token_windows=()) as caller:
        tokens = [(await caller.log_in()).body["access_token"] for _ in range(5)]
    ids = {jwt.decode(token, options={"verify_signature": False})["jti"] for token in tokens}
    assert len(ids) == 5


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


async def test_retry_after_is_in_whole_seconds_rounded_up(start: StartSandbox, manual_clock: clock.ManualClock) -> None:
    async with start(token_windows=(clocks.Window(1, 10),)) as caller:
        manual_clock.advance(3.5)
        assert (await caller.log_in()).headers["Retry-After"] == "7"


async def test_token_rate_limits_apply_per_client(start: StartSandbox) -> None:
    ready = applications.DEFAULT_APPLICATION
    async with start(applications=(ready, DESIGNER), token_windows=(clocks.Window(1, 60),)) as caller:
        assert (await caller.log_in()).status == 429
        other = await caller.log_in(client_id="client-2", client_secret="secret-2")
    assert other.status == 200


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


ADA, GRACE = user_directory.DEFAULT_USERS
ELSEWHERE = user_directory.Organization("0d0e3c1a-2a3f-4a53-9f0b-6f0f3c2b1a01", "Elsewhere")
FIRST, SECOND = applications.DEFAULT_APPLICATION, applications.DEFAULT_DESIGN_APPLICATION


@pytest.fixture
def directory() -> user_directory.UserDirectory:
    return user_directory.UserDirectory((user_directory.DEFAULT_ORGANIZATION, ELSEWHERE), user_directory.DEFAULT_USERS)


@pytest.mark.parametrize(
    "changes, complaint",
    [
        ({"id": ADA.id}, "the id is taken"),
        ({"email": "ADA@sandbox.example"}, "the address is taken"),
        ({"organization": "nowhere"}, "there is no organization nowhere"),
        ({"email": "no address"}, "is not an e-mail address"),
    ],
)
def test_an_invalid_user_is_rejected_by_name(
    directory: user_directory.UserDirectory, changes: dict[str, Any], complaint: str
) -> None:
    kay = user_directory.SandboxUser("k", "kay@sandbox.example", "Kay", "", ELSEWHERE.id)
    with pytest.raises(ValueError, match=complaint):
        directory.add(dataclasses.replace(kay, **changes))


def test_applications_are_found_by_both_ids_and_by_their_organization() -> None:
    known = applications.ApplicationRegistry((FIRST, SECOND))
    assert known.all == known.of_organization(user_directory.DEFAULT_ORGANIZATION.id) == (FIRST, SECOND)
    assert known.by_client_id(SECOND.client_id) is SECOND
    assert known.by_application(SECOND.application_id.upper()) is SECOND
    assert known.of_organization("nowhere") == ()


@cases.parametrize(
    "changes, complaint",
    ({"flows": frozenset({"implicit"})}, r"unknown flows \['implicit'\]"),
)
def test_an_invalid_application_is_rejected_by_name(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        dataclasses.replace(FIRST, **changes)


def test_a_private_use_scheme_is_a_valid_redirect_uri() -> None:
    uris = ("com.example.app:/login", "https://api.nexar.com/graphql", "http://[::1]:3000/")
    assert dataclasses.replace(FIRST, redirect_uris=uris).redirect_uris == uris
