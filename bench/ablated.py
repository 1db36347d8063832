"""`python -m bench.ablated NAME ARGUMENT …`: the program `v3bridge ARGUMENT …` without one of its optimisations."""

import contextlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

from aiohttp import web
from msgspec import structs
from prometheus_client import Counter as ClientCounter

from proxy.cli import main
from proxy.kit import event_loop, garbage
from proxy.kit.aiohttp_internals import client as pool_client
from proxy.kit.aiohttp_internals import receiver, response
from proxy.kit.aiohttp_internals.server import Handler
from proxy.planning import operations
from proxy.stores import cache_file, sqlite
from proxy.telemetry import log, log_writer, metrics
from proxy.upstream import batching
from proxy.web import fast_path
from proxy.web.v3 import encoded_cache, unparsed

CHANGES: dict[str, Callable[[], None]] = {}
"""Functions that remove an optimisation from this process, by its name."""


def _optimisation(name: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    def register(change: Callable[[], None]) -> Callable[[], None]:
        CHANGES[name] = change
        return change

    return register


@_optimisation("the fast path before the router")
def _route_everything() -> None:
    dispatcher = fast_path.dispatcher

    def routed_only(app: web.Application, routed: Handler) -> Handler:
        app[fast_path.DIRECT].clear()
        return dispatcher(app, routed)

    fast_path.dispatcher = routed_only


@_optimisation("prepared responses")
def _prepare_by_aiohttp() -> None:
    response.PreparedResponse.prepare = web.Response.prepare  # type: ignore[method-assign]


@_optimisation("the pool client")
def _post_by_session() -> None:
    def session(session: Any, _: str) -> Any:
        return session

    pool_client.PoolClient = session  # type: ignore[assignment,misc]


@_optimisation("the parser of whole responses")
def _parse_into_streams() -> None:
    receiver._body = lambda *_: None


@_optimisation("batches over several turns of the event loop")
def _flush_in_the_same_turn() -> None:
    batching.TURNS_MAX = 0


@_optimisation("decoding parts just before their translation")
def _decode_whole_batches() -> None:
    merged = operations.PlannedOperation.merged

    def decoding(
        self: operations.PlannedOperation, others: Sequence[operations.PlannedOperation]
    ) -> operations.PlannedOperation:
        operation = merged(self, others)

        def read(data: Any) -> list[operations.OperationResult]:
            return [structs.replace(result, encoded=None) for result in self.decoded(operation.read(data))]

        return structs.replace(operation, read=read)

    operations.PlannedOperation.merged = decoding  # type: ignore[method-assign]


@_optimisation("the encoded response cache")
def _encode_every_response() -> None:
    encoded_cache.EncodedResponseCache.get = lambda *_: None  # type: ignore[method-assign]
    encoded_cache.EncodedResponseCache.by_head = lambda *_: None  # type: ignore[method-assign]


@_optimisation("the booking journal")
def _book_in_transactions() -> None:
    sqlite.SqliteStore.journal = lambda *_: None  # type: ignore[assignment,method-assign]


@_optimisation("the service's own metric counters")
def _count_by_prometheus_client() -> None:
    counters: dict[int, ClientCounter] = {}

    def set_item(self: Any, labels: tuple[str, ...], value: float) -> None:
        if id(self) not in counters:
            name, meaning, names = self._head
            counters[id(self)] = ClientCounter(f"ablated_{name}", meaning, names, registry=None)
        counter = counters[id(self)]
        (counter.labels(*labels) if labels else counter).inc(max(0.0, value - self.get(labels, 0.0)))
        dict.__setitem__(self, labels, value)

    metrics.Counter.__setitem__ = set_item  # type: ignore[method-assign]


@_optimisation("tuned garbage collection")
def _collect_by_default() -> None:
    garbage.collect_rarely = garbage.tune = garbage.exempt = lambda: None


@_optimisation("templates of request log lines")
def _render_every_line() -> None:
    log.plain_renderer = lambda: None


@_optimisation("the thread of the log")
def _write_every_line() -> None:
    log_writer.buffered = contextlib.nullcontext  # type: ignore[assignment]


@_optimisation("hits from received bytes")
def _parse_every_request() -> None:
    unparsed.UnparsedHits.__call__ = lambda *_: None  # type: ignore[method-assign]


@_optimisation("coalescing by request target")
def _join_no_request() -> None:
    encoded_cache.RequestCoalescing.get = lambda *_: None  # type: ignore[method-assign]


@_optimisation("look-ups of the shared cache in the event loop")
def _look_up_in_a_thread() -> None:
    cache_file.CacheFile.look_up_now = lambda *_: None  # type: ignore[method-assign]


@_optimisation("claims in memory")
def _lock_every_claim() -> None:
    cache_file.ALONE_TICKS = 10**9


@_optimisation("uvloop")
def _run_on_asyncio() -> None:
    event_loop._loop_factory = lambda: None


if __name__ == "__main__":
    CHANGES[sys.argv.pop(1)]()
    main.main()
