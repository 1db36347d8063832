"""Parts from a gateway in this process: with the quota, the tokens and the stored results of the service.

What is not stored is fetched in rounds, and stored before it is yielded: the next run does not pay for it again.
"""

import asyncio
import difflib
import itertools
import math
import re
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeVar

import msgspec

from proxy import errors
from proxy.gateway import Answer, Client, Gateway
from proxy.kit import counted
from proxy.mapping.loader import VIEWS
from proxy.mapping.specs import SpecNames
from proxy.model import PARTS_MAX, MappingContext, Projection
from proxy.planning import queries as of_core
from proxy.planning.documents import ATTRIBUTES
from proxy.planning.queries import Query
from proxy.tools.sheet.offers import Part, PartQuery, PartResult, is_named
from proxy.traffic.bom_columns import plain

ROUND = 4 * PARTS_MAX  # parts
ATTEMPTS_MAX = 4  # of a round that was not sent, such as beyond the rate limit
WAIT_SECONDS, WAIT_SECONDS_MAX = 2.0, 60.0  # before an attempt, where the service names no time; and at most
REFUSALS_MAX = 7  # of whole rounds in a row that are split to find the line that the service dislikes

T = TypeVar("T")
_decode = msgspec.json.Decoder(Part).decode

# Further requests would fail for the same reason.
_ENDING = (errors.QuotaExhausted, errors.CredentialsRefused, errors.TokenLimit, errors.StoreUnavailable)


class CostEstimate(NamedTuple):
    """What fetching would cost: distinct queries, those of them that are stored, parts if each finds one, and upstream
    requests. `left`: parts that the quota has left; None without a limit."""

    queries: int
    stored: int
    parts_if_one: int
    upstream_requests: int
    left: int | None = None


class BudgetExhausted(errors.BridgeError):
    """The next upstream request, which may cost `needed` parts, might exceed the budget of the run."""

    def __init__(self, message: str, needed: int) -> None:
        super().__init__(message)
        self.needed = needed


