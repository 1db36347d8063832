"""The authorization code flow in tests: the application's side and the user's browser."""

import base64
import dataclasses
import hashlib

from sandbox.page_browser import PageBrowser, PageResult
from support.sandbox_client import JsonResponse, SandboxClient

import nexar_sandbox

DESIGN = nexar_sandbox.DEFAULT_DESIGN_APPLICATION
OTHER = dataclasses.replace(
    DESIGN, name="other", application_id="app-3", client_id="client-3", client_secret="s3", domains=("supply",)
)
PLAIN = dataclasses.replace(
    OTHER, application_id="app-4", client_id="client-4", flows=nexar_sandbox.DEFAULT_APPLICATION.flows
)
CALLBACK = DESIGN.redirect_uris[0]
VERIFIER = "v" * 43
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
REQUEST = {
    "response_type": "code",
    "client_id": DESIGN.client_id,
    "redirect_uri": CALLBACK,
    "scope": "openid design.domain offline_access",
    "state": "a state",
    "code_challenge": CHALLENGE,
    "code_challenge_method": "S256",
}


class CodeFlow:
    """An application that sends a user's browser to the authorization endpoint and redeems the code."""

    def __init__(self, caller: SandboxClient, visitor: PageBrowser) -> None:
        self.caller, self.visitor = caller, visitor

    async def ask(self, **changes: str | None) -> PageResult:
        """Send an authorization request; None leaves a parameter out."""
        asked = {name: value for name, value in {**REQUEST, **changes}.items() if value is not None}
        return await self.visitor.open("/connect/authorize", **asked)

    async def code(self, **changes: str | None) -> str:
        """Get a code by signing in and consenting."""
        seen = await self.ask(**changes)
        if "password" in seen.page:
            seen = await self.visitor.sign_in(seen)
        if "decision" in seen.page:
            seen = await self.visitor.send(seen, decision="allow")
        return seen.address.query["code"]

    async def redeem(
        self, code_: str, account: nexar_sandbox.SandboxApplication = DESIGN, **changes: str
    ) -> JsonResponse:
        """Exchange the code for tokens."""
        form = {"code": code_, "redirect_uri": CALLBACK, "code_verifier": VERIFIER, **changes}
        return await self.token("authorization_code", account, **form)

    async def token(
        self, grant_type: str, account: nexar_sandbox.SandboxApplication = DESIGN, **form: str
    ) -> JsonResponse:
        """Send a token request with the application's credentials."""
        secret = {"client_id": account.client_id, "client_secret": account.client_secret}
        return await self.caller.post(self.caller.sandbox.token_url, data={"grant_type": grant_type, **secret, **form})

    async def is_good(self, token: str) -> bool:
        """Return true if the query service accepts the token."""
        headers = {"Authorization": f"Bearer {token}"}
        return (await self.caller.ask("{ supAttributes { id } }", headers=headers)).status == 200
