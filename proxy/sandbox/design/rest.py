"""What the design services have in common: the credential at the door, the journal, and reading by a field.

`GET /{table}` gives all records, `GET /{table}?id=a&id=b` a list with a record or null for each, and
`GET /{table}?{field}=a&{field}=b` a list of lists. A refusal is `{"error": "..."}`: 401 without the credential, 404 for
an unknown id, 400 for a body that does not fit.
"""

import hmac
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from proxy.sandbox import journal
from proxy.sandbox.design import holdings
from proxy.sandbox.design.tables import Table

CREDENTIAL = "X-Service-Credential"
JOURNALLED = "design"
# Characters of a table's name that are journalled; it may be anything.
LONGEST = 20

Body = TypeVar("Body")


class Service:
    """A REST service. Subclasses name it, its tables and what can be changed."""

    name: str

    def __init__(self, held: holdings.Holdings, credential: str, kept: journal.RequestJournal) -> None:
        self.held, self._credential, self._journal = held, credential, kept

    def tables(self) -> Mapping[str, Table[Any]]:
        """What can be read, by the name in the path."""
        raise NotImplementedError

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """What can be changed."""

    def app(self) -> web.Application:
        """The service as an application."""
        app = web.Application(middlewares=[self._framed()])
        self.add_routes(app.router)
        app.router.add_get("/{table}", self.read)
        return app

    async def read(self, request: web.Request) -> web.Response:
        """Records of one table."""
        table = self.tables().get(request.match_info["table"])
        if table is None:
            raise LookupError(f"the service {self.name} has no {request.match_info['table']}")
        if not request.query:
            return reply(list(table))
        field = next(iter(request.query))
        values = request.query.getall(field)
        if field == table.key:
            return reply([table.get(value) for value in values])
        if field not in table.kind.__struct_fields__:
            raise ValueError(f"{request.match_info['table']} have no {field}")
        return reply(table.where(field, values))

    def _framed(self) -> Any:
        @web.middleware
        async def frame(request: web.Request, handler: Handler) -> web.StreamResponse:
            entry = self._journal.begin(JOURNALLED)
            entry.operation = f"{self.name} {request.method} {_pattern(request)}"
            whole = False
            try:
                response = await self._answer(request, handler)
                entry.status, whole = response.status, True
            finally:
                self._journal.finish(entry, whole=whole)
            return response

        return frame

    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        shown = request.headers.get(CREDENTIAL, "")
        if not hmac.compare_digest(shown.encode(), self._credential.encode()):
            return _refusal("this service is asked by the query service only", 401)
        await self.held.ready()
        try:
            return await handler(request)
        except LookupError as error:
            return _refusal(str(error.args[0]), 404)
        except (ValueError, msgspec.ValidationError) as error:
            return _refusal(str(error), 400)


async def body(request: web.Request, kind: type[Body]) -> Body:
    """The request's JSON. Raises msgspec.ValidationError, ValueError."""
    return msgspec.json.decode(await request.read(), type=kind)


def reply(content: object, status: int = 200) -> web.Response:
    """JSON."""
    return web.Response(body=msgspec.json.encode(content), status=status, content_type="application/json")


def found(table: Table[Any], id_: str, what: str) -> Any:
    """The record. Raises LookupError."""
    row = table.get(id_)
    if row is None:
        raise LookupError(f"there is no {what} {id_}")
    return row


def _pattern(request: web.Request) -> str:
    """The path with the names of its ids in their place."""
    resource = request.match_info.route.resource
    if resource is None:
        return "(nothing)"
    return resource.canonical.replace("{table}", request.match_info.get("table", "")[:LONGEST])


def _refusal(message: str, status: int) -> web.Response:
    return reply({"error": message}, status)
