"""World of the core in tests: virtual time, the real store, and an upstream that bills what it is asked for."""

import asyncio
import contextlib
import dataclasses
import random
import selectors
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from unittest import mock

import msgspec
import redis.asyncio

from proxy import errors
from proxy.gateway.applications import Application, ChargedAccount, Client, digest
from proxy.gateway.batches import Send
from proxy.gateway.features import Features
from proxy.gateway.pipeline import Pipeline
from proxy.gateway.process import ProcessState
from proxy.gateway.results import Answer
from proxy.metrics import Metrics
from proxy.model import EncodedOperation, MappingContext
from proxy.planning.projection_cache import ProjectionCache
from proxy.planning.queries import Query
from proxy.store.redis import RedisStore
from proxy.store.sqlite import SqliteStore
from proxy.store.store import Store
from proxy.upstream import classify, http_post
from proxy.upstream.identity import Credentials

START = 1_796_083_200.0 + 9 * 86_400  # 2026-12-10 00:00 UTC
SECONDS = 30.0  # that an operation may take
HOUR = 3_600.0
FIELDS = {"TECH_SPECS": "specs", "CAD_MODELS": "cad"}  # of features, which the upstream may refuse
REFUSED = "REFUSED"  # number that makes an operation invalid
ALL = ("CAD_MODELS", "DATASHEETS", "LEAD_TIME", "TECH_SPECS")
CACHE_BYTES = 50_000_000
STORE_SECONDS = 60.0  # that an operation of a store may take in real time


class _Selector(selectors.DefaultSelector):
    """Selector that lets time pass instead of waiting, but waits for operations of stores, while which none passes."""

    now = 0.0
    operations = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout <= 0:
            return []  # what can run does so first, however fast the store is
        ready = super().select(STORE_SECONDS) if self.operations else []
        if not ready and timeout is not None and not self.operations:
            self.now += timeout
        elif not ready:
            raise RuntimeError("everything waits, and nothing will happen")
        return ready


class _Loop(asyncio.SelectorEventLoop):
    """Event loop in virtual time, in which a run is the same every time."""

    def __init__(self) -> None:
        self._time = _Selector()
        self.turn = asyncio.Lock()  # of commands to Redis
        super().__init__(self._time)

    def time(self) -> float:
        return self._time.now

    @contextlib.contextmanager
    def operating(self) -> Iterator[None]:
        """Wait in real time for what a store does."""
        self._time.operations += 1
        try:
            yield
        finally:
            self._time.operations -= 1


class _Redis(redis.asyncio.Redis):
    """Client whose commands are carried out in the order in which they are given, on whatever connections."""

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        async with _loop().turn:
            return await super().execute_command(*args, **options)  # type: ignore[no-untyped-call]


class LoopClock:
    """Clock of the event loop, which begins at `start`."""

    def __init__(self, start: float) -> None:
        self._start = start

    def now(self) -> float:
        return self._start + self.monotonic()

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


