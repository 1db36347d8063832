"""Users, organizations and applications, as settings and the portal give them."""

import dataclasses
from typing import Any

import pytest
from support import cases

from nexar_sandbox import applications, user_directory

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
