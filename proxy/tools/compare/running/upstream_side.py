"""Nexar API as the baseline of GraphQL documents: asked directly, with the credentials of the configuration.

A document of v4, which is retired, is sent with today's names, and its response gets v4's: rewriting is the service's
own, so that only a recorded response of v4 tells whether it is right.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import aiohttp
import graphql
import msgspec

from proxy import config, errors
from proxy.kit.clock import Clock
from proxy.model import GRAPHQL_PATHS
from proxy.traffic import failures, http_side
from proxy.traffic.v3_request import V3Request
from proxy.traffic.v3_response import ComparedSide, SideResponse
from proxy.upstream import session
from proxy.upstream.auth import identity
from proxy.v4 import rewrite

Application = Callable[[str], str | None]  # returns the name of a client's application

PLACE = "upstream"
_TYPE = re.compile(rb'"(Sup\w+)"')


class UpstreamSide(http_side.HttpSide):
    """GraphQL service of `settings`. `application` names the application whose credentials a client's requests have;
    requests that are no documents go to `others`."""

    place = PLACE

    def __init__(
        self,
        settings: config.Config,
        limits: http_side.SideLimits,
        application: Application,
        opened: aiohttp.ClientSession,
        *,
        others: ComparedSide | None,
        clock: Clock,
    ) -> None:
        super().__init__(PLACE, limits, lambda _: None, opened, clock=clock)
        self._upstream = _addresses(settings)
        self._opened = opened
        self._applications = settings.applications
        self._application = application
        self._others = others
        self._tokens: dict[str, str] = {}
        self._getting_token = asyncio.Lock()
        self._now = clock.now
        self._v4 = rewrite.schema(self._upstream.site)

    async def fetch(self, request: V3Request, request_id: str) -> SideResponse:
        if request.is_v3 and self._others is not None:
            return await self._others.fetch(request, request_id)
        if not request.is_document:
            served = "GraphQL documents" if self._others is None else "v3 requests and GraphQL documents"
            return SideResponse(0, b"", 0.0, parts=0, failure=f"serves {served} only")
        response = await super().fetch(request, request_id)
        if request.path == GRAPHQL_PATHS[0]:
            return response
        return msgspec.structs.replace(response, body=_TYPE.sub(_v4_type, response.body))

    async def call(self, request: V3Request) -> http_side.HttpCall:
        document = self._prepared(request)
        token = await self._token(request.client)
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        return http_side.HttpCall(self._upstream.graphql_url, headers, document)

    def _prepared(self, request: V3Request) -> bytes:
        """Return what is sent for a document: one of v4 with today's names, an invalid one as it is. Raises SideError
        for one that changes something."""
        document = request.document()
        try:
            sent = json.loads(document)
            node = graphql.parse(sent.get("query", ""))
        except (ValueError, graphql.GraphQLSyntaxError):
            return document
        kinds = {each.operation for each in node.definitions if isinstance(each, graphql.OperationDefinitionNode)}
        if kinds - {graphql.OperationType.QUERY}:
            raise failures.SideError("is asked for queries only", free=True)
        operation = graphql.get_operation_ast(node, sent.get("operationName"))
        if request.path == GRAPHQL_PATHS[0] or operation is None or graphql.validate(self._v4, node):
            return document
        sent["query"] = graphql.print_ast(rewrite.rewrite(node, self._v4))
        sent["variables"] = rewrite.rewrite_variables(operation, sent.get("variables") or {}, self._v4)
        return json.dumps(sent).encode()

    async def _token(self, client: str) -> str:
        """Return the access token of a client's application, fetched once in a run. Raises SideError."""
        name = self._application(client)
        if name is None:
            raise failures.SideError(
                f"has no application for {client}: its key is none of the configuration", free=True
            )
        async with self._getting_token:
            if name not in self._tokens:
                entry, upstream = self._applications[name], self._upstream
                credentials = identity.Credentials(name, entry.client_id, entry.client_secret)
                try:
                    reply = await identity.request_token(self._opened, upstream.token_url, upstream.scope, credentials)
                    self._tokens[name] = identity.parse(reply, name, self._now()).token
                except errors.BridgeError as error:
                    raise failures.SideError(f"cannot be asked: {error.message}", free=True) from error
        return self._tokens[name]


@asynccontextmanager
async def opened(
    settings: config.Config,
    limits: http_side.SideLimits,
    application: Application,
    *,
    others: ComparedSide | None,
    clock: Clock,
) -> AsyncIterator[UpstreamSide]:
    """Open the side, with the connections of the configuration."""
    async with session.open_session(_addresses(settings)) as connections:
        yield UpstreamSide(settings, limits, application, connections, others=others, clock=clock)


def _addresses(settings: config.Config) -> config.UpstreamSettings:
    assert isinstance(settings.upstream, config.UpstreamSettings)  # noqa: S101 - a sandbox has been started
    return settings.upstream


def _v4_type(found: re.Match[bytes]) -> bytes:
    name = found[1].decode()
    return f'"{rewrite.client_names().get(name, name)}"'.encode()
