"""Tests of the lists: fetched once, refreshed in the background, and kept after a failed refresh."""

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from proxy import config, errors, model
from proxy.gateway import free_operations
from proxy.gateway.applications import Application
from proxy.kit import clock as clocks
from proxy.kit import shipped
from proxy.mapping import loader
from proxy.planning.documents import PartialData, ProjectionCache
from proxy.planning.listing import Listing
from proxy.upstream import identity

DAY = 86_400.0
WHOLE = 30.0  # seconds that a caller has
ODD = "Odd"  # name of a maker whose id is none
WHO = identity.Credentials("demo", config.ClientId("id"), config.Secret("secret"))
APPLICATION = Application(WHO, model.MappingContext("US", "USD"))
LIST_DEFINITIONS = ProjectionCache(loader.load(shipped.path("mappings"), "octopart")).list_definitions()

FREEZE = gc.freeze  # before all tests replace it


class _Upstream:
    """Responds with the makers that it has, or with an error; a gate holds responses back."""

    def __init__(self, *names: str) -> None:
        self.names = list(names)
        self.error: Exception | None = None
        self.ids = ""  # what stands before the number of an id; anything spoils it
        self.requests: list[str] = []
        self.failures = 0  # errors beside the data
        self.gate = asyncio.Event()
        self.gate.set()

    async def send(self, operation: Any, credentials: identity.Credentials, seconds: float) -> Any:
        assert (credentials, seconds) == (WHO, WHOLE)
        assert operation.parts_max == 0
        self.requests.append(operation.name)
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        ids = ["none" if name == ODD else f"{self.ids}{n}" for n, name in enumerate(self.names)]
        data = SimpleNamespace(supManufacturers=[maker(id_, name) for id_, name in zip(ids, self.names, strict=True)])
        return PartialData(data, [model.GraphQLError("a field failed")] * self.failures) if self.failures else data


def maker(id_: str, name: str) -> Any:
    return SimpleNamespace(id=id_, name=name, aliases=[], homepageUrl=None)


class _Lists(free_operations.FreeOperations):
    """The lists of an upstream, with a clock that the test turns."""

    def __init__(self, upstream: _Upstream) -> None:
        self.clock = clocks.ManualClock()
        super().__init__(upstream.send, self.clock, WHOLE, LIST_DEFINITIONS, {})

    async def makers(self, ago: float = 0.0) -> Listing:
        """Return the manufacturers for a request that started some seconds ago."""
        listing: Listing = await self.listed("Brand", APPLICATION, self.clock.monotonic() + WHOLE - ago)
        return listing

    async def size(self, ago: float = 0.0) -> int:
        return len(await self.makers(ago))


@pytest.fixture
def upstream() -> _Upstream:
    return _Upstream("Texas Instruments", "Yageo")


@pytest.fixture
async def lists(upstream: _Upstream) -> AsyncIterator[_Lists]:
    opened = _Lists(upstream)
    yield opened
    await opened.aclose()


async def settled() -> None:
    """Wait until all background tasks have ended."""
    while others := [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]:
        await asyncio.gather(*others, return_exceptions=True)


async def test_list_is_fetched_once_for_concurrent_callers(lists: _Lists, upstream: _Upstream) -> None:
    assert await asyncio.gather(*(lists.size() for _ in range(20))) == [2] * 20
    assert await lists.size() == 2
    assert upstream.requests == ["supManufacturers"]


async def test_old_list_is_refreshed_in_the_background(lists: _Lists, upstream: _Upstream) -> None:
    await lists.size()
    upstream.names.append("Vishay")
    lists.clock.advance(DAY - 1)
    assert await lists.size() == 2
    assert len(upstream.requests) == 1
    lists.clock.advance(1)
    upstream.gate.clear()
    assert [await lists.size() for _ in range(5)] == [2] * 5  # no caller waits for the refresh
    upstream.gate.set()
    await settled()
    assert await lists.size() == 3
    assert len(upstream.requests) == 2


@pytest.mark.parametrize(
    "error", [errors.UpstreamUnreachable("gone"), errors.CredentialsRefused("no"), errors.QueryRefused("no")]
)
async def test_failed_refresh_keeps_the_list_and_is_retried_after_a_back_off(
    lists: _Lists, upstream: _Upstream, error: Exception
) -> None:
    await lists.size()
    lists.clock.advance(DAY)
    upstream.error = error
    for _ in range(5):
        assert await lists.size() == 2
        await settled()
    assert len(upstream.requests) == 2
    upstream.error, upstream.names = None, ["Vishay"]
    lists.clock.advance(free_operations.PAUSE_SECONDS)
    assert await lists.size() == 2
    await settled()
    assert (await lists.size(), len(upstream.requests)) == (1, 3)


@pytest.mark.parametrize("names, failures", [([], 0), (["Texas Instruments", "Yageo", "Vishay"], 1)])
async def test_possibly_incomplete_list_does_not_replace_a_good_one(
    lists: _Lists, upstream: _Upstream, names: list[str], failures: int
) -> None:
    upstream.names = ["Texas Instruments", "Yageo", "Rohm"]
    await lists.size()
    upstream.names, upstream.failures = names, failures
    lists.clock.advance(DAY)
    for requests in (2, 3):
        assert await lists.size() == 3
        await settled()
        assert (await lists.size(), len(upstream.requests)) == (3, requests)
        lists.clock.advance(free_operations.PAUSE_SECONDS)
    upstream.names, upstream.failures = ["Vishay", "Rohm"], 0
    await lists.size()
    await settled()
    assert await lists.size() == 2


