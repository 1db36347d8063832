"""The sandbox's identity service with what others wrote: openid-client, PyJWT, and a browser without scripts."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jwt
import pytest
import requests
from acceptance.vendor import Person
from together.browser.background import Background

import nexar_sandbox

DESIGN = nexar_sandbox.DEFAULT_DESIGN_APPLICATION
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
    chosen = nexar_sandbox.SandboxSettings(applications=(nexar_sandbox.DEFAULT_APPLICATION, DESIGN), token_windows=())
    with Background() as running:
        yield running.enter(nexar_sandbox.serve(chosen))


@pytest.fixture
def person(sandbox: nexar_sandbox.Sandbox) -> Person:
    user, password = nexar_sandbox.DEFAULT_USERS[0], nexar_sandbox.DEFAULT_PASSWORD
    ways = {"user_email": user.email, "user_password": password}
    return Person(SimpleNamespace(url=sandbox.url, ways=ways))  # type: ignore[arg-type]


def asks(sandbox: nexar_sandbox.Sandbox, token: str) -> int:
    headers = {"Authorization": f"Bearer {token}"}
    body = {"query": "{ supAttributes { id } }"}
    return requests.post(sandbox.graphql_url, json=body, headers=headers, timeout=30).status_code


def test_openid_client_goes_through_the_code_flow_and_refreshes(
    sandbox: nexar_sandbox.Sandbox, person: Person, needs_program: Callable[[str], str]
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
        consent = person.sign_in(person.open(client.stdout.readline().strip()))
        back = person.fill(consent, "/consent", decision="allow")
        found = json.loads(client.communicate(f"{back.url}\n", timeout=30)[0])
    user, tokens, of_application = found["user"], found["tokens"], found["application"]["access_token"]
    assert (user["email"], user["email_verified"]) == (nexar_sandbox.DEFAULT_USERS[0].email, True)
    assert {"name", "given_name", "family_name", "preferred_username"} < set(user)
    key = jwt.PyJWKClient(f"{sandbox.url}/.well-known/openid-configuration/jwks").get_signing_key_from_jwt(
        tokens["id_token"]
    )
    named: Any = {"audience": DESIGN.client_id, "issuer": sandbox.url, "leeway": 5}
    claims = jwt.decode(tokens["id_token"], key, algorithms=["RS256"], **named)
    digest = hashlib.sha256(tokens["access_token"].encode()).digest()
    assert (claims["sub"], claims["at_hash"]) == (user["sub"], jwt.utils.base64url_encode(digest[:16]).decode())
    assert tokens["scope"].split() == SCOPES
    assert asks(sandbox, of_application) == 200
    refused = requests.get(
        f"{sandbox.url}/connect/userinfo", headers={"Authorization": f"Bearer {of_application}"}, timeout=30
    )
    assert refused.status_code == 403  # no user has signed in for it
    # A refresh token is used once: the second use has revoked all tokens of the sign-in.
    assert found["reused"] == "invalid_grant"
    assert [asks(sandbox, found[name]["access_token"]) for name in ("tokens", "renewed")] == [401, 401]
