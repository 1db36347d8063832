"""World of the core in tests: virtual time, the real store, and an upstream that bills what it is asked for."""

import asyncio
import dataclasses
import math
import random
import selectors
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast

import msgspec
from service.upstream import graphql_responses

from proxy import config, errors
from proxy.gateway.applications import Application, ChargedAccount, Client
from proxy.gateway.features import Features
from proxy.gateway.flights import Answer, ResponseMetadata
from proxy.gateway.pipeline import Pipeline
from proxy.gateway.process import ProcessState
from proxy.kit.clock import Clock
from proxy.metrics import Metrics
from proxy.model import EncodedOperation, MappingContext
from proxy.planning.documents import ProjectionCache
from proxy.planning.queries import Query
from proxy.store.store import Store
from proxy.upstream import classify, http_post
from proxy.upstream.sending import Send
from proxy.upstream.tokens import Credentials

START = 1_796_083_200.0 + 9 * 86_400  # 2026-12-10 00:00 UTC
SECONDS = 30.0  # that an operation may take
HOUR = 3_600.0
FIELDS = {"TECH_SPECS": "specs", "CAD_MODELS": "cad"}  # of features, which the upstream may refuse
REFUSED = "REFUSED"  # number that makes an operation invalid
ALL = ("CAD_MODELS", "DATASHEETS", "LEAD_TIME", "TECH_SPECS")


class LoopClock(Clock, selectors.DefaultSelector):
    """Clock of an event loop in virtual time, which begins at `start`, and its selector: time passes where nothing can
    run, and stands still while Redis works, whose reply is read when nothing else can run. So a run is the same every
    time."""

    def __init__(self) -> None:
        super().__init__()
        self.start, self._passed = START, 0.0
        self.redis = asyncio.Lock()  # of the command that Redis carries out

    def now(self) -> float:
        return self.start + self._passed

    def monotonic(self) -> float:
        return self._passed

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if self.redis.locked() and (timeout is None or timeout > 0):
            return super().select()
        if timeout is None:
            raise RuntimeError("everything waits, and nothing will happen")
        self._passed += max(0.0, timeout)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.clock = LoopClock()
        super().__init__(self.clock)
        self.time = self.clock.monotonic  # type: ignore[method-assign]


def virtual_clock() -> LoopClock:
    return cast(VirtualLoop, asyncio.get_running_loop()).clock


class Sent(NamedTuple):
    """Part that was asked for: when the operation was sent and returned it, inf where it did not, or not without
    errors; its scope and uid, what it was asked for by, and its place in that list. "" as uid: there is none."""

    sent: float
    returned: float
    scope: str
    uid: str
    key: str
    place: int