@pytest.mark.parametrize("names, failures", [([], 0), (["Vishay"], 1)])
async def test_possibly_incomplete_first_list_is_used_and_refreshed_soon(
    lists: _Lists, upstream: _Upstream, names: list[str], failures: int
) -> None:
    upstream.names, upstream.failures = names, failures
    assert await lists.size() == len(names)
    upstream.names, upstream.failures = ["Vishay", "Yageo"], 0
    assert await lists.size() == len(names)
    lists.clock.advance(free_operations.PAUSE_SECONDS)
    await lists.size()
    await settled()
    assert await lists.size() == 2
    lists.clock.advance(DAY - 1)
    assert (await lists.size(), len(upstream.requests)) == (2, 2)


async def test_untranslatable_list_does_not_replace_a_good_one(lists: _Lists, upstream: _Upstream) -> None:
    await lists.size()
    lists.clock.advance(DAY)
    upstream.ids = "x"
    for _ in range(3):
        assert await lists.size() == 2
        await settled()
    assert len(upstream.requests) == 2


async def test_untranslatable_record_is_left_out(lists: _Lists, upstream: _Upstream) -> None:
    upstream.names = ["Yageo", ODD, "Vishay"]
    listing = await lists.makers()
    assert (len(listing), listing.skipped) == (2, 1)


async def test_unexpected_refresh_error_keeps_the_list(lists: _Lists, upstream: _Upstream) -> None:
    await lists.size()
    lists.clock.advance(DAY)
    upstream.error = RuntimeError("unexpected")
    for _ in range(3):
        assert await lists.size() == 2
        await settled()
    assert len(upstream.requests) == 2


async def test_missing_list_raises_the_error_and_the_next_caller_retries(lists: _Lists, upstream: _Upstream) -> None:
    upstream.error = errors.UpstreamUnreachable("gone")
    outcomes = await asyncio.gather(*(lists.size() for _ in range(3)), return_exceptions=True)
    assert [str(outcome) for outcome in outcomes] == ["gone"] * 3
    assert len(upstream.requests) == 1
    upstream.error = None
    assert await lists.size() == 2


async def test_untranslatable_first_list_is_an_upstream_error(lists: _Lists, upstream: _Upstream) -> None:
    upstream.ids = "x"
    with pytest.raises(errors.UpstreamUnreadable, match="cannot be translated"):
        await lists.size()


async def test_cancelled_caller_does_not_cancel_the_fetch(lists: _Lists, upstream: _Upstream) -> None:
    upstream.gate.clear()
    first = asyncio.create_task(lists.size())
    second = asyncio.create_task(lists.size())
    await asyncio.sleep(0)
    first.cancel()
    upstream.gate.set()
    assert await second == 2
    assert len(upstream.requests) == 1


async def test_caller_waits_within_its_time_limit_and_the_fetch_continues(lists: _Lists, upstream: _Upstream) -> None:
    upstream.gate.clear()
    others = asyncio.create_task(lists.size())
    for ago in (WHOLE - 0.01, WHOLE, WHOLE + 5):
        with pytest.raises(errors.DeadlineExceeded, match="time limit of the request has passed") as caught:
            await lists.size(ago)
        assert not caught.value.may_be_billed
    upstream.gate.set()
    assert await others == 2
    assert await lists.size(WHOLE + 5) == 2
    assert len(upstream.requests) == 1


async def test_large_list_does_not_block_the_event_loop(lists: _Lists, upstream: _Upstream) -> None:
    upstream.names = [f"Maker {n} of parts" for n in range(30_000)]
    building = asyncio.create_task(lists.size())
    turns = 0  # of others, while the list is built: built in the loop itself it would leave them two or three
    while not building.done():
        await asyncio.sleep(0.001)
        turns += 1
    assert await building == 30_000
    assert turns > 5


async def test_close_cancels_a_running_refresh(lists: _Lists, upstream: _Upstream) -> None:
    await lists.size()
    lists.clock.advance(DAY)
    upstream.gate.clear()
    await lists.size()
    await lists.aclose()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_list_is_exempt_from_garbage_collection(lists: _Lists, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "freeze", FREEZE)  # as it is outside of the tests
    gc.unfreeze()
    try:
        await lists.size()
        listing = await lists.makers()
        assert gc.get_freeze_count() > 0
        assert not any(tracked is listing for tracked in gc.get_objects())
    finally:
        gc.unfreeze()


async def test_a_replaced_list_is_freed_without_garbage_collection(lists: _Lists, upstream: _Upstream) -> None:
    await lists.size()
    former = weakref.ref(await lists.makers())
    gc.disable()
    try:
        lists.clock.advance(DAY)
        await lists.size()
        await settled()
        assert former() is None
    finally:
        gc.enable()
        gc.unfreeze()
