"""/admin/legacy: declare, list and remove disturbances of the legacy v3 service; request counts."""

from typing import Any

import msgspec
import orjson
from aiohttp import web

from proxy.sandbox.legacy_v3 import disturbances, service

PATH = "/admin/legacy"


class LegacyAdmin:
    """Handlers. Invalid requests get a 400 with the reason."""

    def __init__(self, served: service.LegacyService) -> None:
        self._served = served

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Other methods are 405."""
        router.add_get(PATH, self.show)
        router.add_put(PATH, self.replace)
        router.add_delete(PATH, self.lift)

    async def show(self, _request: web.Request) -> web.Response:
        """List the disturbances, and request counts by key number."""
        declared = [msgspec.to_builtins(each) for each in self._served.disturbances.declared]
        return _reply({"disturbances": declared, "requests": self._served.keys.request_counts()})

    async def replace(self, request: web.Request) -> web.Response:
        """Replace all disturbances by the list in the body; nothing changes if it is invalid."""
        try:
            self._served.disturbances.replace(disturbances.PARSER.read(orjson.loads(await request.read())))
        except orjson.JSONDecodeError as error:
            return _reply({"error": f"the body is not JSON: {error}"}, 400)
        except ValueError as error:
            return _reply({"error": str(error)}, 400)
        return await self.show(request)

    async def lift(self, request: web.Request) -> web.Response:
        """Remove all disturbances."""
        self._served.disturbances.lift()
        return await self.show(request)


def _reply(body: dict[str, Any], status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(body) + b"\n", status=status, content_type="application/json")
