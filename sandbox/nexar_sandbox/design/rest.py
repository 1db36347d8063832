"""A design service: one handler for the resources of all services, with credential check and journal.

`GET /{table}` gives all records, `GET /{table}?id=a&id=b` a list with a record or null for each, and
`GET /{table}?{field}=a&{field}=b` a list of lists. POST, PATCH and DELETE change a record, or a comment of it, in the
name of the user `by`. An error is `{"error": "..."}`: 401 without the credential, 404 for an unknown id, 400 for a
change that is refused.
"""

import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import web
from aiohttp.typedefs import Handler

from nexar_sandbox import journal
from nexar_sandbox.design import changes, design_store, resources
from nexar_sandbox.design.resources import Record

CREDENTIAL = "X-Service-Credential"
JOURNALLED = "design"


@dataclass(frozen=True, slots=True)
class DesignService:
    """The REST service of the tables with this service name."""

    name: str
    store: design_store.DesignStore
    credential: str = field(repr=False)
    exchanges: journal.RequestJournal

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self._record_exchange])
        add = app.router.add_route
        for table, resource in resources.TABLES.items():
            if resource.service != self.name:
                continue
            add("GET", f"/{table}", self._over(table, self._read))
            if table in changes.CREATE:
                add("POST", f"/{table}", self._over(table, self._create))
            if table in changes.UPDATE:
                add("PATCH", f"/{table}/{{id}}", self._over(table, self._update))
            if table in changes.DELETE:
                add("DELETE", f"/{table}/{{id}}", self._over(table, self._delete))
                add("POST", f"/{table}/{{id}}/comments", self._over(table, self._create_comment))
                add("*", f"/{table}/{{id}}/comments/{{comment}}", self._over(table, self._change_comment))
        if self.name == "collaboration":
            add("GET", "/events", self.stream_events)
        return app

    def _over(self, table: str, handle: Callable[[str, web.Request], Awaitable[Any]]) -> Handler:
        async def respond(request: web.Request) -> web.Response:
            return _json_response(await handle(table, request), 201 if request.method == "POST" else 200)

        return respond

    async def _read(self, table: str, request: web.Request) -> list[Any]:
        if not request.query:
            return list(self.store.tables[table].values())
        name = next(iter(request.query))
        values = request.query.getall(name)
        if name == "id":
            return [self.store.tables[table].get(value) for value in values]
        return self.store.where(table, name, values)

    async def _create(self, table: str, request: web.Request) -> Record:
        fields = await _fields(request)
        return changes.CREATE[table](self.store, fields.pop("by"), fields)

    async def _update(self, table: str, request: web.Request) -> Record:
        fields = await _fields(request)
        return changes.UPDATE[table](self.store, fields.pop("by"), self._record(table, request), fields)

    async def _delete(self, table: str, request: web.Request) -> Record:
        record = self._record(table, request)
        changes.DELETE[table](self.store, record)
        return self.store.tables[table].pop(record["id"])

    async def _create_comment(self, table: str, request: web.Request) -> Record:
        parent, fields = self._record(table, request), await _fields(request)
        comment = changes.new_comment(self.store, fields["by"], fields["text"])
        self._change_comments(fields["by"], parent, [*parent["comments"], comment], "CommentAdded", comment)
        return comment

    async def _change_comment(self, table: str, request: web.Request) -> Record:
        parent, fields = self._record(table, request), await _fields(request)
        comment, comments = changes.find_comment(parent, request.match_info["comment"]), parent["comments"]
        action = "CommentDeleted" if request.method == "DELETE" else "CommentUpdated"
        if request.method == "DELETE":
            comments = [each for each in comments if each is not comment]
        else:
            changes.update_comment(self.store, fields["by"], comment, fields["text"])
        self._change_comments(fields["by"], parent, comments, action, comment)
        return comment

    def _change_comments(self, by: str, parent: Record, comments: list[Record], action: str, comment: Record) -> None:
        self.store.update(parent, by, {"comments": comments})
        changes.publish(self.store, action, parent, comment)

    def _record(self, table: str, request: web.Request) -> Record:
        return self.store.find(table, request.match_info["id"])

    async def stream_events(self, request: web.Request) -> web.StreamResponse:
        """Stream comment events as lines of JSON. An empty line is sent at once: from then on no event is missed."""
        response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
        with self.store.comment_events.subscribe() as stream:
            await response.prepare(request)
            await response.write(b"\n")
            async for event in stream:
                await response.write(orjson.dumps(event) + b"\n")
        await response.write_eof()
        return response

    @web.middleware
    async def _record_exchange(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        entry = self.exchanges.begin(JOURNALLED)
        resource = request.match_info.route.resource
        # With placeholders for ids.
        entry.operation = f"{self.name} {request.method} {resource.canonical if resource else '(nothing)'}"
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
            return _json_response({"error": "this service accepts requests of the query service only"}, 401)
        try:
            return await handler(request)
        except LookupError as error:
            return _json_response({"error": str(error.args[0])}, 404)
        except ValueError as error:
            return _json_response({"error": str(error)}, 400)


async def _fields(request: web.Request) -> dict[str, Any]:
    fields: dict[str, Any] = orjson.loads(await request.read())
    return fields


def _json_response(content: object, status: int) -> web.Response:
    return web.Response(body=orjson.dumps(content), status=status, content_type="application/json")
