"""/admin/legacy: the old service's disturbances declared, listed and lifted while it runs, and its requests counted."""

from typing import Any

import msgspec
import orjson
from aiohttp import web

from proxy.sandbox.legacy_v3 import disturbances, service

PATH = "/admin/legacy"


class LegacyAdmin:
    """The handlers. What is wrong with a request is a 400 that says what."""

    def __init__(self, served: service.LegacyService) -> None:
        self._served = served

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Other methods are 405."""
        router.add_get(PATH, self.show)
        router.add_put(PATH, self.replace)
        router.add_delete(PATH, self.lift)

    async def show(self, _request: web.Request) -> web.Response:
        """The disturbances, and the requests of each key, which is called by its number."""
        declared = [msgspec.to_builtins(each) for each in self._served.disturbances.declared]
        return _reply({"disturbances": declared, "requests": self._served.keys.counted()})

    async def replace(self, request: web.Request) -> web.Response:
        """The list in the body takes the place of what was declared; nothing changes if any of it is wrong."""
        try:
            self._served.disturbances.replace(disturbances.PARSER.read(orjson.loads(await request.read())))
        except orjson.JSONDecodeError as error:
            return _reply({"error": f"the body is not JSON: {error}"}, 400)
        except ValueError as error:
            return _reply({"error": str(error)}, 400)
        return await self.show(request)

    async def lift(self, request: web.Request) -> web.Response:
        """No disturbances from now on."""
        self._served.disturbances.lift()
        return await self.show(request)


def _reply(body: dict[str, Any], status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(body) + b"\n", status=status, content_type="application/json")
