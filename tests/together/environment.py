"""Environment of an integration test: a sandbox, a proxy in front of it, and the clock of both.

Made by the fixture `start` of this folder. `raw` speaks HTTP byte by byte, for what no HTTP library would send.
"""

import asyncio
import json
import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import yaml
import yarl
from acceptance import running
from support import running_admin, running_proxy

import nexar_sandbox
from proxy import app, server
from proxy.config import loader
from proxy.kit import clock


class RawResponse(NamedTuple):
    """An HTTP reply as it came: header names in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class ProxyEnvironment:
    """A proxy and the sandbox that is its upstream."""

    proxy: running_proxy.ProxyClient
    sandbox: nexar_sandbox.Sandbox
    time: clock.ManualClock
    admin_client: running_admin.AdminClient | None = None

    @property
    def admin(self) -> running_admin.AdminClient:
        """Client of the operators' port, of an environment that was started with `admin=True`."""
        assert self.admin_client is not None
        return self.admin_client

    @property
    def billed_parts(self) -> int:
        return self.sandbox.billed_parts

    @property
    def sent_variables(self) -> list[dict[str, Any]]:
        return [dict(variables) for _, variables in self.sandbox.documents]

    async def reply(self, *queries: dict[str, Any], more: str = "", key: str = running_proxy.KEY) -> Any:
        return await self.proxy.match(json.dumps(queries), more, key)

    async def results(self, *queries: dict[str, Any], more: str = "") -> list[Any]:
        return list((await self.reply(*queries, more=more))["results"])

    async def failure(self, *queries: dict[str, Any], more: str = "", key: str = running_proxy.KEY) -> RawResponse:
        """The reply to queries that are expected to fail."""
        return await self.get(target(*queries, more=more, key=key))

    async def get(self, path: str, method: str = "GET") -> RawResponse:
        async with self.proxy.session.request(method, yarl.URL(self.proxy.at(path) + path, encoded=True)) as response:
            return RawResponse(response.status, lowercase_names(response.headers.items()), await response.read())

    async def raw(self, first_line: bytes, *headers: bytes) -> RawResponse:
        """Send a request line and headers as they are, and read until the proxy closes."""
        return await raw(self.port, first_line, *headers)

    @property
    def port(self) -> int:
        return int(self.proxy.url.rpartition(":")[2])


@dataclass(kw_only=True)
class ReloadableService(ProxyEnvironment):
    """A service in this process, and the content of the file that it is reloaded from."""

    running: app.Service
    file: Path
    content: dict[str, Any]

    @property
    def demo(self) -> dict[str, Any]:
        application: dict[str, Any] = self.content["applications"]["demo"]
        return application

    async def reload(self) -> None:
        """Write the content, and serve with it. Raises StartError for a mistake."""
        self.file.write_text(yaml.safe_dump(self.content))
        settings, _ = server.with_unchangeable(self.running.app.gateway.settings, loader.load(self.file, {}))
        await self.running.swap(settings)

    async def metrics(self) -> list[str]:
        return (await self.get("/metrics")).body.decode().splitlines()

    async def match(self, path: str) -> tuple[int, str | None]:
        """Return the status of a match, and the source of its results."""
        reply = await self.get(path)
        return reply.status, reply.headers.get("x-cache")


ServeFile = Callable[..., AbstractAsyncContextManager[ReloadableService]]
StartEnvironment = Callable[..., AbstractAsyncContextManager[ProxyEnvironment]]


def target(*queries: dict[str, Any], more: str = "", key: str = running_proxy.KEY) -> str:
    """The request target of a /parts/match."""
    return f"/v3/parts/match?apikey={key}&queries={quote(json.dumps(queries))}{more}"


def lowercase_names(items: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in items}


def single_application(**changes: Any) -> tuple[nexar_sandbox.SandboxApplication, ...]:
    """A sandbox configuration with one application; `changes` replace its fields."""
    fields = {"name": "A plan", "application_id": "app-1", "client_id": "client-1", "client_secret": "secret-1"}
    return (nexar_sandbox.SandboxApplication(**{**fields, **changes}),)


def worker_memory(service: running.Service) -> float:
    """Return the MB of memory that the worker of a service has."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{service.workers[0]}/status").read_text())
    assert found is not None
    return int(found[1]) / 1_024


async def raw(port: int, first_line: bytes, *headers: bytes) -> RawResponse:
    """One request over one connection, which the proxy closes after its reply."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        head = b"\r\n".join([first_line, b"Host: 127.0.0.1", b"Connection: close", *headers])
        writer.write(head + b"\r\n\r\n")
        received = await reader.read()
    finally:
        writer.close()
    top, _, body = received.partition(b"\r\n\r\n")
    first, *lines = top.decode("latin-1").split("\r\n")
    return RawResponse(int(first.split()[1]), lowercase_names(line.split(": ", 1) for line in lines), body)
