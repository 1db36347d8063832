"""The token endpoint, tokens, their published metadata, users and applications (contract graphql.md §4)."""

import dataclasses
from typing import Any

import jwt
import pytest
from support import cases
from support.sandbox_client import SandboxClient, StartSandbox

from nexar_sandbox import applications, clocks, user_directory
from proxy.kit import clock

FIRST, SECOND = applications.DEFAULT_APPLICATION, applications.DEFAULT_DESIGN_APPLICATION
DESIGNER = applications.SandboxApplication("designer", "app-2", "client-2", "secret-2", domains=("design", "supply"))


async def test_every_token_has_its_own_jti(start: StartSandbox) -> None:
    async with start(token_windows=()) as caller:
        tokens = [(await caller.log_in()).body["access_token"] for _ in range(5)]
    ids = {jwt.decode(token, options={"verify_signature": False})["jti"] for token in tokens}
    assert len(ids) == 5


@cases.parametrize("form, error")
async def test_invalid_token_request_gets_its_error(start: StartSandbox, form: dict[str, str], error: str) -> None:
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


FORM = "application/x-www-form-urlencoded"
CREDENTIALS = {"grant_type": "client_credentials", "client_id": FIRST.client_id, "client_secret": FIRST.client_secret}


@pytest.mark.parametrize(
    "method, sent",
    [
        ("GET", {}),
        ("POST", {"json": CREDENTIALS}),
        ("POST", {"data": [*CREDENTIALS.items(), ("scope", "supply.domain"), ("scope", "supply.domain")]}),
        ("POST", {"data": b"grant_type=x", "headers": {"Content-Type": f"{FORM}; charset=klingon"}}),
        ("POST", {"data": b"grant_type=\xff", "headers": {"Content-Type": f"{FORM}; charset=utf-8"}}),
    ],
)
async def test_what_is_no_form_is_an_invalid_request(caller: SandboxClient, method: str, sent: dict[str, Any]) -> None:
    async with caller.session.request(method, caller.sandbox.token_url, **sent) as response:
        assert (response.status, await response.json()) == (400, {"error": "invalid_request"})


async def test_retry_after_is_in_whole_seconds_rounded_up(start: StartSandbox, manual_clock: clock.ManualClock) -> None:
    async with start(token_windows=(clocks.Window(1, 10),)) as caller:
        manual_clock.advance(3.5)
        assert (await caller.log_in()).headers["Retry-After"] == "7"


async def test_token_rate_limits_apply_per_client(start: StartSandbox) -> None:
    async with start(applications=(FIRST, DESIGNER), token_windows=(clocks.Window(1, 60),)) as caller:
        assert (await caller.log_in()).status == 429
        other = await caller.log_in(client_id="client-2", client_secret="secret-2")
    assert other.status == 200


def test_the_repr_of_an_application_has_no_credentials() -> None:
    assert "secret-2" not in repr(DESIGNER)
    assert "client-2" not in repr(DESIGNER)


def test_two_applications_may_not_share_a_client_id() -> None:
    with pytest.raises(ValueError, match="client ids"):
        applications.ApplicationRegistry((DESIGNER, DESIGNER))


ELSEWHERE = user_directory.Organization("0d0e3c1a-2a3f-4a53-9f0b-6f0f3c2b1a01", "Elsewhere")


@pytest.mark.parametrize(
    "changes, complaint",
    [
        ({"id": user_directory.DEFAULT_USERS[0].id}, "the id is taken"),
        ({"email": "ADA@sandbox.example"}, "the address is taken"),
        ({"organization": "nowhere"}, "there is no organization nowhere"),
        ({"email": "no address"}, "is not an e-mail address"),
    ],
)
def test_an_invalid_user_is_rejected_by_name(changes: dict[str, Any], complaint: str) -> None:
    organizations = user_directory.DEFAULT_ORGANIZATION, ELSEWHERE
    directory = user_directory.UserDirectory(organizations, user_directory.DEFAULT_USERS)
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
    ({"features": frozenset({"FLYING"})}, "FLYING"),
)
def test_an_invalid_application_is_rejected_by_name(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        dataclasses.replace(FIRST, **changes)


def test_a_private_use_scheme_is_a_valid_redirect_uri() -> None:
    uris = ("com.example.app:/login", "https://api.nexar.com/graphql", "http://[::1]:3000/")
    assert dataclasses.replace(FIRST, redirect_uris=uris).redirect_uris == uris
