"""The sandbox's identity service with clients that others wrote: requests-oauthlib, PyJWT, openid-client."""

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
import requests
from requests_oauthlib import OAuth2Session
from together.browser.background import Background
from together.clients.form_browser import FormBrowser

import nexar_sandbox

DESIGN = nexar_sandbox.DEFAULT_DESIGN_APPLICATION
TRUSTED = dataclasses.replace(
    DESIGN,
    name="Trusted application",
    application_id="8c0f6d3e-51f4-4a8e-9f0b-2f7d5f1d9a03",
    client_id="trusted",
    client_secret="trusted-secret",
    flows=frozenset({"password"}),
)
SCOPES = ["openid", "profile", "email", "user.access", "design.domain", "supply.domain", "offline_access"]
# Prints the authorization URL, reads where the browser was sent back to, and prints what it got.
SCRIPT = """
import * as client from "openid-client"
import readline from "node:readline/promises"
const { url, id, secret, redirect_uri, scope } = JSON.parse(process.env.SENT)
const insecure = { execute: [client.allowInsecureRequests] }
const config = await client.discovery(new URL(url), id, secret, undefined, insecure)
const pkceCodeVerifier = client.randomPKCECodeVerifier()
const checks = { pkceCodeVerifier, expectedState: client.randomState(), expectedNonce: client.randomNonce() }
const code_challenge = await client.calculatePKCECodeChallenge(pkceCodeVerifier)
const pkce = { code_challenge, code_challenge_method: "S256" }
const own = { redirect_uri, scope, state: checks.expectedState, nonce: checks.expectedNonce }
console.log(client.buildAuthorizationUrl(config, { ...own, ...pkce }).href)
for await (const back of readline.createInterface({ input: process.stdin })) {
  const tokens = await client.authorizationCodeGrant(config, new URL(back), { ...checks, idTokenExpected: true })
  const user = await client.fetchUserInfo(config, tokens.access_token, tokens.claims().sub)
  const renewed = await client.refreshTokenGrant(config, tokens.refresh_token)
  const reused = await client.refreshTokenGrant(config, tokens.refresh_token).catch((error) => error.error)
  const application = await client.clientCredentialsGrant(config)
  console.log(JSON.stringify({ user, tokens, renewed, reused, application }))
}
"""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[nexar_sandbox.Sandbox]:
    chosen = nexar_sandbox.SandboxSettings(
        applications=(nexar_sandbox.DEFAULT_APPLICATION, DESIGN, TRUSTED), token_windows=()
    )
    with Background() as running:
        yield running.enter(nexar_sandbox.serve(chosen))


@pytest.fixture(autouse=True)
def _without_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let oauthlib connect without TLS."""
    monkeypatch.setitem(os.environ, "OAUTHLIB_INSECURE_TRANSPORT", "1")


@pytest.fixture
def discovery(sandbox: nexar_sandbox.Sandbox) -> dict[str, Any]:
    """The discovery document, from which a client gets all URLs."""
    document: dict[str, Any] = requests.get(sandbox.url + "/.well-known/openid-configuration", timeout=30).json()
    return document


@pytest.fixture
def person(sandbox: nexar_sandbox.Sandbox) -> Iterator[FormBrowser]:
    with FormBrowser(sandbox.url) as browser:
        yield browser


def application(scope: list[str] = SCOPES, **options: Any) -> OAuth2Session:
    return OAuth2Session(DESIGN.client_id, redirect_uri=DESIGN.redirect_uris[0], scope=scope, pkce="S256", **options)


def let_in(session: OAuth2Session, discovery: dict[str, Any], person: FormBrowser, **more: str) -> dict[str, Any]:
    """The whole way of a code, with state and PKCE as the client makes and checks them."""
    address, _ = session.authorization_url(discovery["authorization_endpoint"], **more)
    back = person.allow(address)
    token: dict[str, Any] = session.fetch_token(
        discovery["token_endpoint"],
        authorization_response=back,
        client_secret=DESIGN.client_secret,
        include_client_id=True,
    )
    return token


def asks(sandbox: nexar_sandbox.Sandbox, token: str) -> int:
    """The status of a query with this token."""
    headers = {"Authorization": f"Bearer {token}"}
    body = {"query": "{ supAttributes { id } }"}
    return requests.post(sandbox.graphql_url, json=body, headers=headers, timeout=30).status_code


def verified(discovery: dict[str, Any], token: str, audience: str) -> dict[str, Any]:
    """The claims of a token that PyJWT has checked against the published keys, with its times, issuer and audience."""
    key = jwt.PyJWKClient(discovery["jwks_uri"]).get_signing_key_from_jwt(token)
    claims: dict[str, Any] = jwt.decode(
        token, key, algorithms=["RS256"], audience=audience, issuer=discovery["issuer"], leeway=5
    )
    return claims


def test_requests_oauthlib_gets_an_id_token_and_the_claims_of_its_scopes(
    discovery: dict[str, Any], person: FormBrowser
) -> None:
    with application() as session:
        token = let_in(session, discovery, person, nonce="n-0S6_WzA2Mj")
        user = session.get(discovery["userinfo_endpoint"]).json()
    claims = verified(discovery, token["id_token"], DESIGN.client_id)
    assert (claims["sub"], claims["nonce"]) == (nexar_sandbox.DEFAULT_USERS[0].id, "n-0S6_WzA2Mj")
    digest = jwt.get_algorithm_by_name("RS256").compute_hash_digest(token["access_token"].encode())
    assert claims["at_hash"] == jwt.utils.base64url_encode(digest[:16]).decode()
    assert (user["sub"], user["email"], user["email_verified"]) == (claims["sub"], "ada@sandbox.example", True)
    assert {"name", "given_name", "family_name", "preferred_username"} < set(user)
    with application(["design.domain", "user.access"]) as session:
        token = let_in(session, discovery, person)
        assert set(token) == {"access_token", "expires_in", "token_type", "scope", "expires_at"}
        assert session.get(discovery["userinfo_endpoint"]).status_code == 403


def test_openid_client_goes_through_the_code_flow_and_refreshes(
    sandbox: nexar_sandbox.Sandbox, person: FormBrowser, needs_program: Callable[[str], str]
) -> None:
    node, installed = needs_program("node"), Path(sys.prefix) / "npm"
    if not (installed / "node_modules" / "openid-client").is_dir():
        needs_program("npm")
        pytest.fail(f"openid-client is not in {installed}: `make test` installs it", pytrace=False)
    sent = {"url": sandbox.url, "id": DESIGN.client_id, "secret": DESIGN.client_secret, "scope": " ".join(SCOPES)}
    env = {"PATH": os.environ["PATH"], "SENT": json.dumps({**sent, "redirect_uri": DESIGN.redirect_uris[0]})}
    command, piped = [node, "--input-type=module", "-e", SCRIPT], subprocess.PIPE
    with subprocess.Popen(command, cwd=installed, env=env, stdin=piped, stdout=piped, text=True) as client:
        assert client.stdout is not None
        back = person.allow(client.stdout.readline().strip())
        found = json.loads(client.communicate(f"{back}\n", timeout=30)[0])
    assert found["user"]["email"] == nexar_sandbox.DEFAULT_USERS[0].email
    assert found["tokens"]["scope"].split() == SCOPES
    assert asks(sandbox, found["application"]["access_token"]) == 200
    # A refresh token is used once: the second use has revoked all tokens of the sign-in.
    assert found["reused"] == "invalid_grant"
    assert [asks(sandbox, found[name]["access_token"]) for name in ("tokens", "renewed")] == [401, 401]
