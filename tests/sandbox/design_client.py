"""Client for design data of a running sandbox, signed in as a user by the password grant."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import aiohttp
from support.sandbox_client import SandboxClient

import nexar_sandbox

AURORA = "https://aurora-instruments.365.example"
NORTHWIND = "https://northwind-robotics.365.example"
SCOPES = "openid user.access design.domain supply.domain"
APPLICATION = nexar_sandbox.SandboxApplication(
    "design",
    "8c0f6d3e-51f4-4a8e-9f0b-2f7d5f1d9a77",
    "client-design",
    "secret-design",
    domains=("supply", "design"),
    flows=frozenset({"client_credentials", "password"}),
)


class DesignClient(SandboxClient):
    """Client with a user's token."""

    async def sign_in(self, name: str = "ada", scope: str = SCOPES) -> None:
        """Request a token for one of the default users."""
        form = {"username": f"{name}@sandbox.example", "password": f"sandbox-{name}", "scope": scope}
        await self.log_in(grant_type="password", **form)

    async def get(self, query: str, **variables: Any) -> Any:
        """The data of a response without errors."""
        return (await self.ask(query, variables)).data

    async def change(self, name: str, wanted: str, /, **given: Any) -> Any:
        """The payload of a mutation; its input type has the mutation's name."""
        kind = name[0].upper() + name[1:]
        query = f"mutation($input: {kind}Input!) {{ {name}(input: $input) {{ {wanted} }} }}"
        return (await self.get(query, input=given))[name]

    async def project(self, wanted: str = "id", url: str = AURORA, name: str = "Weather Station Mk2") -> Any:
        """One project of a workspace."""
        query = (
            "query($url: String!, $name: String!)"
            f"{{ desProjects(workspaceUrl: $url, where: {{name: {{eq: $name}}}}) {{ nodes {{ {wanted} }} }} }}"
        )
        (found,) = (await self.get(query, url=url, name=name))["desProjects"]["nodes"]
        return found

    def rest_calls(self) -> list[str]:
        """Requests to the design services since the journal was cleared."""
        entries = self.sandbox.journal.last(10_000)
        return [str(entry.operation) for entry in entries if entry.service == "design"]

    def socket(self, **options: Any) -> AbstractAsyncContextManager[aiohttp.ClientWebSocketResponse]:
        """A WebSocket to the query service."""
        options.setdefault("protocols", ("graphql-transport-ws",))
        return self.session.ws_connect(self.sandbox.graphql_url, **options)


StartDesignSandbox = Callable[..., AbstractAsyncContextManager[DesignClient]]
