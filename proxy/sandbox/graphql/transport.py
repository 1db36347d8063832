"""The query service over HTTP: POST and GET of /graphql, with or without a trailing slash, as GraphQL over HTTP has it
(https://graphql.github.io/graphql-over-http/draft/) and, where they differ, as the service is known to do it (contract
graphql.md §3).

A GET without a query is answered by the IDE, which is handed in, or with `?sdl` by the schema as text.
"""

import re
from collections.abc import Callable

import orjson
from aiohttp import web

from proxy.sandbox.graphql import definition, media_types, problems, requests, service, sockets
from proxy.sandbox.injection import exchanges

PATHS = ("/graphql", "/graphql/")
# Bytes of a body, however it was compressed; ours.
MAX_BODY = 2**20
OFFERED = (media_types.JSON, media_types.GRAPHQL)

_OUTSIDE = re.compile(r"[^\x00-\x7f]|[+&<>']")

Page = Callable[[web.Request], web.Response]


class Transport:
    """The handlers. `page` is what a browser gets, `shown` gives the schema as text."""

    def __init__(self, queries: service.QueryService, page: Page, shown: definition.Definition) -> None:
        self._queries, self._page, self._shown = queries, page, shown

    def add_routes(
        self, router: web.UrlDispatcher, watch: exchanges.ExchangeMiddleware, over_socket: sockets.Sockets
    ) -> None:
        """POST and GET on both paths; other methods are 405. A GET may ask for a WebSocket."""
        asked = watch.wrap("graphql", self.ask)

        async def get(request: web.Request) -> web.StreamResponse:
            if sockets.is_asked(request):
                return await over_socket.serve(request)
            if "sdl" in request.query and "query" not in request.query:
                return self._shown.answer(request)
            return self._page(request) if _wants_page(request) else await asked(request)

        for path in PATHS:
            router.add_post(path, asked)
            router.add_get(path, get)

    async def ask(self, request: web.Request, exchange: exchanges.Exchange) -> web.Response:
        """One request."""
        accept = request.headers.getall("Accept", [])
        media_type = media_types.chosen(accept, OFFERED)
        try:
            if media_type is None:
                raise problems.not_acceptable(", ".join(accept))
            asked = await _read(request)
        except problems.RequestError as refused:
            answer = self._queries.refusal(refused)
        else:
            answer = await self._queries.answer(asked, _token(request), exchange)
        return _response(answer, media_type or media_types.FALLBACK)


async def _read(request: web.Request) -> requests.Request:
    if request.method != "POST":
        return requests.read_url(request.query)
    requests.check_type(request.headers.get("Content-Type"), request.charset)
    return requests.read(await _body(request))


async def _body(request: web.Request) -> bytes:
    body = bytearray()
    try:
        async for chunk in request.content.iter_any():
            body += chunk
            if len(body) > MAX_BODY:
                raise problems.too_large(MAX_BODY)
    except web.RequestPayloadError:
        raise problems.bad_request("The request body is not encoded as its headers say.", "HC0012") from None
    return bytes(body)


def _response(answer: service.Answer, media_type: media_types.MediaType) -> web.Response:
    status = media_type.status(answer.status, fixed=answer.fixed, has_data="data" in answer.body)
    headers = {"Content-Type": f"{media_type.name}; charset=utf-8", "Vary": "Accept"}
    if status == 405:
        headers["Allow"] = "POST"
    return web.Response(body=_escaped(orjson.dumps(answer.body)), status=status, headers=headers)


def _wants_page(request: web.Request) -> bool:
    """Whether a GET asks nothing and its sender takes HTML as gladly as JSON."""
    accept = request.headers.getall("Accept", [])
    best = media_types.chosen(accept, (media_types.HTML, *OFFERED))
    return "query" not in request.query and best is not None and best.name == media_types.HTML


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
