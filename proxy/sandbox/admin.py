"""/admin: faults are declared, listed and lifted, the journal is read and cleared, while the sandbox runs.

JSON in and out. No authentication: a sandbox guards nothing. What is wrong with a request is a 400 that says what.
"""

import msgspec
import orjson
from aiohttp import web

from proxy.sandbox import journal
from proxy.sandbox.injection import declarations, injector

FAULTS_PATH = "/admin/faults"
JOURNAL_PATH = "/admin/journal"
LAST = 100


class Admin:
    """The handlers."""

    def __init__(self, drawing: injector.Injector, kept: journal.Journal) -> None:
        self._injector, self._journal = drawing, kept

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Other methods are 405."""
        router.add_get(FAULTS_PATH, self.faults)
        router.add_put(FAULTS_PATH, self.replace)
        router.add_delete(FAULTS_PATH, self.lift)
        router.add_get(JOURNAL_PATH, self.journal)
        router.add_delete(JOURNAL_PATH, self.clear)

    async def faults(self, _request: web.Request) -> web.Response:
        """What is declared now, with the number of requests that each will still strike (null: no end)."""
        declared = [{"fault": msgspec.to_builtins(fault), "left": left} for fault, left in self._injector.left()]
        return _reply({"faults": declared})

    async def replace(self, request: web.Request) -> web.Response:
        """The list in the body takes the place of what was declared; nothing changes if any of it is wrong."""
        try:
            self._injector.replace(declarations.read(orjson.loads(await request.read())))
        except orjson.JSONDecodeError as error:
            return _reply({"error": f"the body is not JSON: {error}"}, 400)
        except ValueError as error:
            return _reply({"error": str(error)}, 400)
        return await self.faults(request)

    async def lift(self, request: web.Request) -> web.Response:
        """No faults from now on."""
        self._injector.lift()
        return await self.faults(request)

    async def journal(self, request: web.Request) -> web.Response:
        """The totals, and the `last` entries, oldest first."""
        last = request.query.get("last", str(LAST))
        if not (last.isascii() and last.isdigit()):
            return _reply({"error": f"last must be a number of entries, 0 or more; it is {last!r}"}, 400)
        # A number of more digits than Python converts is more than are kept.
        entries = self._journal.last(int(last[:10]))
        return _reply({"totals": self._journal.totals, "entries": entries})

    async def clear(self, _request: web.Request) -> web.Response:
        """Forget all entries, and count from 0."""
        self._journal.clear()
        return _reply({"totals": self._journal.totals, "entries": []})


def _reply(body: object, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(body) + b"\n", status=status, content_type="application/json")