class Page(NamedTuple):
    """Part of a list that an operation asks for by a key, from its element `start` on."""

    key: str
    start: int
    uids: list[str]
    hits: int


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
    sent: list[Sent] = dataclasses.field(default_factory=list)
    used: Counter[str] = dataclasses.field(default_factory=Counter)  # parts that were returned, by client id
    operations: list[dict[str, Any]] = dataclasses.field(default_factory=list)

    async def send(self, operation: EncodedOperation, credentials: Credentials, seconds: float) -> Any:
        """Send an operation as the client of the service does."""
        request = msgspec.json.decode(operation.payload)
        self.operations.append(request)
        failure, is_late = self.failures.pop(0) if self.failures else None, self.seconds >= seconds
        body, pages = self._response(request, credentials)
        uids = [uid for page in pages for uid in page.uids]
        returned = sum(uid not in self.null for uid in uids)
        nothing = {"supParts": [None] * len(pages)} if "errors" in body else None  # which is no data
        is_returned = failure is None and not is_late and body.get("data") not in (None, nothing)
        client_id, scope = str(credentials.client_id), f"{credentials.client_id} {request['variables']['country']}"
        if is_returned or (failure[1] if failure else is_late or self.bills_refused):
            self.billed[client_id] += len(uids)
            day = datetime.fromtimestamp(virtual_clock().now(), UTC).date().isoformat()
            self.billed_in.update({(client_id, period): len(uids) for period in (day, day[:7], "lifetime")})
        now = virtual_clock().monotonic()
        for key, start, listed, _ in pages:
            is_whole = is_returned and not (self.faulty | self.null).intersection(listed)
            end = now + self.seconds if is_whole else math.inf
            self.sent += [Sent(now, end, scope, uid, key, start + n) for n, uid in enumerate(listed or [""])]
        await asyncio.sleep(min(self.seconds, seconds))
        if is_late:
            raise errors.UpstreamUnreachable("did not answer in time", may_be_billed=True)
        if failure:
            raise failure[0]
        self.used[client_id] += returned if is_returned else 0
        reply = http_post.HttpResponse(200, msgspec.json.encode(body), {})
        return graphql_responses.data(operation, reply, START)

    def _response(self, request: dict[str, Any], credentials: Credentials) -> tuple[dict[str, Any], list[Page]]:
        """Return the response, and the pages that are billed."""
        variables, name, document = request["variables"], request["operationName"], request["query"]
        queries = variables.get("queries") or [{"id": each} for each in variables.get("ids", ())] or [variables]
        kind = name if " slug" in document else f"{name} passed on"  # a selection of the client's own
        pages = [Page(_key(kind, query), query.get("start", 0), *self._page(query)) for query in queries]
        scope = f"{credentials.client_id} {variables['country']}"
        if any(REFUSED in page.key for page in pages):
            return {"errors": [{"message": "not valid"}]}, []
        if len(pages) >= self.complex_from:
            return {"errors": [{"message": "too complex", "extensions": {"code": classify.TOO_COMPLEX}}]}, pages
        refused = [field for feature, field in FIELDS.items() if feature in self.lacking and f" {field}" in document]
        fields = [field for field in FIELDS.values() if f" {field}" in document and field not in refused]
        full = [place for place, page in enumerate(pages) if page.uids]
        reported = [_error(f"{field} is not in your plan", name, place, field) for field in refused for place in full]
        if reported and not self.nullable:
            errors_ = reported if self.has_path else [{"message": "not in your plan"}]
            return {"data": None, "errors": errors_}, pages if self.has_path else []
        spoiled = [place for place, page in enumerate(pages) if (self.faulty | self.null).intersection(page.uids)]
        reported += [_error("no prices", name, place, "sellers") for place in spoiled]
        shown = {"fields": fields, "at": virtual_clock().now()}
        parts = [[None if uid in self.null else self._part(uid, scope) | shown for uid in page.uids] for page in pages]
        data: Any = [{"hits": page.hits, "parts": each} for page, each in zip(pages, parts, strict=True)]
        if name == "supParts":
            data = [each[0] if each else None for each in parts]
        elif name != "supMultiMatch":
            results = [{"part": part, "akaMpn": None, "description": "a part"} for part in parts[0]]
            data = {"hits": pages[0].hits, "results": results}
        return {"data": {name: data}} | ({"errors": reported} if reported else {}), pages

    def _page(self, query: dict[str, Any]) -> tuple[list[str], int]:
        """Return a page of a list, or the part of an id, and all hits."""
        if "id" in query:
            uid = query["id"].removeprefix("id of ")
            return [uid] if any(uid in uids for uids in self.lists.values()) else [], 1
        uids = self.lists.get(next((query[name] for name in _NUMBERS if query.get(name)), ""), [])
        if query.get("manufacturer") not in (None, "Maker"):
            uids = []
        return uids[query["start"] : query["start"] + query["limit"]], len(uids)

    def _part(self, uid: str, scope: str) -> dict[str, Any]:
        return {"v3uid": uid, "id": f"id of {uid}", "manufacturer": {"name": "Maker"}, "slug": scope}


_NUMBERS = ("mpn", "mpnOrSku", "q")


def _key(kind: str, query: dict[str, Any]) -> str:
    """Return what a query asks for, as one text."""
    return " ".join([kind, *(f"{name}={query[name]}" for name in (*_NUMBERS, "manufacturer", "id") if query.get(name))])


def _error(message: str, root: str, place: int, field: str) -> dict[str, Any]:
    return {"message": message, "path": [root, place, "parts", 0, field]}


@dataclasses.dataclass
class World:
    """A store, an upstream and processes with pipelines. `open` opens the store for another process."""

    projections: ProjectionCache
    upstream: Upstream
    clock: LoopClock
    open: Callable[[str], Awaitable[Store]]
    store: Any = None
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
        features = Features(self.projections, state.store, self.clock)
        limits: dict[str, Any] = {"seconds": SECONDS, "connections": connections}
        return Pipeline(state, send or self.upstream.send, features, address="http://upstream", **limits)

    def metadata(self) -> ResponseMetadata:
        """Return the metadata of a request whose time begins now."""
        return ResponseMetadata(0.0, self.clock.monotonic() + SECONDS)

    async def resolve(
        self, process: Pipeline, client: Client, queries: Iterable[Query], seconds: float = SECONDS
    ) -> list[Answer]:
        return await process.resolve(client, [*queries], self.clock.monotonic() + seconds)

    async def counted(self, client_id: str) -> int:
        """Return the parts of an application that are used, uncertain or reserved."""
        return sum(sum(row[2:]) for row in await self.store.usage([(config.hex_digest(client_id), "lifetime")]))


def uids(answer: Answer) -> list[str]:
    """Return the uids of an answer's parts. Raises its error."""
    if answer.result is None:
        assert answer.error is not None
        raise answer.error
    return [hit.uid for hit in answer.result.items]


def client(
    key: str = "key", limit: int | None = None, *, client_id: str = "erp", features: Any = ALL, **market: str
) -> Client:
    """Make a client; `limit` is that of its API key."""
    account, credentials = config.hex_digest(client_id), Credentials("app", client_id, None)
    context = MappingContext(market.get("country", "US"), market.get("currency", "USD"))
    chosen, is_known = frozenset(ALL if features is None else features), features is not None
    application = Application("app", account, credentials, context, chosen, is_known)
    charged = ChargedAccount(account, "app"), ChargedAccount(config.hex_digest(key), f"app/{key}", limit)
    return Client(application, charged)


def uid(number: int) -> str:
    """Return the uid of a part."""
    return f"{number:016x}"
