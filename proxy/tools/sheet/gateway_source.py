"""Parts from a gateway in this process: with the quota, the tokens and the caches of the service, and without a server.

Queries are looked up in the caches first, 100 at a time. What these lack is executed in batches, of which some are in
flight at once. The results of a batch are stored before they are yielded, so that a run that ends, however it does,
is continued by the next one without paying twice.
"""

import asyncio
import difflib
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterable, Mapping, Sequence

from proxy import errors
from proxy.gateway.old_core import Client, Gateway, GatewayRequest, RenderedResult
from proxy.kit.wording import counted
from proxy.tools.sheet.offers import is_named
from proxy.tools.sheet.part_queries import (
    BATCH,
    PartQueries,
    PartView,
    by_currency,
    decode_parts,
    decode_sources,
    gateway_request,
)
from proxy.tools.sheet.parts import BudgetExhausted, CostEstimate, PartQuery, PartResult, Refresh
from proxy.traffic.bom_columns import plain

BATCHES_IN_FLIGHT = 4
ATTEMPTS_MAX = 4  # of a batch that was not executed, such as beyond the rate limit
WAIT_SECONDS, WAIT_SECONDS_MAX = 2.0, 60.0  # before an attempt, where the service names no time; and at most
REFUSALS_MAX = 10  # of whole batches in a row that are split to find the line that the service dislikes
FAILED_BATCHES_MAX = 3  # in a row: the service is down, and thousands of further queries would fail one by one

# Further requests would fail for the same reason.
_ENDING = (errors.QuotaExhausted, errors.CredentialsRefused, errors.TokenLimit, errors.StoreUnavailable)


class GatewayPartSource:
    """PartSource that executes queries as one client of a gateway. `notes` are for the user, such as that nothing is
    cached."""

    def __init__(self, gateway: Gateway, client: Client, view: PartView, notes: Sequence[str] = ()) -> None:
        self.notes = tuple(notes)
        self.gateway = gateway
        self.client = client
        self.view = view
        self.tasks: set[asyncio.Task[list[RenderedResult]]] = set()
        self.parts_spent = 0

    @property
    def upstream_requests(self) -> int:
        """Upstream requests sent so far, without requests for tokens."""
        (family,) = self.gateway.metrics.upstream_requests.collect()
        return round(sum(sample.value for sample in family.samples if sample.name.endswith("_total")))

    async def close(self) -> None:
        """Wait for requests in flight: they are billed already."""
        await _drain(self.tasks)

    async def estimate(self, queries: Sequence[PartQuery], *, refresh: Refresh = "nothing") -> CostEstimate:
        groups = by_currency(queries)
        distinct = sum(map(len, groups))
        missing: list[PartQuery] = []
        for group in groups:
            cached = await self._cached(group, refresh=refresh)
            missing += [query for query, result in zip(group, cached, strict=True) if result is None]
        status = self.gateway.pipeline.quota_status(self.client)
        left = None if status.limit is None else max(0, status.limit - status.used)
        return CostEstimate(distinct, distinct - len(missing), _parts(missing), len(by_currency(missing)), left)

    async def unknown_distributors(self, names: Collection[str]) -> Mapping[str, Sequence[str]]:
        if not names:
            return {}
        listed = (await self.gateway.listed("Seller", self.client)).ids
        sellers = [(uid, name) for name, ids in listed.items() for uid in ids]
        unknown = [name for name in sorted(names) if not any(is_named(name, *seller) for seller in sellers)]
        return {name: difflib.get_close_matches(name, listed) for name in unknown}

    async def unknown_specs(self, names: Collection[str]) -> Mapping[str, Sequence[str]]:
        if not names:
            return {}
        known = (await self.gateway.specs(self.client)).specs
        keys = [entry.key for entry in known.names.values()]
        spelled = {name: (plain(name), known.key("", name)) for name in names}
        unknown = sorted(name for name, both in spelled.items() if not any(map(known.source, both)))
        return {name: difflib.get_close_matches(spelled[name][1], keys) for name in unknown}

    async def fetch(
        self, queries: Sequence[PartQuery], *, budget: int | None = None, refresh: Refresh = "nothing"
    ) -> AsyncGenerator[PartResult, None]:
        missing: list[PartQuery] = []
        for group in by_currency(queries):
            for query, cached in zip(group, await self._cached(group, refresh=refresh), strict=True):
                if cached is None:
                    missing.append(query)
                else:
                    yield self.result(query, cached)
        run = _Run(self, missing, budget, refresh=refresh != "nothing")
        try:
            async for result in run.results():
                yield result
        finally:
            await run.close()

    def result(self, query: PartQuery, rendered: RenderedResult) -> PartResult:
        """Return the result of a query, with the time of its upstream request."""
        now = self.gateway.clock.now()
        if rendered.failure is not None or rendered.error is not None:
            return PartResult(query, None, rendered.hits, rendered.error or str(rendered.failure), now)
        # An entry says until when it is fresh: that many seconds after its upstream request, also one of another run.
        age = self.gateway.clock.monotonic() - rendered.stored
        fetched = now - max(0.0, age)
        if query.sources:
            return PartResult(query, None, rendered.hits, None, fetched, decode_sources(rendered.items))
        parts = decode_parts(rendered.items)
        return PartResult(query, parts[0] if parts else None, rendered.hits, None, fetched)

    async def _cached(self, group: Sequence[PartQuery], *, refresh: Refresh) -> list[RenderedResult | None]:
        """Return what the caches have of queries with the same currency, and what is not fetched again."""
        if refresh == "everything":
            return [None] * len(group)
        cached = await self.gateway.quote(*self._lookup(group))
        if refresh == "failures":
            return [None if result is None or not result.hits else result for result in cached]
        return cached

    def _lookup(self, group: Sequence[PartQuery]) -> tuple[GatewayRequest, PartQueries]:
        request = gateway_request(self.client, self.view, group[0].currency, self.gateway.clock.monotonic())
        return request, PartQueries(request, group, self.view)


