"""Diagnoses of token responses, and signs of wrong client credentials."""

import json
from typing import Any

import pytest
from support import cases

from proxy import config
from proxy.doctor import identity
from proxy.upstream import checked, http_post

NOW = 1_700_000_000.0
GUID = "c0a80101-1111-4111-8111-111111111111"
SECRET = "a-secret-of-36-characters-as-it-is-"


def diagnosed(
    status: int, body: Any, retry_after: str | None = None, client_id: str = GUID, secret: str = SECRET
) -> Any:
    """Return the finding about a response whose body is text, or JSON."""
    sent = (body if isinstance(body, str) else json.dumps(body)).encode()
    reply = checked.token_reply(http_post.HttpResponse(status, sent, retry_after), "demo", NOW)
    application = config.ApplicationSettings(
        apikeys=(), client_id=config.ClientId(client_id), client_secret=config.Secret(secret)
    )
    assert reply.failure is not None
    return identity.refusal_finding(reply.failure, "demo", application)


@cases.parametrize("response, code")
def test_response_has_one_diagnosis(response: Any, code: str) -> None:
    finding = diagnosed(*response)
    assert (finding.code, finding.application) == (code, "demo")


def test_wait_of_a_rate_limit_is_told() -> None:
    finding = diagnosed(429, "", "30")
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
    finding = diagnosed(400, {"error": "invalid_client"}, client_id=client_id, secret=secret)
    assert "may mean the client id or the client secret" in finding.text
    assert len(secret) < 9 or secret not in finding.text
    assert not signs or signs[0] in finding.text
    assert signs or "both have the usual form" in finding.text