@dataclasses.dataclass
class Upstream:
    """GraphQL service: lists of parts by number, which it returns. It bills an operation when it comes. `lacking` are
    features that the tier lacks: their fields are null with an error, or, unless `nullable`, there is no data.
    `failures` are errors of the next operations, each with whether the parts are billed; None for none."""

    lists: dict[str, list[str]]
    lacking: frozenset[str] = frozenset()
    nullable: bool = True
    has_path: bool = True  # where there is no data: whether the errors name the fields
    faulty: frozenset[str] = frozenset()  # uids of parts that come with an error about another field
    null: frozenset[str] = frozenset()  # uids of parts that are null, with an error
    bills_refused: bool = True
    seconds: float = 0.05
    complex_from: int = 1_000  # queries of an operation that are too complex
    failures: list[tuple[errors.BridgeError, bool] | None] = dataclasses.field(default_factory=list)
    billed: Counter[str] = dataclasses.field(default_factory=Counter)  # by client id
    billed_in: Counter[tuple[str, str]] = dataclasses.field(default_factory=Counter)  # by client id and period
    returned: list["Returned"] = dataclasses.field(default_factory=list)
    used: Counter[str] = dataclasses.field(default_factory=Counter)  # parts that were returned, by client id
    operations: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    makers: dict[str, str] = dataclasses.field(default_factory=dict)
    clock: "LoopClock | None" = None
    shows: bool = False  # whether a part has when and with which fields it was fetched

    async def send(self, operation: EncodedOperation, credentials: Credentials, seconds: float) -> Any:
        """Send an operation as the client of the service does."""
        request = msgspec.json.decode(operation.payload)
        self.operations.append(request)
        failure = self.failures.pop(0) if self.failures else None
        sent, is_late = asyncio.get_running_loop().time(), self.seconds >= seconds
        body, found = self._response(request, credentials)
        shown = [each for each in found if each[0] not in self.null]
        spoiled = {key for uid, key, _ in found if uid in self.faulty | self.null}
        is_returned = failure is None and not is_late and body.get("data") is not None
        scope, client_id = f"{credentials.client_id} {request['variables']['country']}", str(credentials.client_id)
        if is_returned or (failure[1] if failure else is_late or self.bills_refused):
            self.billed[client_id] += len(found)
            day = datetime.fromtimestamp(self.now(), UTC).date().isoformat()
            self.billed_in.update({(client_id, period): len(found) for period in (day, day[:7], "lifetime")})
        await asyncio.sleep(min(self.seconds, seconds))
        if is_returned:
            now = asyncio.get_running_loop().time()
            self.returned += [Returned(sent, now, scope, *each) for each in shown if each[1] not in spoiled]
            self.used[client_id] += len(shown)
        if is_late:
            raise errors.UpstreamUnreachable("did not answer in time", may_be_billed=True)
        if failure:
            raise failure[0]
        reply = http_post.HttpResponse(200, msgspec.json.encode(body))
        return classify.data(reply, classify.decode(operation, reply), START)

    def _response(
        self, request: dict[str, Any], credentials: Credentials
    ) -> tuple[dict[str, Any], list[tuple[str, str, int]]]:
        """Return the response, and the uid of each part with what it was asked for by and its place in that list."""
        variables, name = request["variables"], request["operationName"]
        pages: list[tuple[list[str], int]]
        if name == "supMultiMatch":
            pages = [self._page(query) for query in variables["queries"]]
        elif name == "supParts":
            known = {uid for uids in self.lists.values() for uid in uids}
            asked = [text.removeprefix("id of ") for text in variables["ids"]]
            pages = [([uid] if uid in known else [], 1) for uid in asked]
        else:
            pages = [self._page({**variables, "mpn": variables["q"]})]
        kind = name if " slug" in request["query"] else f"{name} passed on"  # a selection of the client's own
        keys = [f"{kind} {asked}" for asked in _asked(variables)]
        starts = [query.get("start", 0) for query in variables.get("queries") or [variables] * len(pages)]
        uids = [
            (uid, key, start + place)
            for key, start, (page, _) in zip(keys, starts, pages, strict=True)
            for place, uid in enumerate(page)
        ]
        if any(REFUSED in key for key in keys):
            return {"errors": [{"message": "not valid"}]}, []
        if len(pages) >= self.complex_from:
            return {"errors": [{"message": "too complex", "extensions": {"code": classify.TOO_COMPLEX}}]}, uids
        scope = f"{credentials.client_id} {variables['country']}"
        query = request["query"]
        refused = [field for feature, field in FIELDS.items() if feature in self.lacking and f" {field}" in query]
        reported = [
            {"message": f"{field} is not in your plan", "path": [name, place, "parts", 0, field]}
            for field in refused
            for place, (page, _) in enumerate(pages)
            if page
        ]
        if reported and not self.nullable and not self.has_path:
            return {"errors": [{"message": "not in your plan"}]}, []
        if reported and not self.nullable:
            return {"data": None, "errors": reported}, uids
        reported += [
            {"message": "no prices", "path": [name, place, "parts", 0, "sellers"]}
            for place, (page, _) in enumerate(pages)
            if (self.faulty | self.null).intersection(page)
        ]
        shown: dict[str, list[Any]] = {
            "fields": [each for each in FIELDS.values() if f" {each}" in query and each not in refused]
        }
        shown["at"] = [self.now()]
        parts = [[None if uid in self.null else self._part(uid, scope) for uid in page] for page, _ in pages]
        if self.shows:
            parts = [[each and each | shown for each in page] for page in parts]
        data: Any = [{"hits": hits, "parts": page} for page, (_, hits) in zip(parts, pages, strict=True)]
        if name == "supParts":
            data = [page[0] if page else None for page in parts]
        elif name != "supMultiMatch":
            found = [{"part": part, "akaMpn": None, "description": "a part"} for part in parts[0]]
            data = {"hits": pages[0][1], "results": found}
        return {"data": {name: data}} | ({"errors": reported} if reported else {}), uids

    def _page(self, query: dict[str, Any]) -> tuple[list[str], int]:
        uids = self.lists.get(query.get("mpn") or query.get("mpnOrSku") or query.get("sku") or "", [])
        if maker := query.get("manufacturer"):
            uids = [uid for uid in uids if self.makers.get(uid, "Maker") == maker]
        return uids[query["start"] : query["start"] + query["limit"]], len(uids)

    def _part(self, uid: str, scope: str) -> dict[str, Any]:
        maker = {"name": self.makers.get(uid, "Maker")}
        return {"v3uid": uid, "id": f"id of {uid}", "manufacturer": maker, "slug": scope}

    def now(self) -> float:
        return self.clock.now() if self.clock else START