class _Run:
    """Execution of the queries that no cache has: starts batches while the budget and the quota allow it."""

    def __init__(
        self, source: GatewayPartSource, queries: Sequence[PartQuery], budget: int | None, *, refresh: bool
    ) -> None:
        self._source = source
        self._refresh = refresh
        self._limit = None if budget is None else source.parts_spent + budget
        self._queue = deque(by_currency(queries))
        self._in_flight: dict[asyncio.Task[list[RenderedResult]], list[PartQuery]] = {}
        self._stopping = asyncio.Event()
        self._refused_batches = 0
        self._failed_batches = 0
        self._end: errors.BridgeError | None = None

    async def results(self) -> AsyncIterator[PartResult]:
        """Yield results as they arrive. Raises the error that ends the run, after all results."""
        arrived: list[PartResult] = []
        while True:
            # First, so that the service works on the next batches while the caller works on these results.
            if self._end is None:
                self._start_batches()
            for result in arrived:
                yield result
            if not self._in_flight:
                break
            done, _ = await asyncio.wait(self._in_flight, return_when=asyncio.FIRST_COMPLETED)
            arrived = [each for task in done for each in self._handle(self._in_flight.pop(task), task.result())]
        if self._end is not None:
            raise self._end

    async def close(self) -> None:
        """Wait for the batches in flight: they are billed already, and their results go to the caches."""
        self._stopping.set()
        await _drain(self._in_flight)

    def _start_batches(self) -> None:
        while self._queue and len(self._in_flight) < BATCHES_IN_FLIGHT:
            each = self._queue[0][0].parts_max
            allowed = self._allowed(each)
            if allowed < each:
                if not self._in_flight:
                    self._end = BudgetExhausted(
                        f"the budget is spent; {counted(sum(map(len, self._queue)), 'query', 'queries')} left"
                    )
                return
            batch = self._queue.popleft()
            if len(batch) > allowed // each:
                self._queue.appendleft(batch[allowed // each :])
                batch = batch[: allowed // each]
            task = asyncio.create_task(self._execute(batch), name="batch of parts")
            self._in_flight[task] = batch
            self._source.tasks.add(task)
            task.add_done_callback(self._source.tasks.discard)

    def _allowed(self, least: int) -> int:
        """Return how many more parts may be requested: of the budget, and of the quota. At least those of one query of
        the quota, so that the gateway refuses it in its own words."""
        held = sum(map(_parts, self._in_flight.values()))
        allowed = BATCH if self._limit is None else self._limit - self._source.parts_spent - held
        status = self._source.gateway.pipeline.quota_status(self._source.client)
        if status.limit is None:
            return allowed
        remaining = status.limit - status.used - held
        return min(allowed, remaining if held else max(least, remaining))

    async def _execute(self, batch: list[PartQuery]) -> list[RenderedResult]:
        """Execute a batch and store its results. Queries that were not executed because the service is busy or cannot
        be reached are tried again."""
        results: dict[PartQuery, RenderedResult] = {}
        remaining = batch
        for attempt in range(1, ATTEMPTS_MAX + 1):
            results |= zip(remaining, await self._resolve(remaining), strict=True)
            remaining = [query for query in batch if _may_be_repeated(results[query].failure)]
            failure = results[remaining[0]].failure if remaining else None
            if failure is None or attempt == ATTEMPTS_MAX or not await self._wait(failure, attempt):
                break
        # Before anything is yielded: a process that is killed must find again what its user has seen.
        await self._source.gateway.flush()
        return [results[query] for query in batch]

    async def _resolve(self, queries: list[PartQuery]) -> list[RenderedResult]:
        source, gateway = self._source, self._source.gateway
        request = gateway_request(source.client, source.view, queries[0].currency, gateway.clock.monotonic())
        request = request._replace(refresh=self._refresh)
        try:
            return await gateway.pipeline.resolve(request, PartQueries(request, queries, source.view))
        finally:
            source.parts_spent += request.metadata.cost

    async def _wait(self, failure: errors.BridgeError, attempt: int) -> bool:
        """Wait before another attempt; return whether there is to be one."""
        seconds = WAIT_SECONDS * attempt if failure.retry_after is None else failure.retry_after
        if seconds > WAIT_SECONDS_MAX:
            return False
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return True
        return False

    def _handle(self, batch: list[PartQuery], results: list[RenderedResult]) -> Iterable[PartResult]:
        """Return the results of a batch that are final, and note what ends the run."""
        if self._splits(batch, results):
            return []
        failures = [result.failure for result in results if result.failure is not None]
        self._failed_batches = self._failed_batches + 1 if len(failures) == len(batch) else 0
        ending: errors.BridgeError | None = next(
            (failure for failure in failures if isinstance(failure, _ENDING)), None
        )
        if ending is None and self._failed_batches == FAILED_BATCHES_MAX:
            ending = failures[0]
        if ending is not None and self._end is None:
            self._end = ending
            self._stopping.set()  # batches that wait for another attempt need not make it
        # What was not executed because the run ends has no result: the next run executes it.
        return [
            self._source.result(query, result)
            for query, result in zip(batch, results, strict=True)
            if not isinstance(result.failure, _ENDING)
        ]

    def _splits(self, batch: list[PartQuery], results: list[RenderedResult]) -> bool:
        """Split a batch that was refused; return whether it was. The service refuses a request as a whole, without
        billing it, where it dislikes one line; not where it dislikes all, such as their currency."""
        refusals = {None if result.failure is not None else result.error for result in results}
        is_refused = len(refusals) == 1 and None not in refusals
        self._refused_batches = self._refused_batches + 1 if is_refused else 0
        if not is_refused or len(batch) == 1 or self._refused_batches > REFUSALS_MAX:
            return False
        middle = len(batch) // 2
        self._queue.extendleft((batch[middle:], batch[:middle]))
        return True


def _parts(queries: Iterable[PartQuery]) -> int:
    return sum(query.parts_max for query in queries)


def _may_be_repeated(failure: errors.BridgeError | None) -> bool:
    """Return whether another attempt may succeed, and the failed one was not billed."""
    if isinstance(failure, _ENDING):
        return False
    if isinstance(failure, errors.ServerError):
        return not failure.may_be_billed
    return isinstance(failure, errors.TooManyRequests)


async def _drain(tasks: Iterable[asyncio.Task[list[RenderedResult]]]) -> None:
    """Wait for tasks. Cancelled a second time, it cancels them: what they may have been billed becomes uncertain
    usage."""
    waiting = list(tasks)
    try:
        if waiting:
            await asyncio.wait(waiting)
    except asyncio.CancelledError:
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting)
        raise
