"""v3's paths and what answers them. Reads the request, asks the pipeline, writes the reply; decides nothing itself."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from aiohttp import web

from proxy import errors, model
from proxy.gateway.applications import Application
from proxy.gateway.pipeline import Pipeline
from proxy.kit.clock import Clock
from proxy.mapping.loader import Rulebook
from proxy.web.v3 import match, replies, search
from proxy.web.v3.endpoints import ENDPOINTS, PREFIXES, Endpoint
from proxy.web.v3.parameters import Parameters

UIDS_MAX = 100  # of one get_multi: v2's limit, v3's is not known (contract v3-rest.md §1)

APPLICATION = web.RequestKey("application", str)  # whose request it is, for the log

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Answer = Callable[[Endpoint, "Asked"], Awaitable[Any]]


class Asked(NamedTuple):
    """One v3 request, read as far as all endpoints have it in common. `started` is in the clock's monotonic seconds."""

    request: web.Request
    parameters: Parameters
    application: Application
    started: float


class Surface:
    """The handlers of all v3 paths."""

    def __init__(self, pipeline: Pipeline, rulebook: Rulebook, clock: Clock) -> None:
        self._pipeline = pipeline
        self._rulebook = rulebook
        self._clock = clock
        self._answers: dict[str, Answer] = {
            "match": self._match,
            "search": self._search,
            "get_multi": self._get_multi,
            "get": self._get,
        }

    def add_to(self, app: web.Application) -> None:
        """Register every path under both prefixes, with and without a trailing slash."""
        for endpoint in ENDPOINTS:
            handler = self._handler(endpoint)
            for prefix in PREFIXES:
                for path in (f"{prefix}{endpoint.path}", f"{prefix}{endpoint.path}/"):
                    app.router.add_get(path, handler)
                    app.router.add_route("*", path, other_method)

    def _handler(self, endpoint: Endpoint) -> Handler:
        answer = self._answers[endpoint.action]

        async def handle(request: web.Request) -> web.StreamResponse:
            started = self._clock.monotonic()
            parameters = Parameters(request.raw_path)
            application = self._pipeline.application(parameters.text("apikey"))
            request[APPLICATION] = application.name
            style = parameters.style()
            body = await answer(endpoint, Asked(request, parameters, application, started))
            return replies.ok(body, style, request)

        return handle

    async def _match(self, endpoint: Endpoint, asked: Asked) -> Any:
        """contract v3-rest.md §4."""
        raws = match.decode(asked.parameters.text("queries"))
        request = model.PartsMatchRequest(tuple(map(match.query, raws)), asked.parameters.flag("exact_only"))
        application, view = self._asker(endpoint, asked)
        outcomes = await self._pipeline.match_parts(application, request, view)
        return match.reply(raws, request, outcomes, self._msec(asked))

    async def _search(self, endpoint: Endpoint, asked: Asked) -> Any:
        """contract v3-rest.md §1.1, §3.6; who is asked for where is in the answer to parts only."""
        request = search.request(asked.parameters)
        application, view = self._asker(endpoint, asked)
        if endpoint.object != "Part":
            items, listed = await self._pipeline.search_listed(application, endpoint.object, request, view)
            return search.response(request, items, listed, self._msec(asked))
        items, found = await self._pipeline.search_parts(application, request, view)
        context = application.context
        return {
            **search.response(request, items, found, self._msec(asked)),
            "user_country": context.country,
            "user_currency": context.currency,
        }

    async def _get_multi(self, endpoint: Endpoint, asked: Asked) -> Any:
        """Objects by the uid they were asked for, unknown ones left out (contract v3-rest.md §1)."""
        uids = [uid for uid in asked.parameters.texts("uid") if uid]
        if not uids:
            raise errors.BadRequest("uid[] argument missing: the uids to get, like uid[]=2c3be9310496fffc")
        if len(set(uids)) > UIDS_MAX:
            raise errors.BadRequest(f"at most {UIDS_MAX} uids a request, not {len(set(uids))}")
        return await self._objects(endpoint, asked, uids)

    async def _get(self, endpoint: Endpoint, asked: Asked) -> Any:
        """One object, bare."""
        uid = asked.request.match_info["uid"]
        found = await self._objects(endpoint, asked, [uid])
        if uid not in found:
            raise errors.NotFound(f"there is no {endpoint.object.lower()} with the uid {uid[:40]!r}")
        return found[uid]

    async def _objects(self, endpoint: Endpoint, asked: Asked, uids: list[str]) -> dict[str, Any]:
        application, view = self._asker(endpoint, asked)
        if endpoint.object == "Part":
            return await self._pipeline.parts(application, uids, view)
        return await self._pipeline.listed(application, endpoint.object, uids, view)

    def _asker(self, endpoint: Endpoint, asked: Asked) -> tuple[Application, model.View]:
        """Who asks, with the request's own cuts, and the view."""
        shape = asked.parameters.shape(asked.application.features, self._rulebook, endpoint.object)
        return asked.application.cutting(shape.cuts), shape.view

    def _msec(self, asked: Asked) -> int:
        return int((self._clock.monotonic() - asked.started) * 1000)


async def other_method(request: web.Request) -> web.StreamResponse:
    """OPTIONS says what there is; everything else v3 never had."""
    if request.method == "OPTIONS":
        return web.Response(status=204, headers={"Allow": replies.ALLOWED})
    raise errors.MethodNotAllowed(f"{request.method[:20]} is not allowed here; v3 is read with GET")
