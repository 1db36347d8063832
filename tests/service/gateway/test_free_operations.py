"""Operations that cost no parts: one at a time for all that ask, kept for five minutes; and lists, which are refreshed
in the background, and kept after a failed refresh."""

import asyncio
import gc
import math
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from service.gateway.world import client

from proxy import errors, model
from proxy.gateway.free_operations import PAUSE_SECONDS, FreeOperations
from proxy.kit import shipped
from proxy.kit.clock import ManualClock
from proxy.mapping import loader
from proxy.model import EncodedOperation
from proxy.planning import documents
from proxy.planning.documents import Document, PartialData
from proxy.planning.listing import Listing
from proxy.upstream.tokens import Credentials

DAY = 86_400.0
SECONDS = 30.0  # that a caller has
ODD = "Odd"  # name of a maker whose id is none
APPLICATION = client().application
OTHER = client(client_id="other").application
COUNT = Document("supSearch", "query supSearch($q: String) { supSearch(q: $q) { hits } }", dict[str, Any])
LIST_DEFINITIONS = documents.ProjectionCache(loader.load(shipped("mappings"), "octopart")).list_definitions()

FREEZE = gc.freeze  # before all tests replace it


class _Upstream:
    """Responds with the makers that it has, or with more hits each time, or with an error; a gate holds responses
    back."""

    def __init__(self) -> None:
        self.names = ["Texas Instruments", "Yageo"]
        self.ids = ""  # what stands before the number of an id; anything spoils it
        self.padding = ""
        self.error: Exception | None = None
        self.failures = 0  # errors beside the data
        self.requests: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def send(self, operation: EncodedOperation, credentials: Credentials, seconds: float) -> Any:
        assert (seconds, operation.parts_max) == (SECONDS, 0)
        self.requests.append(str(credentials.client_id))
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        data: Any = SimpleNamespace(supManufacturers=[self._maker(n, name) for n, name in enumerate(self.names)])
        if operation.name == "supSearch":
            q = msgspec.json.decode(operation.payload)["variables"]["q"]
            body = {"data": {"supSearch": {"q": q, "hits": len(self.requests), "padding": self.padding}}}
            data = operation.decode(msgspec.json.encode(body)).data
        return PartialData(data, [model.GraphQLError("a field failed")] * self.failures) if self.failures else data

    def _maker(self, number: int, name: str) -> Any:
        id_ = "none" if name == ODD else f"{self.ids}{number}"
        return SimpleNamespace(id=id_, name=name, aliases=[], homepageUrl=None)


@pytest.fixture
def upstream() -> _Upstream:
    return _Upstream()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def free(upstream: _Upstream, clock: ManualClock) -> AsyncIterator[FreeOperations]:
    opened = FreeOperations(upstream.send, clock, SECONDS, LIST_DEFINITIONS, {})
    yield opened
    await opened.aclose()


async def makers(free: FreeOperations) -> Listing:
    listing: Listing = await free.listed("Brand", APPLICATION, math.inf)
    return listing


@pytest.fixture
def size(free: FreeOperations) -> Callable[[], Awaitable[int]]:
    """Returns the number of makers."""

    async def of() -> int:
        return (await makers(free)).size

    return of


async def hits(free: FreeOperations, q: str, application: Any = APPLICATION) -> int:
    data = await free.execute(application, COUNT.operation({"q": q}, 0), math.inf)
    data = data.data if isinstance(data, PartialData) else data
    assert data["supSearch"]["q"] == q
    return int(data["supSearch"]["hits"])


async def settled() -> None:
    """Wait until all background tasks have ended."""
    while others := [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]:
        await asyncio.gather(*others, return_exceptions=True)


Ask = Callable[..., Awaitable[Any]]


