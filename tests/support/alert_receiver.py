"""A receiver of webhooks on a loopback socket: records its requests, and answers as it is told."""

import asyncio
import base64
import hashlib
import hmac
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from aiohttp import web

from support import served

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


class ReceivedAlert(NamedTuple):
    """One request: its headers in lower case, and its body."""

    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def is_signed(self) -> bool:
        """Whether the signature is right, computed from the specification's words alone."""
        key = base64.b64decode(SECRET.split("_", 1)[1])
        signed = f"{self.headers['webhook-id']}.{self.headers['webhook-timestamp']}.".encode() + self.body
        expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        return f"v1,{expected}" in self.headers["webhook-signature"].split()


class AlertReceiver:
    """`statuses` are sent in turn, the last for ever; None: never answer. `headers` go with every response."""

    def __init__(self) -> None:
        self.url = ""
        self.received: list[ReceivedAlert] = []
        self.statuses: list[int | None] = [204]
        self.headers: dict[str, str] = {}
        self._arrived = asyncio.Condition()

    async def handle(self, request: web.Request) -> web.Response:
        body = await request.read()
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        async with self._arrived:
            self.received.append(ReceivedAlert({key.lower(): value for key, value in request.headers.items()}, body))
            self._arrived.notify_all()
        if status is None:
            await asyncio.Event().wait()
        return web.Response(status=status or 204, headers=self.headers)

    async def wait(self, count: int) -> list[ReceivedAlert]:
        """Wait for so many requests."""
        async with self._arrived:
            await self._arrived.wait_for(lambda: len(self.received) >= count)
        return self.received

    @property
    def alerts(self) -> list[Any]:
        """The bodies so far."""
        return [each.json for each in self.received]

    @property
    def events(self) -> list[tuple[str, str]]:
        """Event and status of each."""
        return [(each["event"], each["status"]) for each in self.alerts]


@asynccontextmanager
async def running(tls: ssl.SSLContext | None = None) -> AsyncIterator[AlertReceiver]:
    """Receive while the block runs."""
    receiver = AlertReceiver()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", receiver.handle)
    async with served.on_loopback(app, tls=tls) as url:
        receiver.url = f"{url}/hooks/T0K3N"
        yield receiver