@dataclass
class PartSource:
    """Executes queries as one client of a gateway. `notes` are for the user, such as that nothing is kept."""

    gateway: Gateway
    client: Client
    notes: Sequence[str] = ()
    parts_spent: int = 0

    @property
    def upstream_requests(self) -> int:
        """Upstream requests sent so far, without requests for tokens."""
        samples = (sample for family in self.gateway.metrics.registry.collect() for sample in family.samples)
        return round(sum(each.value for each in samples if each.name == "v3bridge_upstream_requests_total"))

    async def estimate(self, queries: Sequence[PartQuery], *, anew: bool = False) -> CostEstimate:
        """Estimate the cost of queries, without any upstream request."""
        distinct = [*dict.fromkeys(queries)]
        missing: list[PartQuery] = []
        for some in _rounds(distinct):
            stored = await self._by_market(some, self.gateway.pipeline.quote)
            missing += [query for query, answer in stored.items() if anew or answer is None or answer.result is None]
        groups = (group for some in _rounds(missing) for group in _by_currency(some).values())
        requests = sum(1 for group in groups for _ in of_core.grouped([*group.values()], PARTS_MAX))
        status = self.gateway.quota_status(self.client)
        left = None if status.limit is None else max(0, status.limit - status.used)
        one = len({query._replace(limit=1) for query in missing})
        return CostEstimate(len(distinct), len(distinct) - len(missing), one, requests, left)

    async def unknown(self, distributors: Collection[str], specs: Collection[str]) -> tuple[list[str], list[str]]:
        """Say which distributors (names or ids) and which specs the service does not have. Costs nothing."""
        sellers: list[str] = []
        free, application = self.gateway.free, self.client.application
        if distributors:
            # Their own names: an offer has no other, such as that of v3.
            entries = (await free.listed("Seller", application, self.gateway.metadata().deadline)).by_uid.values()
            known = {entry.record.id: entry.record.name for entry in entries}
            for name in sorted(distributors):
                if not any(is_named(name, *each) for each in known.items()):
                    currency = ", and no currency of ISO 4217," if re.fullmatch("[A-Za-z]{3}(:.*)?", name) else ""
                    called = _with_nearest(name, name, known.values())
                    sellers.append(f"no distributor{currency} is called {called}")
        if not specs:
            return sellers, []
        spec_names: SpecNames = await free.listed(ATTRIBUTES, application, self.gateway.metadata().deadline)
        keys, sources = [entry.key for entry in spec_names.names.values()], spec_names.sources
        spelled = {name: spec_names.key("", name) for name in sorted(specs)}
        unknown = [name for name, key in spelled.items() if not (plain(name) in sources or key in sources)]
        return sellers, [f"no spec is called {_with_nearest(name, spelled[name], keys)}" for name in unknown]

    async def fetch(
        self,
        queries: Sequence[PartQuery],
        *,
        budget: int | None = None,
        anew: bool = False,
        stop: asyncio.Event | None = None,
    ) -> AsyncGenerator[PartResult, None]:
        """Yield a result for each distinct query, as they arrive; `anew`: whatever is stored. Raises BudgetExhausted
        before an upstream request that might exceed `budget` parts. Once `stop` is set, what was sent is waited for,
        because its parts are billed, and nothing more is sent."""
        stop = stop or asyncio.Event()
        missing: list[PartQuery] = []
        for some in _rounds([*dict.fromkeys(queries)]):
            for query, answer in (await self._by_market(some, self.gateway.pipeline.quote)).items():
                if answer is not None and answer.result is not None and not anew:
                    yield self._result(query, answer)
                else:
                    missing.append(query)
        rounds, repeats = deque(_rounds(missing)), _Repeats()
        limit = math.inf if budget is None else self.parts_spent + budget
        while rounds and not stop.is_set():
            answers = await self._resolve(rounds, limit, anew=anew)
            repeated = repeats.rounds(answers)
            again = {query for each in repeated for query in each}
            rounds.extendleft(reversed(repeated))
            for query, answer in answers.items():
                # What was not executed because the run ends has no result: the next run executes it.
                if query not in again and not isinstance(answer.error, _ENDING):
                    yield self._result(query, answer)
            if repeats.end is not None and (rounds or isinstance(repeats.end, _ENDING)):
                raise repeats.end
            if rounds:
                with suppress(TimeoutError):
                    await asyncio.wait_for(stop.wait(), repeats.seconds)

    async def _resolve(self, rounds: deque[list[PartQuery]], limit: float, *, anew: bool) -> dict[PartQuery, Answer]:
        """Resolve as many queries of the first round as the budget covers. Raises BudgetExhausted if that is none."""
        queries = rounds.popleft()
        costs = itertools.accumulate(query.limit for query in queries)
        number = sum(self.parts_spent + cost <= limit for cost in costs)
        if not number:
            left = counted(len(queries) + sum(map(len, rounds)), "query", "queries")
            unspent, needed = round(limit - self.parts_spent), queries[0].limit
            short = f"the next query may cost {counted(needed, 'part')}, and the budget has {unspent} left"
            raise BudgetExhausted(f"{short if unspent else 'the budget is spent'}; {left} left", needed)
        if number < len(queries):
            rounds.appendleft(queries[number:])
        # Twice: the first operation of an application is sent alone, before others.
        deadline = self.gateway.clock.monotonic() + 2 * self.gateway.upstream.total_seconds
        resolve = partial(self.gateway.pipeline.resolve, deadline=deadline, anew=anew)
        answers = await self._by_market(queries[:number], resolve)
        self.parts_spent += sum(answer.parts for answer in answers.values())
        return answers

    async def _by_market(
        self, queries: Sequence[PartQuery], look_up: Callable[[Client, list[Query]], Awaitable[Sequence[T]]]
    ) -> dict[PartQuery, T]:
        """Return what a look-up of queries returns, with those of each currency as a client who buys in it."""
        groups, client = _by_currency(queries), self.client
        clients = (client.in_market(client.application.context.country, currency) for currency in groups)
        asked = ([*group.values()] for group in groups.values())
        found = await asyncio.gather(*map(look_up, clients, asked))
        return dict(zip(itertools.chain(*groups.values()), itertools.chain(*found), strict=True))

    def _result(self, query: PartQuery, answer: Answer) -> PartResult:
        """Return the result of a query. The fields of a part are those of mappings/sheet; whole parts have all."""
        found, now = answer.result, self.gateway.clock.now()
        if found is None:
            return PartResult(query, (), 0, str(answer.error), now)
        country = self.client.application.context.country
        view = Projection(features=answer.features, view=VIEWS["sheet"])
        compiled, context = self.gateway.projections.part(view), MappingContext(country, query.currency)
        fetched = found.fetched or now
        try:
            mapped = (compiled.map(compiled.decode(body), context) for body in found.bodies[: query.limit])
            parts = tuple(_decode(msgspec.json.encode(part)) for part in mapped)
        # The schema allows invalid ids and times.
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError, OverflowError) as failure:
            message = f"the upstream sent a part that cannot be read: {failure}"
            return PartResult(query, (), found.hits, message, fetched)
        return PartResult(query, parts, found.hits, None, fetched)


