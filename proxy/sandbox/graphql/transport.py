"""The query service over HTTP: POST /graphql, with or without a trailing slash (contract graphql.md §3.1).

A GET is answered by a page that says what this is.
"""

import html
import re

import orjson
from aiohttp import web

from proxy.sandbox.graphql import service
from proxy.sandbox.injection import exchanges

PATHS = ("/graphql", "/graphql/")
GRAPHQL_JSON = "application/graphql-response+json"

_OUTSIDE = re.compile(r"[^\x00-\x7f]|[+&<>']")

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>GraphQL</title></head>
<body><h1>Sandbox query service</h1>
<p>This is the GraphQL endpoint <code>{url}</code>. POST a JSON object with <code>query</code> and, if you
like, <code>variables</code> and <code>operationName</code>; send the access token in the header
<code>Authorization: Bearer &hellip;</code>.</p></body></html>
"""


class Transport:
    """The handlers."""

    def __init__(self, queries: service.QueryService) -> None:
        self._queries = queries

    def add_routes(self, router: web.UrlDispatcher, watch: exchanges.Watch) -> None:
        """POST and GET on both paths; other methods are 405."""
        for path in PATHS:
            router.add_post(path, watch.over("graphql", self.post))
            router.add_get(path, self.page)

    async def post(self, request: web.Request, exchange: exchanges.Exchange) -> web.Response:
        """One request. The content type of the body is not looked at."""
        answer = self._queries.answer(await request.read(), _token(request), exchange)
        asked = request.headers.get("Accept", "")
        kind = GRAPHQL_JSON if GRAPHQL_JSON in asked else "application/json"
        headers = {"Content-Type": f"{kind}; charset=utf-8"}
        return web.Response(body=_escaped(orjson.dumps(answer.body)), status=answer.status, headers=headers)

    async def page(self, request: web.Request) -> web.Response:
        """What a browser sees."""
        url = html.escape(str(request.url.origin()) + PATHS[0])
        return web.Response(text=_PAGE.format(url=url), content_type="text/html")


def _escaped(body: bytes) -> bytes:
    """JSON as the service writes it: ASCII, and `+ & < > '` escaped too, with hex digits in upper case."""
    return _OUTSIDE.sub(_escape, body.decode()).encode()


def _escape(character: re.Match[str]) -> str:
    units = character[0].encode("utf-16-be")
    return "".join(f"\\u{units[n]:02X}{units[n + 1]:02X}" for n in range(0, len(units), 2))


def _token(request: web.Request) -> str | None:
    """From `Authorization: Bearer` or from `token`, which some clients of the service use."""
    kind, _, value = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return value.strip()
    return request.headers.get("token")
