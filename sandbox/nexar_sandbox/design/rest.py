"""Base of the design services: credential check, journal, and reading records by a field.

`GET /{table}` gives all records, `GET /{table}?id=a&id=b` a list with a record or null for each, and
`GET /{table}?{field}=a&{field}=b` a list of lists. An error is `{"error": "..."}`: 401 without the credential, 404 for
an unknown id, 400 for a body that does not fit.
"""

import hmac
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from nexar_sandbox import journal
from nexar_sandbox.design import design_store, tables

CREDENTIAL = "X-Service-Credential"
JOURNALLED = "design"
# Characters of a table name in the journal: the name comes from the request and may be anything.
MAX_TABLE_NAME = 20

Body = TypeVar("Body")


class DesignService:
    """A REST service. Subclasses define its name, its tables and the routes of its changes."""

    name: str

    def __init__(self, store: design_store.DesignStore, credential: str, exchanges: journal.RequestJournal) -> None:
        self.store, self._credential, self._journal = store, credential, exchanges

    def served_tables(self) -> Mapping[str, tables.Table[Any]]:
        """The readable tables, by their name in the path."""
        raise NotImplementedError

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Add the routes of changes; none by default."""

    def app(self) -> web.Application:
        """The service as an application."""
        app = web.Application(middlewares=[self._journalling()])
        self.add_routes(app.router)
        app.router.add_get("/{table}", self.read)
        return app

    async def read(self, request: web.Request) -> web.Response:
        """Return records of one table."""
        table = self.served_tables().get(request.match_info["table"])
        if table is None:
            raise LookupError(f"the service {self.name} has no {request.match_info['table']}")
        if not request.query:
            return json_response(list(table))
        field = next(iter(request.query))
        values = request.query.getall(field)
        if field == table.key:
            return json_response([table.get(value) for value in values])
        if field not in table.kind.__struct_fields__:
            raise ValueError(f"{request.match_info['table']} have no {field}")
        return json_response(table.where(field, values))

    def _journalling(self) -> Any:
        @web.middleware
        async def record_exchange(request: web.Request, handler: Handler) -> web.StreamResponse:
            entry = self._journal.begin(JOURNALLED)
            entry.operation = f"{self.name} {request.method} {_pattern(request)}"
            complete = False
            try:
                response = await self._handle(request, handler)
                entry.status, complete = response.status, True
            finally:
                self._journal.finish(entry, is_complete=complete)
            return response

        return record_exchange

    async def _handle(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        credential = request.headers.get(CREDENTIAL, "")
        if not hmac.compare_digest(credential.encode(), self._credential.encode()):
            return _error("this service accepts requests of the query service only", 401)
        await self.store.open()
        try:
            return await handler(request)
        except LookupError as error:
            return _error(str(error.args[0]), 404)
        except (ValueError, msgspec.ValidationError) as error:
            return _error(str(error), 400)


async def read_input(request: web.Request, kind: type[Body]) -> Body:
    """Decode the JSON body of a request. Raises msgspec.ValidationError, ValueError."""
    return msgspec.json.decode(await request.read(), type=kind)


def json_response(content: object, status: int = 200) -> web.Response:
    """A JSON response."""
    return web.Response(body=msgspec.json.encode(content), status=status, content_type="application/json")


def find_record(table: tables.Table[Any], id_: str, noun: str) -> Any:
    """The record with this id. Raises LookupError; `noun` is the kind of record in its message."""
    row = table.get(id_)
    if row is None:
        raise LookupError(f"there is no {noun} {id_}")
    return row


def _pattern(request: web.Request) -> str:
    """The path with placeholders for ids."""
    resource = request.match_info.route.resource
    if resource is None:
        return "(nothing)"
    return resource.canonical.replace("{table}", request.match_info.get("table", "")[:MAX_TABLE_NAME])


def _error(message: str, status: int) -> web.Response:
    return json_response({"error": message}, status)
