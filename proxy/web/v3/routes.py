"""v3's paths and what answers them. Reads the request, asks the pipeline, writes the reply; decides nothing itself."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import msgspec
import structlog
from aiohttp import web

from proxy import bounds, errors, model
from proxy.endpoints import ENDPOINTS, PREFIXES, Endpoint
from proxy.gateway.applications import Client
from proxy.gateway.pipeline import Caller, Pipeline
from proxy.gateway.quota.reservations import QuotaStatus
from proxy.gateway.receipt import HIT, Receipt
from proxy.kit.encoding import RawJson
from proxy.mapping.loader import Mappings
from proxy.planning import match_queries
from proxy.telemetry.metrics import Metrics
from proxy.web.v3 import match, near_misses, replies, search, unsupported
from proxy.web.v3.parameters import Parameters
from proxy.web.v3.repeats import Repeat, Repeats
from proxy.web.v3.replies import Written
from proxy.web.wrong_keys import WrongKeys

log = structlog.get_logger()

CLIENT = web.RequestKey("client", Client)  # whose request it is, for the log
RECEIPT = web.RequestKey("receipt", Receipt)  # what it came to, for the log
BILL = web.RequestKey("bill", tuple[Receipt, QuotaStatus])  # what came of it, for an error's headers

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Answer = Callable[[Endpoint, "Asked"], Awaitable[Any]]


class Asked(NamedTuple):
    """One v3 request, read as far as all endpoints have it in common. `started` is in the clock's monotonic seconds."""

    request: web.Request
    parameters: Parameters
    client: Client
    receipt: Receipt
    started: float


