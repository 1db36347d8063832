"""Every request of a service, from its arrival to the last byte of its answer: journalled, and struck by faults.

The handlers of both services are put behind a `Watch`. Without faults it adds an entry to the journal and nothing
else. What a handler has to know and to tell is its `Exchange`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from aiohttp import web

from proxy.sandbox import faults, journal
from proxy.sandbox.injection import delivery, injector


@dataclass(slots=True)
class Exchange:
    """One request: its entry, and what strikes it."""

    kept: journal.Journal
    entry: journal.Entry
    strike: injector.Strike = injector.NONE
    request: web.Request | None = None

    @property
    def origin(self) -> str:
        """The address (scheme, host, port) that the request came to."""
        return "" if self.request is None else str(self.request.url.origin())

    @property
    def fault(self) -> faults.Drawn | None:
        """The fault that was drawn for it."""
        return self.strike.fault

    def struck(self, kind: type[faults.Fault]) -> None:
        """A fault took effect."""
        self.kept.strike(self.entry, faults.word(kind))

    def billed(self, parts: int) -> None:
        """The answer was made and counted."""
        self.kept.bill(self.entry, parts)


Handler: TypeAlias = Callable[[web.Request, Exchange], Awaitable[web.Response]]


class Watch:
    """What stands in front of the handlers of both services."""

    def __init__(self, drawing: injector.Injector, kept: journal.Journal) -> None:
        self._injector, self._journal = drawing, kept

    def over(self, service: str, handler: Handler) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        """The handler for aiohttp. `service` is "graphql" or "token"."""

        async def handle(request: web.Request) -> web.StreamResponse:
            strike = self._injector.draw(service) if self._injector.active else injector.NONE
            exchange, whole = Exchange(self._journal, self._journal.open(service), strike, request), False
            try:
                answer = await _answer(request, exchange, handler)
                response, whole = await _deliver(request, exchange, answer)
            except web.HTTPException as refused:
                exchange.entry.status, whole = refused.status, True
                raise
            finally:
                self._journal.close(exchange.entry, whole=whole)
            return response

        return handle

    @contextmanager
    def beside(self, service: str, request: web.Request) -> Iterator[Exchange]:
        """An operation on the WebSocket that `request` has opened, or one that a page of the sandbox has done by it.
        No fault strikes it."""
        exchange = Exchange(self._journal, self._journal.open(service), request=request)
        try:
            yield exchange
        finally:
            exchange.entry.status = exchange.entry.status or 200
            self._journal.close(exchange.entry, whole=True)


async def _answer(request: web.Request, exchange: Exchange, handler: Handler) -> web.Response:
    """What the service says, or what comes instead of it."""
    instead = delivery.instead(exchange.fault, exchange.entry.service) if exchange.fault else None
    if instead is None:
        return await handler(request, exchange)
    await request.read()
    return instead


async def _deliver(request: web.Request, exchange: Exchange, answer: web.Response) -> tuple[web.StreamResponse, bool]:
    """Bring the answer on its way as the faults want it; what was sent, and whether the answer arrived whole."""
    if exchange.strike is injector.NONE:
        exchange.entry.status = answer.status
        return answer, await delivery.send(request, answer)
    if exchange.strike.delay:
        exchange.struck(faults.Latency)
        await asyncio.sleep(exchange.strike.delay)
    fault = exchange.fault
    if isinstance(fault, delivery.ON_THE_WIRE):
        exchange.struck(type(fault))
    if isinstance(fault, faults.Reset):
        delivery.reset(request)
        return answer, False
    spoiled = delivery.spoiled(answer, fault) if isinstance(fault, faults.Malformed) else answer
    exchange.entry.status = spoiled.status
    if isinstance(fault, faults.Cut):
        return await delivery.send_cut(request, spoiled, fault.after), False
    if isinstance(fault, faults.SlowLoris):
        return await delivery.send_slowly(request, spoiled, fault.ms / 1000)
    return spoiled, await delivery.send(request, spoiled) and spoiled is answer