@pytest.fixture(params=["list", "operation"])
def ask(free: FreeOperations, clock: ManualClock, request: pytest.FixtureRequest) -> Ask:
    """Ask for a list, or for what an operation returns, for a request that started some seconds ago."""

    def of(ago: float = 0.0) -> Awaitable[Any]:
        deadline = clock.monotonic() + SECONDS - ago
        if request.param == "list":
            return free.listed("Brand", APPLICATION, deadline)
        return free.execute(APPLICATION, COUNT.operation({"q": "a"}, 0), deadline)

    return of


async def test_callers_at_the_same_time_and_later_share_one_response(ask: Ask, upstream: _Upstream) -> None:
    first, *others = await asyncio.gather(*(ask() for _ in range(20)), return_exceptions=True)
    assert [*others, await ask()] == [first] * 20
    assert len(upstream.requests) == 1


async def test_error_is_that_of_all_who_wait_and_the_next_caller_retries(ask: Ask, upstream: _Upstream) -> None:
    upstream.error = errors.UpstreamUnreachable("gone")
    outcomes = await asyncio.gather(*(ask() for _ in range(3)), return_exceptions=True)
    assert [str(outcome) for outcome in outcomes] == ["gone"] * 3
    assert len(upstream.requests) == 1
    upstream.error = None
    assert await ask()


async def test_callers_that_leave_or_have_no_time_do_not_end_the_fetch(ask: Ask, upstream: _Upstream) -> None:
    upstream.gate.clear()
    leaving, staying = asyncio.ensure_future(ask()), asyncio.ensure_future(ask())
    for ago in (SECONDS - 0.01, SECONDS, SECONDS + 5):
        with pytest.raises(errors.DeadlineExceeded, match="time limit of the request has passed") as caught:
            await ask(ago)
        assert not caught.value.may_be_billed
    leaving.cancel()
    upstream.gate.set()
    assert await staying == await ask(SECONDS + 5)
    assert len(upstream.requests) == 1


async def test_data_is_kept_for_five_minutes(free: FreeOperations, clock: ManualClock) -> None:
    assert [await hits(free, "a"), await hits(free, "b")] == [1, 2]
    clock.advance(299)
    assert await hits(free, "a") == 1
    clock.advance(2)
    assert await hits(free, "a") == 3


async def test_each_application_has_its_own(free: FreeOperations, upstream: _Upstream) -> None:
    assert [await hits(free, "a"), await hits(free, "a", OTHER)] == [1, 2]
    assert upstream.requests == ["erp", "other"]


async def test_what_has_errors_is_not_kept(free: FreeOperations, upstream: _Upstream) -> None:
    upstream.failures = 1
    assert [await hits(free, "a"), await hits(free, "a")] == [1, 2]


async def test_what_is_kept_is_bounded(free: FreeOperations, upstream: _Upstream) -> None:
    upstream.padding = "x" * 200_000
    for number in range(40):
        await hits(free, str(number))
    assert await hits(free, "39") == 40
    assert await hits(free, "0") == 41
    upstream.padding = "x" * 300_000
    assert [await hits(free, "large"), await hits(free, "large")] == [42, 43]


async def test_old_list_is_refreshed_in_the_background(size: Any, upstream: _Upstream, clock: ManualClock) -> None:
    await size()
    upstream.names.append("Vishay")
    clock.advance(DAY - 1)
    assert await size() == 2
    assert len(upstream.requests) == 1
    clock.advance(1)
    upstream.gate.clear()
    assert [await size() for _ in range(5)] == [2] * 5  # no caller waits for the refresh
    upstream.gate.set()
    await settled()
    assert await size() == 3
    assert len(upstream.requests) == 2


