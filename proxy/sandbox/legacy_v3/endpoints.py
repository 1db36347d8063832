"""The old service over HTTP: its paths under both prefixes, errors as v3 wrote them, disturbances on the way."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from aiohttp import web

from proxy.sandbox import declaration_syntax, journal
from proxy.sandbox.legacy_v3 import disturbances, query_string, refusal, replies, service

PREFIXES = ("/v3", "/api/v3")
# Longer request targets were refused before they came to the service (contract v3-rest.md §6).
LONGEST_TARGET = 8_192
_CLASSES = {"parts": "Part", "brands": "Brand", "categories": "Category", "sellers": "Seller"}

Answer = Callable[[service.Caller, web.Request], dict[str, Any]]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Endpoints:
    """The handlers. Each request is an entry of the journal."""

    def __init__(self, served: service.Service, kept: journal.RequestJournal) -> None:
        self._served, self._journal = served, kept

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """With and without a slash at the end; what is not there is a 404 in JSON."""
        answers = self._answers()
        for prefix in PREFIXES:
            for path, answer in answers.items():
                handler = self._over(path, answer)
                router.add_get(prefix + path, handler)
                router.add_get(f"{prefix}{path}/", handler)
            router.add_route("*", prefix, self._over("", _nothing_there))
            router.add_route("*", prefix + "/{rest:.*}", self._over("", _nothing_there))
        router.add_route("*", "/api/{rest:.*}", self._over("", _nothing_there))

    def _answers(self) -> dict[str, Answer]:
        served = self._served
        found: dict[str, Answer] = {"/parts/match": partial(_match, served)}
        for path, name in _CLASSES.items():
            found[f"/{path}/search"] = partial(_of_class, served.search, name)
            found[f"/{path}/get_multi"] = partial(_of_class, served.get_multi, name)
        for path, name in _CLASSES.items():
            found[f"/{path}/{{uid}}"] = partial(_one, served.get_one, name)
        return {**found, "/seller/{uid}": found["/sellers/{uid}"]}

    def _over(self, path: str, answer: Answer) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            entry = self._journal.begin("legacy")
            entry.operation = path or None
            try:
                response = await self._answer(request, answer, entry)
                entry.status = response.status
            finally:
                self._journal.finish(entry, whole=entry.status is not None)
            return response

        return handle

    async def _answer(self, request: web.Request, answer: Answer, entry: journal.JournalEntry) -> web.Response:
        if len(request.raw_path) > LONGEST_TARGET:
            return replies.page(414)
        given, draws = query_string.QueryString(request.raw_path), self._served.disturbances.begin()
        if delay := draws.delay:
            self._journal.record_fault(entry, "slowness")
            await asyncio.sleep(delay)
        wanted = replies.Style()
        try:
            wanted = replies.style(given)
            caller = self._served.caller(given, draws)
            if error := draws.error:
                self._journal.record_fault(entry, declaration_syntax.kind_name(type(error)))
                return _failed(error, wanted, request)
            return replies.answered(answer(caller, request), wanted, request)
        except refusal.Refusal as why:
            return replies.refused(why, wanted, request)


def _failed(error: disturbances.Errors, wanted: replies.Style, request: web.Request) -> web.Response:
    if error.body == "html":
        return replies.page(error.status)
    return replies.refused(refusal.Refusal(error.status, "Internal server error"), wanted, request)


def _match(served: service.Service, caller: service.Caller, _request: web.Request) -> dict[str, Any]:
    return served.match(caller)


def _of_class(
    ask: Callable[[service.Caller, str], dict[str, Any]], name: str, caller: service.Caller, _request: web.Request
) -> dict[str, Any]:
    return ask(caller, name)


def _one(
    ask: Callable[[service.Caller, str, str], dict[str, Any]], name: str, caller: service.Caller, request: web.Request
) -> dict[str, Any]:
    return ask(caller, name, request.match_info["uid"])


def _nothing_there(_caller: service.Caller, request: web.Request) -> dict[str, Any]:
    if request.method not in ("GET", "HEAD"):
        raise refusal.Refusal(405, "Method not allowed")
    raise refusal.Refusal(404, "Resource not found")
