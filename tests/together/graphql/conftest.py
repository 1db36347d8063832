"""A proxy and its upstream side by side: the same document is sent to both."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import aiohttp
import pytest
from support import running_proxy
from together.environment import ProxyEnvironment, StartEnvironment

import nexar_sandbox

ORACLE = nexar_sandbox.SandboxApplication(
    name="Asked beside the proxy", application_id="oracle", client_id="oracle", client_secret="oracle"
)


@dataclass
class GraphQLReply:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def data(self) -> Any:
        return self.json.get("data")

    @property
    def errors(self) -> list[tuple[Any, Any]]:
        """Path and code of each error."""
        reported = self.json.get("errors", [])
        return sorted((each.get("path"), (each.get("extensions") or {}).get("code")) for each in reported)


@dataclass
class Pair:
    environment: ProxyEnvironment
    token: str

    async def post(self, url: str, sent: Any, **headers: str) -> GraphQLReply:
        async with self.environment.proxy.session.post(url, json=sent, headers=headers) as response:
            return GraphQLReply(response.status, response.headers, await response.read())

    async def ask(self, query: str, variables: Any = None, name: str | None = None, **headers: str) -> GraphQLReply:
        sent = {"query": query, "variables": variables, "operationName": name}
        authorization = f"Bearer {running_proxy.KEY}"
        return await self.post(f"{self.url}/graphql", sent, **{"Authorization": authorization, **headers})

    async def ask_upstream(self, query: str, variables: Any = None, name: str | None = None) -> GraphQLReply:
        """Ask the upstream itself, as another application."""
        sent = {"query": query, "variables": variables, "operationName": name}
        url = f"{self.environment.sandbox.url}/graphql"
        return await self.post(url, sent, Authorization=f"Bearer {self.token}")

    async def assert_same(self, query: str, variables: Any = None, name: str | None = None) -> GraphQLReply:
        """Ask both; return the proxy's reply, whose data and errors must be those of the upstream."""
        expected, found = await self.ask_upstream(query, variables, name), await self.ask(query, variables, name)
        about = f"{query}\n{json.dumps(variables)} {name}\n{found.json}\n{expected.json}"
        assert json.dumps(found.data) == json.dumps(expected.data), about
        assert found.errors == expected.errors, about
        return found

    @property
    def url(self) -> str:
        """The URL of the proxy."""
        return self.environment.proxy.url

    @property
    def billed(self) -> int:
        return self.environment.billed_parts


@asynccontextmanager
async def started_pair(start: StartEnvironment, **changes: Any) -> AsyncIterator[Pair]:
    """Start a pair; `changes` are the arguments of `start`."""
    default = nexar_sandbox.SandboxSettings().applications
    sandbox = {"applications": (*default, ORACLE), **changes.pop("sandbox", {})}
    async with start(sandbox=sandbox, **changes) as environment:
        form = {"grant_type": "client_credentials", "client_id": "oracle", "client_secret": "oracle"}
        url = f"{environment.sandbox.url}/connect/token"
        async with aiohttp.ClientSession() as session, session.post(url, data=form) as response:
            token = (await response.json())["access_token"]
        yield Pair(environment, token)


@pytest.fixture
async def both(start: StartEnvironment) -> AsyncIterator[Pair]:
    """A pair with default settings."""
    async with started_pair(start) as ready:
        yield ready


@pytest.fixture
def pair(start: StartEnvironment) -> Any:
    """`async with pair(...) as both`; arguments are those of `start`."""
    return partial(started_pair, start)
