"""v3's paths and what answers them. Reads the request, asks the pipeline, writes the reply; decides nothing itself."""

from collections.abc import Awaitable, Callable

from aiohttp import web

from proxy import errors, model
from proxy.gateway.pipeline import Pipeline
from proxy.kit.clock import Clock
from proxy.web.v3 import match, replies
from proxy.web.v3.parameters import Parameters

PREFIXES = ("/v3", "/api/v3")
ALLOWED = "GET, HEAD, OPTIONS"

APPLICATION = web.RequestKey("application", str)  # whose request it is, for the log

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Surface:
    """The handlers of all v3 paths. `includable` are the names include[] knows."""

    def __init__(self, pipeline: Pipeline, includable: frozenset[str], clock: Clock) -> None:
        self._pipeline = pipeline
        self._includable = includable
        self._clock = clock

    def add_to(self, app: web.Application) -> None:
        """Register every path under both prefixes, with and without a trailing slash."""
        paths: dict[str, Handler] = {"/parts/match": self.parts_match}
        for prefix in PREFIXES:
            for path, handler in paths.items():
                for route in (f"{prefix}{path}", f"{prefix}{path}/"):
                    app.router.add_get(route, handler)
                    app.router.add_route("*", route, other_method)

    async def parts_match(self, request: web.Request) -> web.StreamResponse:
        """contract v3-rest.md §4."""
        started = self._clock.monotonic()
        parameters = Parameters(request.raw_path)
        application = self._pipeline.application(parameters.text("apikey"))
        request[APPLICATION] = application.name
        style = parameters.style()
        raws = match.decode(parameters.text("queries"))
        asked = model.PartsMatchRequest(tuple(map(match.query, raws)), parameters.flag("exact_only"))
        view = parameters.view(application.features, self._includable)
        outcomes = await self._pipeline.match_parts(application, asked, view)
        msec = int((self._clock.monotonic() - started) * 1000)
        return replies.ok(match.reply(raws, asked, outcomes, msec), style, request)


async def other_method(request: web.Request) -> web.StreamResponse:
    """OPTIONS says what there is; everything else v3 never had."""
    if request.method == "OPTIONS":
        return web.Response(status=204, headers={"Allow": ALLOWED})
    raise errors.MethodNotAllowed(f"{request.method[:20]} is not allowed here; v3 is read with GET")
