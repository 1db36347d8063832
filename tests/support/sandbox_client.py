"""HTTP client of a running sandbox: requests tokens, sends GraphQL queries, returns responses as one value."""

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple

import aiohttp

import nexar_sandbox


class JsonResponse(NamedTuple):
    status: int
    body: Any
    headers: Any
    raw: bytes

    @property
    def data(self) -> Any:
        """The data of a GraphQL response without errors."""
        assert "errors" not in self.body, self.body["errors"]
        return self.body["data"]

    @property
    def messages(self) -> list[str]:
        return [error["message"] for error in self.body["errors"]]


class SandboxClient:
    """Client of one sandbox, with the credentials of its first application."""

    def __init__(self, sandbox: nexar_sandbox.Sandbox, session: aiohttp.ClientSession) -> None:
        self.sandbox, self.session = sandbox, session
        self.token = ""

    async def log_in(self, **form: str) -> JsonResponse:
        """Request a token and keep it; `form` overrides fields of the token request."""
        account = self.sandbox.default_application
        asked = {
            "grant_type": "client_credentials",
            "client_id": account.client_id,
            "client_secret": account.client_secret,
            **form,
        }
        reply = await self.post(self.sandbox.token_url, data=asked)
        self.token = reply.body.get("access_token", self.token)
        return reply

    async def post(self, url: str, **options: Any) -> JsonResponse:
        async with self.session.post(url, **options) as response:
            raw = await response.read()
            return JsonResponse(response.status, json.loads(raw), response.headers, raw)

    async def ask(self, query: str, variables: Any = None, **options: Any) -> JsonResponse:
        """Send a GraphQL request with the latest token."""
        options.setdefault("headers", {"Authorization": f"Bearer {self.token}"})
        return await self.post(self.sandbox.graphql_url, json={"query": query, "variables": variables}, **options)


StartSandbox = Callable[..., AbstractAsyncContextManager[SandboxClient]]
