"""Diagnoses of token responses, and signs of wrong client credentials."""

import json
from typing import Any

import pytest
from support import cases

from proxy import config
from proxy.doctor import identity
from proxy.upstream import http_post
from proxy.upstream.auth.identity import Credentials

NOW = 1_700_000_000.0
GUID = "c0a80101-1111-4111-8111-111111111111"
SECRET = "a-secret-of-36-characters-as-it-is-"


def reply(status: int, body: Any, retry_after: str | None = None) -> http_post.HttpResponse:
    """A response whose body is text, or JSON."""
    return http_post.HttpResponse(status, (body if isinstance(body, str) else json.dumps(body)).encode(), retry_after)


def credentials(client_id: str = GUID, secret: str = SECRET) -> Credentials:
    return Credentials("demo", client_id, config.Secret(secret))


@cases.parametrize("response, code")
def test_response_has_one_diagnosis(response: Any, code: str) -> None:
    token, finding = identity.parse_response(reply(*response), credentials(), NOW)
    assert finding.code == code
    assert (token is not None) is (code == "token_received")
    assert finding.application == "demo"


def test_wait_of_a_rate_limit_is_told() -> None:
    _, finding = identity.parse_response(reply(429, "", "30"), credentials(), NOW)
    assert finding.text.endswith("it asks to wait for 30 seconds")


@pytest.mark.parametrize(
    "client_id, secret, signs",
    [
        (GUID, SECRET, []),
        (GUID, f" {SECRET}", ["the client secret has blanks at an end"]),
        (f"{GUID}\n", SECRET, ["the client id has blanks at an end"]),
        (GUID, f'"{SECRET}"', ["the client secret has a quote at an end, which belongs to no value"]),
        (GUID, f"“{SECRET}", ["the client secret has a quote at an end", "characters inside that are not ASCII"]),
        (GUID, "two words of a secret", ["the client secret has blanks, line breaks or characters inside"]),
        (GUID, "${NEXAR_CLIENT_SECRET}", ["the client secret looks like a placeholder"]),
        (GUID, "<your client secret>", ["the client secret has blanks", "looks like a placeholder"]),
        (GUID, "too-short", ["the client secret has only 9 characters"]),
        (GUID, "", ["the client secret has only 0 characters"]),
        ("my-application", SECRET, ["the client id is no GUID (14 characters)"]),
        (SECRET, GUID, ["the client secret has the form of a client id: the two may be exchanged"]),
        (GUID, GUID, ["the client id and the client secret are the same"]),
    ],
)
def test_signs_of_wrong_credentials_are_named_without_the_secret(client_id: str, secret: str, signs: list[str]) -> None:
    named = list(identity.suspicions(client_id, config.Secret(secret)))
    assert len(named) == len(signs)
    assert all(sign in text for sign, text in zip(signs, named, strict=True))
    _, finding = identity.parse_response(reply(400, {"error": "invalid_client"}), credentials(client_id, secret), NOW)
    assert "may mean the client id or the client secret" in finding.text
    assert len(secret) < 9 or secret not in finding.text
    assert not signs or signs[0] in finding.text
    assert signs or "both have the usual form" in finding.text
