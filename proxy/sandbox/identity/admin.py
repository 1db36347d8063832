"""/admin/keys: the signing key is changed while the sandbox runs, for rehearsing what a client does then.

No authentication: a sandbox guards nothing.
"""

import asyncio

import orjson
from aiohttp import web

from proxy.sandbox.identity import keys

PATH = "/admin/keys"


class Admin:
    """The handlers."""

    def __init__(self, ring: keys.KeyRing) -> None:
        self._ring = ring

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Other methods are 405."""
        router.add_get(PATH, self.keys)
        router.add_post(PATH, self.rotate)
        router.add_delete(PATH, self.forget)

    async def keys(self, _request: web.Request) -> web.Response:
        """The id of the key that signs, and those that still verify, with the time until which they do."""
        body = {"current": self._ring.current.kid, "retired": dict(self._ring.retired)}
        return web.Response(body=orjson.dumps(body) + b"\n", content_type="application/json")

    async def rotate(self, request: web.Request) -> web.Response:
        """A new key signs from now on; the one before verifies until its tokens are over."""
        self._ring.rotate(await asyncio.to_thread(keys.generate))  # beside the event loop: primes take their time
        return await self.keys(request)

    async def forget(self, request: web.Request) -> web.Response:
        """Only the key that signs verifies from now on."""
        self._ring.forget()
        return await self.keys(request)