@pytest.mark.parametrize(
    "error",
    [
        errors.UpstreamUnreachable("gone"),
        errors.CredentialsRefused("no"),
        errors.QueryRefused("no"),
        RuntimeError("unexpected"),
        None,  # it cannot be translated
    ],
)
async def test_failed_refresh_keeps_the_list_and_is_retried_after_a_back_off(
    size: Any, upstream: _Upstream, clock: ManualClock, error: Exception | None
) -> None:
    await size()
    clock.advance(DAY)
    upstream.error, upstream.ids = error, "" if error else "x"
    for _ in range(5):
        assert await size() == 2
        await settled()
    assert len(upstream.requests) == 2
    upstream.error, upstream.ids, upstream.names = None, "", ["Vishay"]
    clock.advance(PAUSE_SECONDS)
    assert await size() == 2
    await settled()
    assert (await size(), len(upstream.requests)) == (1, 3)


@pytest.mark.parametrize("names, failures", [([], 0), (["Texas Instruments", "Yageo", "Vishay"], 1)])
async def test_possibly_incomplete_list_does_not_replace_a_good_one(
    size: Any, upstream: _Upstream, clock: ManualClock, names: list[str], failures: int
) -> None:
    upstream.names = ["Texas Instruments", "Yageo", "Rohm"]
    await size()
    upstream.names, upstream.failures = names, failures
    clock.advance(DAY)
    for requests in (2, 3):
        assert await size() == 3
        await settled()
        assert (await size(), len(upstream.requests)) == (3, requests)
        clock.advance(PAUSE_SECONDS)
    upstream.names, upstream.failures = ["Vishay", "Rohm"], 0
    await size()
    await settled()
    assert await size() == 2


@pytest.mark.parametrize("names, failures", [([], 0), (["Vishay"], 1)])
async def test_possibly_incomplete_first_list_is_used_and_refreshed_soon(
    size: Any, upstream: _Upstream, clock: ManualClock, names: list[str], failures: int
) -> None:
    upstream.names, upstream.failures = names, failures
    assert await size() == len(names)
    upstream.names, upstream.failures = ["Vishay", "Yageo"], 0
    assert await size() == len(names)
    clock.advance(PAUSE_SECONDS)
    await size()
    await settled()
    assert await size() == 2
    clock.advance(DAY - 1)
    assert (await size(), len(upstream.requests)) == (2, 2)


async def test_untranslatable_record_is_left_out(free: FreeOperations, upstream: _Upstream) -> None:
    upstream.names = ["Yageo", ODD, "Vishay"]
    listing = await makers(free)
    assert (listing.size, listing.skipped) == (2, 1)


async def test_untranslatable_first_list_is_an_upstream_error(size: Any, upstream: _Upstream) -> None:
    upstream.ids = "x"
    with pytest.raises(errors.UpstreamUnreadable, match="cannot be translated"):
        await size()


async def test_large_list_does_not_block_the_event_loop(size: Any, upstream: _Upstream) -> None:
    upstream.names = [f"Maker {n} of parts" for n in range(30_000)]
    building = asyncio.create_task(size())
    turns = 0  # of others, while the list is built: built in the loop itself it would leave them two or three
    while not building.done():
        await asyncio.sleep(0.001)
        turns += 1
    assert await building == 30_000
    assert turns > 5


async def test_close_cancels_a_running_refresh(
    free: FreeOperations, size: Any, upstream: _Upstream, clock: ManualClock
) -> None:
    await size()
    clock.advance(DAY)
    upstream.gate.clear()
    await size()
    await free.aclose()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_list_is_exempt_from_garbage_collection(free: FreeOperations, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "freeze", FREEZE)  # as it is outside of the tests
    gc.unfreeze()
    try:
        listing = await makers(free)
        assert gc.get_freeze_count() > 0
        assert not any(tracked is listing for tracked in gc.get_objects())
    finally:
        gc.unfreeze()


async def test_a_replaced_list_is_freed_without_garbage_collection(free: FreeOperations, clock: ManualClock) -> None:
    former = weakref.ref(await makers(free))
    gc.disable()
    try:
        clock.advance(DAY)
        await makers(free)
        await settled()
        assert former() is None
    finally:
        gc.enable()
        gc.unfreeze()