class Returned(NamedTuple):
    """Part that was returned without errors: when the operation was sent and returned, its scope and uid, what it was
    asked for by, and its place in that list."""

    sent: float
    returned: float
    scope: str
    uid: str
    key: str
    place: int


class BrokenStore:
    """Store whose operations that are named in `broken` fail, the next one after it was done if `loses` is set. It is
    that of one process: after its death no operation returns. `fault` says how the next operation fails: it `fails`,
    `loses` its reply, or the process `dies` before or `dies after` it; "" where it does not."""

    def __init__(self, store: Any) -> None:
        self.store = store
        self.broken: set[str] = set()
        self.loses = self.is_dead = self.is_over = False
        self.fault: Callable[[str, tuple[Any, ...]], Awaitable[str]] = lambda name, arguments: asyncio.sleep(0, "")
        self.after: Callable[[str, tuple[Any, ...], Any], Awaitable[None]] = lambda *call: asyncio.sleep(0)

    def __getattr__(self, name: str) -> Any:
        async def call(*args: Any, **kwargs: Any) -> Any:
            fault = await self.fault(name, args)
            if name in self.broken:
                fault, self.loses = "loses" if self.loses else "fails", False
            self.is_dead |= fault == "dies"
            if not self.is_over:
                await self.alive()
            elif self.is_dead:
                return None  # so that what the end of the test cancels comes to its own
            reply = None
            if fault != "fails":
                with operating():
                    reply = await getattr(self.store, name)(*args, **kwargs)
                await self.after(name, args, reply)
                self.is_dead |= fault == "dies after"
                await self.alive()
            if fault in ("fails", "loses"):
                raise errors.StoreUnavailable("broken")
            return reply

        return call

    async def alive(self) -> None:
        """Return only if the process lives."""
        if self.is_dead:
            await asyncio.Future()


