"""A client of a running sandbox: gets tokens, asks questions, keeps what came back in one value."""

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple

import aiohttp

from proxy.sandbox import app


class Reply(NamedTuple):
    """What came back of a request."""

    status: int
    body: Any
    headers: Any
    raw: bytes

    @property
    def data(self) -> Any:
        """The data of an answer that has no errors."""
        assert "errors" not in self.body, self.body["errors"]
        return self.body["data"]

    @property
    def messages(self) -> list[str]:
        """The messages of all errors."""
        return [error["message"] for error in self.body["errors"]]


class Caller:
    """A client of one sandbox, with the first account's credentials."""

    def __init__(self, sandbox: app.Sandbox, session: aiohttp.ClientSession) -> None:
        self.sandbox, self.session = sandbox, session
        self.token = ""

    async def log_in(self, **form: str) -> Reply:
        """A token by the form body; `form` overrides its fields."""
        account = self.sandbox.account
        asked = {
            "grant_type": "client_credentials",
            "client_id": account.client_id,
            "client_secret": account.client_secret,
            **form,
        }
        reply = await self.post(self.sandbox.token_url, data=asked)
        self.token = reply.body.get("access_token", self.token)
        return reply

    async def post(self, url: str, **options: Any) -> Reply:
        """Any POST whose reply is JSON."""
        async with self.session.post(url, **options) as response:
            raw = await response.read()
            return Reply(response.status, json.loads(raw), response.headers, raw)

    async def ask(self, query: str, variables: Any = None, **options: Any) -> Reply:
        """A GraphQL request with the token that was got last."""
        options.setdefault("headers", {"Authorization": f"Bearer {self.token}"})
        return await self.post(self.sandbox.graphql_url, json={"query": query, "variables": variables}, **options)


Starts = Callable[..., AbstractAsyncContextManager[Caller]]
