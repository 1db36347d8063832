"""A PartSource in memory: parts of a test, with a cache and a bill, and without a service."""

from collections.abc import AsyncGenerator, Collection, Mapping, Sequence

from proxy.tools.sheet.parts import BudgetExhausted, CostEstimate, Part, PartOfSource, PartQuery, PartResult, Refresh

BATCH = 100  # queries an upstream request


class MemoryPartSource:
    """Parts by number. `batch` queries are one upstream request; results carry the time `now`."""

    def __init__(self, parts: Mapping[str, Part], *, batch: int = BATCH, now: float = 0.0) -> None:
        self.parts = dict(parts)
        self.batch = batch
        self.now = now
        self.notes: tuple[str, ...] = ()
        self.cache: dict[PartQuery, PartResult] = {}
        self.hits: dict[str, int] = {}
        self.errors: dict[str, str] = {}
        self.sources: dict[str, tuple[PartOfSource, ...]] = {}  # of numbers
        self.only_sku: set[str] = set()  # numbers that no part has as its own
        self.closed = False
        self._spent = 0
        self._requests = 0

    async def estimate(self, queries: Sequence[PartQuery], *, refresh: Refresh = "nothing") -> CostEstimate:
        """The cost of queries that are not in the cache."""
        distinct = set(queries)
        missing = {query for query in distinct if not self._is_kept(query, refresh)}
        parts = sum(query.parts_max for query in missing)
        return CostEstimate(len(distinct), len(distinct) - len(missing), parts, -(-len(missing) // self.batch))

    async def fetch(
        self, queries: Sequence[PartQuery], *, budget: int | None = None, refresh: Refresh = "nothing"
    ) -> AsyncGenerator[PartResult, None]:
        """Results from the cache first, then batches, while the budget covers them."""
        distinct = list(dict.fromkeys(queries))
        missing = [query for query in distinct if not self._is_kept(query, refresh)]
        try:
            for query in distinct:
                if query not in missing:
                    yield self.cache[query]
            for begin in range(0, len(missing), self.batch):
                for result in self._send(missing[begin : begin + self.batch], budget):
                    yield result
        finally:
            self.closed = True

    async def unknown_distributors(self, names: Collection[str]) -> Mapping[str, Sequence[str]]:
        """None: every name is a distributor."""
        del names
        return {}

    async def unknown_specs(self, names: Collection[str]) -> Mapping[str, Sequence[str]]:
        """None: every name is a spec."""
        del names
        return {}

    @property
    def parts_spent(self) -> int:
        """One for each part that was found."""
        return self._spent

    @property
    def upstream_requests(self) -> int:
        """Batches sent."""
        return self._requests

    def _is_kept(self, query: PartQuery, refresh: Refresh) -> bool:
        cached = self.cache.get(query)
        return cached is not None and (refresh == "nothing" or (refresh == "failures" and cached.part is not None))

    def _send(self, queries: Sequence[PartQuery], budget: int | None) -> list[PartResult]:
        if budget is not None and self._spent + len(queries) > budget:
            raise BudgetExhausted("the budget does not cover the next request")
        self._requests += 1
        results = [self._result(query) for query in queries]
        self._spent += sum(len(result.sources) + (result.part is not None) for result in results)
        self.cache |= {result.query: result for result in results if result.error is None}
        return results

    def _result(self, query: PartQuery) -> PartResult:
        number = query.mpn or query.sku
        error = self.errors.get(number)
        if query.sources:
            sources = () if error else self.sources.get(number, ())
            return PartResult(query, None, len(sources), error, self.now, sources)
        part = None if error or query.mpn in self.only_sku else self.parts.get(number)
        return PartResult(query, part, self.hits.get(number, int(part is not None)), error, self.now)