class Surface:
    """The handlers of all v3 paths."""

    def __init__(
        self, pipeline: Pipeline, keys: WrongKeys, mappings: Mappings, repeats: Repeats, metrics: Metrics
    ) -> None:
        self._repeats = repeats
        self._keys = keys
        self._pipeline = pipeline
        self._mappings = mappings
        self._metrics = metrics
        self._clock = metrics.clock
        self._answers: dict[str, Answer] = {
            "match": self._match,
            "search": self._search,
            "get_multi": self._get_multi,
            "get": self._get,
        }

    def add_to(self, app: web.Application) -> dict[str, Handler]:
        """Register every path under both prefixes, with and without a trailing slash. Gives those that are fixed."""
        fixed = {}
        for endpoint in ENDPOINTS:
            handler = self._handler(endpoint)
            for prefix in PREFIXES:
                for path in (f"{prefix}{endpoint.path}", f"{prefix}{endpoint.path}/"):
                    app.router.add_get(path, handler)
                    app.router.add_route("*", path, other_method)
                    if "{" not in path:
                        fixed[path] = handler
        return fixed

    def _handler(self, endpoint: Endpoint) -> Handler:
        answer = self._answers[endpoint.action]

        async def handle(request: web.Request) -> web.StreamResponse:
            gzip = replies.takes_gzip(request)
            repeat = self._repeats.get(request.raw_path, gzip)
            if repeat is not None:
                return await self._again(repeat, request)
            started = self._clock.monotonic()
            parameters = Parameters(request.raw_path)
            client = self._keys.client(request, parameters.text("apikey"))
            request[CLIENT] = client
            await self._pipeline.admit(client)
            style = parameters.style()
            request[RECEIPT] = receipt = Receipt(started)
            try:
                found = await answer(endpoint, Asked(request, parameters, client, receipt, started))
            except errors.BridgeError as error:
                if receipt.cost or isinstance(error, errors.QuotaExhausted):
                    request[BILL] = receipt, self._pipeline.standing(client)
                raise
            answered = self._clock.monotonic()
            written = replies.written(replies.encode(found, style), style, gzip)
            if receipt.unsupported:
                written = written._replace(headers=written.headers | unsupported.header(receipt.unsupported))
            if receipt.source == "hit":
                self._repeats.keep(request.raw_path, gzip, Repeat(written, receipt.answers, client, receipt.until))
            if receipt.until and receipt.source not in (None, "stale"):
                self._repeats.note(request.raw_path, receipt.until)
            response = self._reply(written, client, receipt)
            self._metrics.observe_stage("reply", answered)
            return response

        return handle

    async def _again(self, repeat: Repeat, request: web.Request) -> web.Response:
        """A reply that is known as a whole."""
        self._keys.check(request, repeat.client)
        request[CLIENT], request[RECEIPT] = repeat.client, HIT
        if repeat.client.rate:
            await self._pipeline.admit(repeat.client)
        self._metrics.queries["hit",] += repeat.answers
        return self._reply(repeat.written, repeat.client, HIT)

    def _reply(self, written: Written, client: Client, receipt: Receipt) -> web.Response:
        """A 200; where parts were asked for, with what they cost and how the client stands."""
        response = replies.sent(written)
        if unsupported.HEADER in written.headers:
            log.warning("parameters ignored", parameters=written.headers[unsupported.HEADER])
        if receipt.source is not None:
            return replies.account(response, receipt, self._pipeline.standing(client))
        return response

    async def _match(self, endpoint: Endpoint, asked: Asked) -> Any:
        """contract v3-rest.md §4."""
        raws = match_queries.decode(asked.parameters.text("queries"))
        asked.receipt.unsupported = tuple(match_queries.unknown_keys(raws))
        request = model.PartsMatchRequest(tuple(map(match_queries.parse, raws)), asked.parameters.flag("exact_only"))
        answers = await self._pipeline.match_parts(self._caller(endpoint, asked), request)
        return match.reply(raws, request, answers, self._msec(asked))

    async def _search(self, endpoint: Endpoint, asked: Asked) -> Any:
        """contract v3-rest.md §1.1, §3.6; who is asked for where is in the answer to parts only."""
        request = search.request(asked.parameters)
        caller = self._caller(endpoint, asked)
        if endpoint.object != "Part":
            items, listed = await self._pipeline.search_listed(caller, endpoint.object, request)
            return search.response(request, items, listed.hits, listed, self._msec(asked))
        answer = await self._pipeline.search_parts(caller, request)
        return {
            **search.parts_response(request, answer, self._msec(asked)),
            "user_country": caller.context.country,
            "user_currency": caller.context.currency,
        }

    async def _get_multi(self, endpoint: Endpoint, asked: Asked) -> Any:
        """Objects by the uid they were asked for, unknown ones left out (contract v3-rest.md §1)."""
        uids = [uid for uid in asked.parameters.texts("uid") if uid]
        if not uids:
            raise errors.BadRequest("uid[] argument missing: the uids to get, like uid[]=2c3be9310496fffc")
        bounds.UIDS.check(len(set(uids)))
        return await self._objects(endpoint, asked, uids)

    async def _get(self, endpoint: Endpoint, asked: Asked) -> Any:
        """One object, bare."""
        uid = asked.request.match_info["uid"]
        if meant := near_misses.instead_of_uid(asked.request.path, uid):
            raise errors.NotFound(meant)
        found = await self._objects(endpoint, asked, [uid])
        if uid not in found:
            raise errors.NotFound(f"there is no {endpoint.object.lower()} with the uid {uid[:40]!r}")
        return found[uid]

    async def _objects(self, endpoint: Endpoint, asked: Asked, uids: list[str]) -> dict[str, Any]:
        caller = self._caller(endpoint, asked)
        if endpoint.object == "Part":
            found = await self._pipeline.parts(caller, uids)
            return {uid: RawJson(part) for uid, part in found.items()}
        return await self._pipeline.listed(caller, endpoint.object, uids)

    def _caller(self, endpoint: Endpoint, asked: Asked) -> Caller:
        """Who asks, what is shown, and the request's own cuts of lists: the last that is read of a request."""
        application = asked.client.application
        shape = asked.parameters.shape(application.features, self._mappings, endpoint.object)
        context = msgspec.structs.replace(application.context, cuts=shape.cuts) if shape.cuts else application.context
        self._metrics.observe_stage("parse", asked.started)
        return Caller(asked.client, shape.projection, context, asked.receipt)

    def _msec(self, asked: Asked) -> int:
        return int((self._clock.monotonic() - asked.started) * 1000)


async def other_method(request: web.Request) -> web.StreamResponse:
    """OPTIONS says what there is; everything else v3 never had."""
    if request.method == "OPTIONS":
        return web.Response(status=204, headers={"Allow": replies.ALLOWED})
    raise errors.MethodNotAllowed(f"{request.method[:20]} is not allowed here; v3 is read with GET")
