"""Supply service in tests of the core: it executes any document on made-up parts, and bills those that it returns."""

import asyncio
import dataclasses
import itertools
import json
from types import SimpleNamespace
from typing import Any

import graphql
import msgspec
from service.gateway.world import SECONDS, START, Upstream, World, uid
from service.upstream import graphql_responses

from proxy import errors
from proxy.gateway.applications import Client
from proxy.gateway.features import Features
from proxy.gateway.free_operations import FreeOperations
from proxy.gateway.pipeline import Pipeline
from proxy.graphql import documents
from proxy.graphql.documents import DocumentReader, DocumentRequest
from proxy.graphql.service import GraphQLResponse, GraphQLService
from proxy.model import EncodedOperation
from proxy.upstream import http_post
from proxy.upstream.tokens import Credentials

Info = graphql.GraphQLResolveInfo[Any]
SCHEMA = documents.schema()
DOCUMENTS = DocumentReader(SCHEMA)
NUMBERS = [f"N{n}" for n in range(12)]  # the n-th has n parts


def _made_up(source: Any, info: Info, **arguments: Any) -> Any:
    """Return the value of a field: what its object has, or a value that is made of the part's uid and the field's
    name."""
    name = info.field_name
    value = source.get(name) if isinstance(source, dict) else None
    if callable(value):
        return value(info, **arguments)
    if isinstance(source, dict) and name in source:
        return value
    return _of_type(info.return_type, {**(source or {}), "field": name})


def _of_type(kind: Any, source: dict[str, Any]) -> Any:
    if isinstance(kind, graphql.GraphQLNonNull):
        return _of_type(kind.of_type, source)
    if isinstance(kind, graphql.GraphQLList):
        return [_of_type(kind.of_type, source | {"place": place}) for place in range(2)]
    if isinstance(kind, graphql.GraphQLObjectType):
        return {name: source[name] for name in ("uid", "field", "place") if name in source}
    text = f"{source['field']} {source.get('place', '')} of {source.get('uid')}"
    number = sum(map(ord, text))
    made: dict[str, Any] = {
        "Int": number,
        "Float": number / 100,
        "Boolean": bool(number % 2),
        "Map": {"of": text},
    }
    return made.get(kind.name, text)


class Supply(Upstream):
    """GraphQL service with the whole supply schema. `broken` are fields that fail: an error, and null."""

    def __init__(self, **options: Any) -> None:
        numbers = itertools.count(1)
        super().__init__({each: [uid(next(numbers)) for _ in range(n)] for n, each in enumerate(NUMBERS)}, **options)
        self.broken: set[str] = set()
        self.returned_parts = 0

    async def send(self, operation: EncodedOperation, credentials: Credentials, seconds: float) -> Any:
        request = msgspec.json.decode(operation.payload)
        self.operations.append(request)
        await asyncio.sleep(self.seconds)
        failure = self.failures.pop(0) if self.failures else None
        before = self.returned_parts
        body = self.response(request["query"], request["variables"])
        if failure is None or failure[1]:
            self.billed[str(credentials.client_id)] += self.returned_parts - before
        if failure is not None:
            raise failure[0]
        reply = http_post.HttpResponse(200, json.dumps(body).encode(), {})
        return graphql_responses.data(operation, reply, START)

    def response(self, document: str, variables: Any = None, name: str | None = None) -> dict[str, Any]:
        """Return what the service answers to a document."""
        root = {
            "supMultiMatch": self._matches,
            "supParts": self._parts,
            "supSearch": self._found,
            "supSearchMpn": self._found,
        }
        source = graphql.parse(document)
        if problems := graphql.validate(SCHEMA, source):
            return {"errors": [each.formatted for each in problems]}
        done = graphql.execute_sync(
            SCHEMA, source, root, variable_values=variables, operation_name=name, field_resolver=self._resolve
        )
        return dict(done.formatted)

    def _resolve(self, source: Any, info: Info, **arguments: Any) -> Any:
        if info.field_name in self.broken:
            raise graphql.GraphQLError(f"{info.field_name} is broken", extensions={"code": "BROKEN"})
        value = _made_up(source, info, **arguments)
        # Parts within parts are not billed.
        if graphql.get_named_type(info.return_type).name == "SupPart" and info.parent_type.name != "SupPart":
            self.returned_parts += sum(each is not None for each in (value if isinstance(value, list) else [value]))
        return value

    def _part(self, uid: str) -> dict[str, Any]:  # type: ignore[override]
        return {"uid": uid, "id": f"id of {uid}", "v3uid": uid, "sellers": lambda _, **flags: _sellers(uid, **flags)}

    def _matches(self, _: Any, *, queries: list[dict[str, Any]], **__: Any) -> list[dict[str, Any]]:
        return [
            {"parts": [*map(self._part, found)], "hits": hits, "reference": query.get("reference"), "error": None}
            for query in queries
            for found, hits in [self._page(query)]
        ]

    def _parts(self, _: Any, *, ids: list[str], **__: Any) -> list[dict[str, Any] | None]:
        known = {uid for uids in self.lists.values() for uid in uids}
        asked = [text.removeprefix("id of ") for text in ids]
        return [self._part(each) if each in known else None for each in asked]

    def _found(self, _: Any, **arguments: Any) -> dict[str, Any]:
        query = {"mpn": arguments.get("q"), "start": arguments.get("start") or 0, "limit": arguments.get("limit")}
        found, hits = self._page({**query, "limit": 10 if query["limit"] is None else query["limit"]})
        results = [{"part": self._part(each), "akaMpn": None, "uid": each} for each in found]
        return {"hits": hits, "results": results}


def _sellers(uid: str, *, includeBrokers: bool, authorizedOnly: bool, **page: Any) -> list[dict[str, Any]]:  # noqa: N803
    sellers = [
        {"uid": f"{uid}/{place}", "isBroker": place % 2 == 0, "isAuthorized": place % 3 == 0} for place in range(5)
    ]
    shown = [
        each
        for each in sellers
        if (includeBrokers or not each["isBroker"]) and (each["isAuthorized"] or not authorizedOnly)
    ]
    return shown[: page.get("limit")]


@dataclasses.dataclass
class Dialect:
    """GraphQL of a process."""

    world: World
    pipeline: Pipeline
    service: GraphQLService

    async def execute(self, client: Client, request: DocumentRequest) -> GraphQLResponse:
        self.metadata = self.world.metadata()
        return await self.service.execute(request, client, self.metadata)

    async def ask(
        self, client: Client, document: str, variables: Any = None, name: str | None = None
    ) -> dict[str, Any]:
        """Return the response to a document."""
        request = DOCUMENTS.request(document, name, variables or {})
        response: dict[str, Any] = json.loads((await self.execute(client, request)).body)
        return response


def dialect(world: World) -> Dialect:
    """Start a process that serves GraphQL."""
    state = world.state()
    features = Features(world.projections, state.store, world.clock)
    pipeline = Pipeline(state, world.upstream.send, features, address="http://upstream", seconds=SECONDS, connections=9)
    free = FreeOperations(world.upstream.send, world.clock, SECONDS, {}, {})
    gateway: Any = SimpleNamespace(
        pipeline=pipeline,
        features=features,
        free=free,
        projections=world.projections,
        clock=world.clock,
    )
    return Dialect(world, pipeline, GraphQLService(gateway, SCHEMA))


def messages(response: dict[str, Any]) -> list[tuple[Any, str]]:
    """Return path and message of each error."""
    return [(each.get("path"), each["message"]) for each in response.get("errors", ())]


FAULT = errors.UpstreamFault("failed")
