"""The query service over HTTP: GET and POST of /graphql, content negotiation, and the schema as a file.

As in GraphQL over HTTP (https://graphql.github.io/graphql-over-http/draft/) and, where they differ, as the service is
known to do it (contract graphql.md §3). The specification prescribes `application/graphql-response+json` for clients
without an Accept header; here it is `application/json`, as the service's clients expect, with the status 400 for an
invalid document that they know (§3.2). A GET without a query returns the IDE, with `?sdl` the schema.
"""

import codecs
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import orjson
from aiohttp import web
from graphql import print_schema
from werkzeug.datastructures import MIMEAccept
from werkzeug.http import parse_accept_header

from nexar_sandbox import exchanges
from nexar_sandbox.graphql import errors, requests, schema, service, websockets
from nexar_sandbox.identity import forms

GRAPHQL = "application/graphql-response+json"
JSON = "application/json"
HTML = "text/html"

# Every response is in UTF-8, so a media type with this charset is the same as without.
_CHARSET = "; charset=utf-8"


@dataclass(frozen=True, slots=True)
class MediaType:
    """The negotiated media type. `named`: the client named it, instead of accepting it by a wildcard."""

    name: str
    named: bool

    def status(self, status: int, json_status: int | None, *, has_data: bool) -> int:
        """Return the HTTP status in this media type. `json_status` is that of JSON where the client names it; None:
        the same, as for a status that is about HTTP or the token."""
        if self.name == GRAPHQL:
            return 400 if status == 200 and not has_data else status
        return status if json_status is None or not self.named else json_status


# For a client that accepts none of the types.
FALLBACK = MediaType(JSON, named=False)


def negotiate(accept: Sequence[str], offered: Iterable[str]) -> MediaType | None:
    """Return the best of `offered` for these Accept headers; None if none is acceptable.

    Types that the client names are preferred in its order, those accepted by a wildcard in the order of `offered`.
    """
    header = ", ".join(accept)
    if not header.strip():
        return MediaType(next(iter(offered)), named=False)
    parsed = parse_accept_header(header, MIMEAccept)
    accepted = MIMEAccept((item.lower().removesuffix(_CHARSET), quality) for item, quality in parsed)
    names = list(accepted.values())
    best = accepted.best_match(sorted(offered, key=lambda name: names.index(name) if name in names else len(names)))
    return None if best is None else MediaType(best, best in names)


@lru_cache(maxsize=1)
def schema_text() -> str:
    return print_schema(schema.build()) + "\n"


def download_schema() -> web.Response:
    """Return the schema as a file: `GET /graphql?sdl`, as in Hot Chocolate
    (https://chillicream.com/docs/hotchocolate/v13/server/endpoints, "MapGraphQLSchema"). Needs no token."""
    headers = {"Content-Disposition": 'attachment; filename="schema.graphql"'}
    return web.Response(text=schema_text(), headers=headers, content_type="application/graphql", charset="utf-8")


PATHS = ("/graphql", "/graphql/")
# Bytes of a body after decompression; our choice.
MAX_BODY = 2**20
OFFERED = (JSON, GRAPHQL)
_JSON_ESCAPES = "v3bridge.sandbox.graphql.escapes"
# ASCII characters that are escaped in JSON.
_ESCAPES = tuple((character.encode(), b"\\u%04X" % ord(character)) for character in "+&<>'")

Page = Callable[[web.Request], web.Response]


class HttpTransport:
    """The request handlers. `page` handles requests of browsers."""

    def __init__(self, queries: service.QueryService, page: Page) -> None:
        self._queries, self._page = queries, page

    def add_routes(
        self,
        router: web.UrlDispatcher,
        exchange_middleware: exchanges.ExchangeMiddleware,
        websocket: websockets.WebSocketTransport,
    ) -> None:
        """POST and GET on both paths; other methods are 405. A GET may ask for a WebSocket."""
        execute = exchange_middleware.wrap("graphql", self.execute)

        async def get(request: web.Request) -> web.StreamResponse:
            if websockets.is_upgrade(request):
                return await websocket.serve(request)
            if "sdl" in request.query and "query" not in request.query:
                return download_schema()
            if _wants_page(request):
                return self._page(request)
            return await execute(request)

        for path in PATHS:
            router.add_post(path, execute)
            router.add_get(path, get)

    async def execute(self, request: web.Request, exchange: exchanges.Exchange) -> web.Response:
        accept = request.headers.getall("Accept", [])
        media_type = negotiate(accept, OFFERED)
        token = forms.access_token(request.headers)
        try:
            if media_type is None:
                accepted = ", ".join(accept)
                message = f"No media type in `Accept: {accepted}` is one that can be sent: application/json is."
                raise errors.bad_request(message, "HC0063", status=406)
            graphql_request = await self._read(request)
        except errors.RequestError as error:
            return self._response(self._queries.error_response(error), media_type or FALLBACK)
        return self._response(await self._queries.execute(graphql_request, token, exchange), media_type)

    async def _read(self, request: web.Request) -> requests.GraphQLRequest:
        if request.method != "POST":
            return requests.parse_url(request.query)
        requests.check_type(request.headers.get("Content-Type"), request.charset)
        return requests.parse_body(await _body(request))

    def _response(self, result: service.QueryResponse, media_type: MediaType) -> web.Response:
        status = media_type.status(result.status, result.json_status, has_data="data" in result.body)
        headers = {"Content-Type": media_type.name + _CHARSET, "Vary": "Accept"}
        if status == 405:
            headers["Allow"] = "POST"
        return web.Response(body=_escaped(orjson.dumps(result.body)), status=status, headers=headers)


def _escaped(body: bytes) -> bytes:
    """JSON as the service writes it: ASCII, with `+ & < > '` escaped and hex digits in upper case."""
    # Five replacements and a codec take a fraction of the time of one pattern, which visits every character.
    for character, escape in _ESCAPES:
        body = body.replace(character, escape)
    return body if body.isascii() else body.decode().encode("ascii", _JSON_ESCAPES)


async def _body(request: web.Request) -> bytes:
    body = bytearray()
    try:
        async for chunk in request.content.iter_any():
            body += chunk
            if len(body) > MAX_BODY:
                raise errors.bad_request(f"The request body is longer than {MAX_BODY} bytes.", "HC0010", status=413)
    except web.RequestPayloadError:
        raise errors.bad_request("The request body is not encoded as its headers say.", "HC0012") from None
    return bytes(body)


def _wants_page(request: web.Request) -> bool:
    """Return true if a GET has no query and its client accepts HTML at least as well as JSON."""
    accept = request.headers.getall("Accept", [])
    best = negotiate(accept, (HTML, *OFFERED))
    return "query" not in request.query and best is not None and best.name == HTML


def _escape(error: UnicodeError) -> tuple[str, int]:
    """Codec error handler: the characters beyond ASCII as JSON escapes."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be")
    return "".join(f"\\u{units[n]:02X}{units[n + 1]:02X}" for n in range(0, len(units), 2)), error.end


codecs.register_error(_JSON_ESCAPES, _escape)