@dataclasses.dataclass
class World:
    """A store, an upstream and processes with pipelines. `open` opens the store for another process."""

    projections: ProjectionCache
    upstream: Upstream
    clock: LoopClock
    store: Any
    open: Callable[[str], Awaitable[Any]]
    seed: int = 0

    def state(self, store: Any = None) -> ProcessState:
        """Return the state of a new process."""
        self.seed += 1
        return ProcessState(store or self.store, self.clock, random.Random(self.seed), Metrics(self.clock))

    def process(
        self, store: Any = None, connections: int = 10, state: ProcessState | None = None, send: Send | None = None
    ) -> Pipeline:
        """Start a process, or another configuration of one."""
        state = state or self.state(store)
        return Pipeline(
            state,
            send or self.upstream.send,
            Features(self.projections, state.store, self.clock),
            address="http://upstream",
            seconds=SECONDS,
            connections=connections,
        )

    async def resolve(
        self, process: Pipeline, client: Client, queries: Iterable[Query], seconds: float = SECONDS
    ) -> list[Answer]:
        return await process.resolve(client, [*queries], self.clock.monotonic() + seconds)

    async def counted(self, client_id: str) -> int:
        """Return the parts of an application that are used, uncertain or reserved."""
        rows = await self.store.usage()
        own = [row for row in rows if (row.account, row.period) == (digest(client_id), "lifetime")]
        return sum(row.used + row.uncertain + row.reserved for row in own)


def _asked(variables: dict[str, Any]) -> list[str]:
    """Return what an operation asks for, each as one text."""
    names = ("mpn", "mpnOrSku", "sku", "q", "manufacturer")
    queries = variables.get("queries") or [{"mpn": each} for each in variables.get("ids", ())] or [variables]
    return [" ".join(f"{name}={query[name]}" for name in names if query.get(name)) for query in queries]


def uids(answer: Answer) -> list[str]:
    """Return the uids of an answer's parts. Raises its error."""
    if answer.result is None:
        assert answer.error is not None
        raise answer.error
    return [hit.uid for hit in answer.result.items]


def client(
    key: str = "key",
    limit: int | None = None,
    *,
    client_id: str = "erp",
    features: Iterable[str] | None = ALL,
    **market: str,
) -> Client:
    """Make a client; `limit` is that of its API key."""
    chosen = None if features is None else frozenset(features)
    credentials = Credentials("app", client_id, None)
    context = MappingContext(market.get("country", "US"), market.get("currency", "USD"))
    application = Application(credentials, context, chosen)
    charged = ChargedAccount(application.account, "app"), ChargedAccount(digest(key), f"app/{key}", limit)
    return Client(application, charged)


Main = Callable[[World], Coroutine[Any, Any, None]]


class Runs(Protocol):
    """Runs a test, from `start` on, with the store in a file, in the Redis at an address, or in memory ("")."""

    def __call__(self, upstream: Upstream, main: Main, start: float = START, address: str = "") -> None: ...


def uid(number: int) -> str:
    """Return the uid of a part."""
    return f"{number:016x}"


def operating() -> contextlib.AbstractContextManager[None]:
    return _loop().operating()


def _loop() -> _Loop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, _Loop)
    return loop


def run(main: Main, projections: ProjectionCache, upstream: Upstream, start: float, address: str) -> None:
    """Run a test in virtual time."""

    async def within() -> None:
        clock = upstream.clock = LoopClock(start)
        opened: list[Store] = []
        broken: list[BrokenStore] = []

        async def open_(worker: str) -> BrokenStore:
            with operating():
                if address.startswith("unix:"):
                    opened.append(await RedisStore.open(address, clock, worker, CACHE_BYTES, clock.now))
                elif address or not opened:
                    path = Path(address) if address else None
                    opened.append(await SqliteStore.open(path, clock, worker, CACHE_BYTES))
            broken.append(BrokenStore(opened[-1]))
            return broken[-1]

        try:
            await main(World(projections, upstream, clock, await open_("observer"), open_))
        finally:
            for each in broken:
                each.is_over = True
            for store in opened:
                with operating():
                    await store.aclose()

    with mock.patch("redis.asyncio.Redis", _Redis), asyncio.Runner(loop_factory=_Loop) as runner:
        runner.run(within())
