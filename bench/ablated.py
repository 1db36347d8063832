"""`python -m bench.ablated NAME ARGUMENT …`: the program `v3bridge ARGUMENT …` without one of its optimizations."""

import contextlib
import sys
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from prometheus_client import Counter as ClientCounter

from proxy.cli import main
from proxy.kit import event_loop, garbage
from proxy.stores import cache_file, sqlite
from proxy.telemetry import log, log_writer, metrics
from proxy.upstream import batching
from proxy.v3.parsing import request_shapes
from proxy.v3.parsing.request_parameters import RequestParameters
from proxy.web.v3 import encoded_cache, unparsed

Workload = Literal["distinct queries", "cache hits", "a new query by all clients at once"]


class Optimization(NamedTuple):
    """A function that removes an optimization from this process, and the workload that the optimization is for."""

    remove: Callable[[], None]
    workload: Workload


OPTIMIZATIONS: dict[str, Optimization] = {}


def _optimization(name: str, workload: Workload) -> Callable[[Callable[[], None]], Callable[[], None]]:
    def register(remove: Callable[[], None]) -> Callable[[], None]:
        OPTIMIZATIONS[name] = Optimization(remove, workload)
        return remove

    return register


@_optimization("shapes of requests", "distinct queries")
def _parse_all_parameters() -> None:
    request_shapes.RequestShapes.parse = lambda _, target: RequestParameters(target)  # type: ignore[assignment,method-assign]


@_optimization("batches over several turns of the event loop", "distinct queries")
def _flush_in_the_same_turn() -> None:
    batching.TURNS_MAX = 0


@_optimization("the encoded response cache", "cache hits")
def _encode_every_response() -> None:
    encoded_cache.EncodedResponseCache.get = lambda *_: None  # type: ignore[method-assign]
    encoded_cache.EncodedResponseCache.find = lambda *_: None  # type: ignore[method-assign]


@_optimization("the booking journal", "distinct queries")
def _book_in_transactions() -> None:
    sqlite.SqliteStore.journal = lambda *_: None  # type: ignore[assignment,method-assign]


@_optimization("the service's own metric counters", "cache hits")
def _count_by_prometheus_client() -> None:
    counters: dict[int, ClientCounter] = {}

    def set_item(self: Any, labels: tuple[str, ...], value: float) -> None:
        if id(self) not in counters:
            counters[id(self)] = ClientCounter(f"ablated_{self.name}", self.meaning, self.labels, registry=None)
        counter = counters[id(self)]
        (counter.labels(*labels) if labels else counter).inc(max(0.0, value - self.get(labels, 0.0)))
        dict.__setitem__(self, labels, value)

    metrics.Counter.__setitem__ = set_item  # type: ignore[method-assign]


@_optimization("tuned garbage collection", "distinct queries")
def _collect_by_default() -> None:
    garbage.collect_rarely = garbage.tune = garbage.exempt = lambda: None


@_optimization("templates of request log lines", "cache hits")
def _render_every_line() -> None:
    log.plain_renderer = lambda: None


@_optimization("the thread of the log", "cache hits")
def _write_every_line() -> None:
    log_writer.buffered = contextlib.nullcontext  # type: ignore[assignment]


@_optimization("hits from received bytes", "cache hits")
def _parse_every_request() -> None:
    unparsed.UnparsedHits.__call__ = lambda *_: None  # type: ignore[method-assign]


@_optimization("coalescing by request target", "a new query by all clients at once")
def _join_no_request() -> None:
    encoded_cache.RequestCoalescing.get = lambda *_: None  # type: ignore[method-assign]


@_optimization("look-ups of the shared cache in the event loop", "distinct queries")
def _look_up_in_a_thread() -> None:
    cache_file.CacheFile.look_up_now = lambda *_: None  # type: ignore[method-assign]


@_optimization("uvloop", "cache hits")
def _run_on_asyncio() -> None:
    event_loop._loop_factory = lambda: None


if __name__ == "__main__":
    OPTIMIZATIONS[sys.argv.pop(1)].remove()
    main.main()
