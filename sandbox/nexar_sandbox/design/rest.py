"""A design service: credential check, journal, reading records by a field, and changes.

`GET /{table}` gives all records, `GET /{table}?id=a&id=b` a list with a record or null for each, and
`GET /{table}?{field}=a&{field}=b` a list of lists. A change is a function whose parameters are the fields of the body
and the ids of the path. An error is `{"error": "..."}`: 401 without the credential, 404 for an unknown id, 400 for
fields that do not fit the record.
"""

import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from nexar_sandbox import journal
from nexar_sandbox.design import design_store, records

CREDENTIAL = "X-Service-Credential"
JOURNALLED = "design"
# Characters of a table name in the journal: the name comes from the request and may be anything.
MAX_TABLE_NAME = 20

Change: TypeAlias = Callable[..., records.Record]
"""A change of the store, its first argument. Returns the created, changed or removed record."""
Changes: TypeAlias = Mapping[str, Change]
"""The changes of a service by method and path."""


@dataclass(frozen=True, slots=True)
class DesignService:
    """The REST service of the tables with this service name."""

    name: str
    changes: Changes
    store: design_store.DesignStore
    credential: str = field(repr=False)
    exchanges: journal.RequestJournal

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self._record_exchange])
        for route, change in self.changes.items():
            method, path = route.split()
            app.router.add_route(method, path, self._change_handler(change))
        if self.name == "collaboration":
            app.router.add_get("/events", self.stream_events)
        app.router.add_get("/{table}", self.read)
        return app

    async def read(self, request: web.Request) -> web.Response:
        name = request.match_info["table"]
        table = self.store.tables.of_service(self.name).get(name)
        if table is None:
            raise LookupError(f"the service {self.name} has no {name}")
        if not request.query:
            return _json_response(list(table))
        field = next(iter(request.query))
        values = request.query.getall(field)
        if field == table.kind.key:
            return _json_response([table.get(value) for value in values])
        if field not in table.kind.record.__struct_fields__:
            raise ValueError(f"{name} have no {field}")
        return _json_response(table.where(field, values))

    async def stream_events(self, request: web.Request) -> web.StreamResponse:
        """Stream comment events as lines of JSON. An empty line is sent at once: from then on no event is missed."""
        response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
        with self.store.comment_events.subscribe() as stream:
            await response.prepare(request)
            await response.write(b"\n")
            async for event in stream:
                await response.write(msgspec.json.encode(event) + b"\n")
        await response.write_eof()
        return response

    def _change_handler(self, change: Change) -> Handler:
        async def handle(request: web.Request) -> web.Response:
            body = msgspec.json.decode(await request.read(), type=dict[str, Any])
            changed = change(self.store, **body, **request.match_info)
            return _json_response(changed, 201 if request.method == "POST" else 200)

        return handle

    @web.middleware
    async def _record_exchange(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        entry = self.exchanges.begin(JOURNALLED)
        entry.operation = f"{self.name} {request.method} {_pattern(request)}"
        complete = False
        try:
            response = await self._handle(request, handler)
            entry.status = response.status
            complete = True
        finally:
            self.exchanges.finish(entry, is_complete=complete)
        return response

    async def _handle(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        credential = request.headers.get(CREDENTIAL, "")
        if not hmac.compare_digest(credential.encode(), self.credential.encode()):
            return _error("this service accepts requests of the query service only", 401)
        await self.store.open()
        try:
            return await handler(request)
        except LookupError as error:
            return _error(str(error.args[0]), 404)
        except (ValueError, msgspec.ValidationError) as error:
            return _error(str(error), 400)


def _json_response(content: object, status: int = 200) -> web.Response:
    return web.Response(body=msgspec.json.encode(content), status=status, content_type="application/json")


def _pattern(request: web.Request) -> str:
    """Return the path with placeholders for ids."""
    resource = request.match_info.route.resource
    if resource is None:
        return "(nothing)"
    return resource.canonical.replace("{table}", request.match_info.get("table", "")[:MAX_TABLE_NAME])


def _error(message: str, status: int) -> web.Response:
    return _json_response({"error": message}, status)