@dataclass
class _Repeats:
    """What is repeated of a run, after so many `seconds`; and the error that ends it."""

    seconds: float = 0.0
    end: errors.BridgeError | None = None
    _failed: int = 0  # rounds in a row
    _refused: int = 0  # rounds in a row

    def rounds(self, answers: Mapping[PartQuery, Answer]) -> list[list[PartQuery]]:
        """Return the rounds in which some queries of a round with these answers are repeated: those that were not sent,
        unless the run ends, or no further attempt is made; and the halves of those that were refused."""
        unbilled = {query: answer.error for query, answer in answers.items() if not answer.parts}
        refused = [query for query, error in unbilled.items() if isinstance(error, errors.QueryRefused)]
        failures = {query: answer.error for query, answer in answers.items() if answer.error and query not in refused}
        is_all = len(failures) == len(answers)
        self._failed = self._failed + 1 if is_all else 0
        ending = next((error for error in failures.values() if isinstance(error, _ENDING)), None)
        unsent: list[PartQuery] = []
        self.seconds = 0.0
        for query, error in failures.items():
            # Another attempt may succeed where the query was not sent, or refused without a look at it.
            if isinstance(error, errors.ServerError):
                is_unsent = not (error.may_be_billed or isinstance(error, errors.QueryRefused))
            else:
                is_unsent = isinstance(error, errors.TooManyRequests | errors.QuotaExhausted)
            if is_unsent:
                unsent.append(query)
            # What others of the round have left of a quota is used at once.
            if is_unsent and not isinstance(error, _ENDING):
                pause = WAIT_SECONDS * self._failed if error.retry_after is None else error.retry_after
                self.seconds = max(self.seconds, pause)
        if self.seconds > WAIT_SECONDS_MAX or self._failed == ATTEMPTS_MAX or (is_all and ending):
            unsent, self.seconds = [], 0.0
        self.end = (ending or next(iter(failures.values()))) if is_all and not unsent else None
        self._refused = self._refused + 1 if len(refused) == len(answers) else 0
        repeated = [unsent]
        # The service refuses an operation as a whole where it dislikes one line.
        if len(refused) > 1 and self._refused <= REFUSALS_MAX:
            middle = len(refused) // 2
            repeated += [refused[:middle], refused[middle:]]
        return [queries for queries in repeated if queries]


def _with_nearest(name: str, key: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(key, known)
    return f"{name!r} (did you mean {', '.join(near)}?)" if near else repr(name)


def _rounds(queries: Sequence[PartQuery]) -> list[list[PartQuery]]:
    """Divide queries so that each round asks for `ROUND` parts at most."""
    rounds: list[list[PartQuery]] = []
    parts = ROUND
    for query in queries:
        parts += query.limit
        if parts > ROUND:
            rounds.append([])
            parts = query.limit
        rounds[-1].append(query)
    return rounds


def _by_currency(queries: Iterable[PartQuery]) -> dict[str, dict[PartQuery, Query]]:
    """Return by currency the query of the service for each of these."""
    groups: dict[str, dict[PartQuery, Query]] = {}
    for query in queries:
        maker = query.manufacturer or None
        sent = of_core.matching(0, query.limit, mpn=query.mpn, sku=query.sku, manufacturer=maker)
        groups.setdefault(query.currency, {})[query] = sent
    return groups
