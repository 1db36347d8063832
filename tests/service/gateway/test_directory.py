"""Tests of the directory lists: fetched once, refreshed in the background, and kept after a failed refresh."""

import asyncio
import gc
import weakref
from types import SimpleNamespace
from typing import Any

import pytest

from proxy import config, errors, model
from proxy.gateway import directory
from proxy.kit import clock as clocks
from proxy.kit import garbage, shipped
from proxy.mapping import loader
from proxy.planning import projection_cache
from proxy.upstream.auth import identity

DAY = 86_400.0
WHOLE = 30.0  # seconds that a caller has
WHO = identity.Credentials("demo", config.ClientId("id"), config.Secret("secret"))
LIST_DEFINITIONS = projection_cache.ProjectionCache(
    loader.load(shipped.path("mappings"), "octopart")
).list_definitions()


class _Upstream:
    """Answers with the makers that it has, or with an error; a gate holds answers back."""

    def __init__(self, *names: str) -> None:
        self.names = list(names)
        self.error: Exception | None = None
        self.ids = ""  # what stands before the number of an id; anything spoils it
        self.asked: list[str] = []
        self.failures = 0  # errors beside the data
        self.gate = asyncio.Event()
        self.gate.set()

    async def execute(self, operation: Any, credentials: identity.Credentials, *, partial_errors: list[Any]) -> Any:
        assert credentials is WHO
        assert operation.parts_max == 0
        self.asked.append(operation.name)
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        partial_errors += [model.GraphQLError("a field failed")] * self.failures
        return SimpleNamespace(supManufacturers=[maker(f"{self.ids}{n}", name) for n, name in enumerate(self.names)])


def maker(id_: str, name: str) -> Any:
    return SimpleNamespace(id=id_, name=name, aliases=[], homepageUrl=None)


@pytest.fixture
def manual_clock() -> clocks.ManualClock:
    return clocks.ManualClock()


@pytest.fixture
def upstream() -> _Upstream:
    return _Upstream("Texas Instruments", "Yageo")


@pytest.fixture
async def kept(upstream: _Upstream, manual_clock: clocks.ManualClock) -> Any:
    lists = directory.Directory(LIST_DEFINITIONS, upstream, DAY, WHOLE, manual_clock)  # type: ignore[arg-type]
    yield lists
    await lists.close()


async def size(lists: directory.Directory, time: clocks.ManualClock, ago: float = 0.0) -> int:
    """Return the number of manufacturers for a request that started some seconds ago."""
    return len(await lists.listing("Brand", WHO, time.monotonic() - ago))


async def settled() -> None:
    """Wait until all background tasks have ended."""
    while others := [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]:
        await asyncio.gather(*others, return_exceptions=True)


async def test_list_is_fetched_once_for_concurrent_callers(
    kept: directory.Directory, upstream: _Upstream, manual_clock: clocks.ManualClock
) -> None:
    assert await asyncio.gather(*(size(kept, manual_clock) for _ in range(20))) == [2] * 20
    assert await size(kept, manual_clock) == 2
    assert upstream.asked == ["supManufacturers"]


async def test_old_list_is_refreshed_in_the_background(
    kept: directory.Directory, upstream: _Upstream, manual_clock: clocks.ManualClock
) -> None:
    await size(kept, manual_clock)
    upstream.names.append("Vishay")
    manual_clock.advance(DAY - 1)
    assert await size(kept, manual_clock) == 2
    assert len(upstream.asked) == 1
    manual_clock.advance(1)
    upstream.gate.clear()
    assert [await size(kept, manual_clock) for _ in range(5)] == [2] * 5  # no caller waits for the refresh
    upstream.gate.set()
    await settled()
    assert await size(kept, manual_clock) == 3
    assert len(upstream.asked) == 2


@pytest.mark.parametrize(
    "error", [errors.UpstreamUnreachable("gone"), errors.CredentialsRefused("no"), errors.QueryRefused("no")]
)
async def test_failed_refresh_keeps_the_list_and_is_retried_after_a_back_off(
    kept: directory.Directory, upstream: _Upstream, manual_clock: clocks.ManualClock, error: Exception
) -> None:
    await size(kept, manual_clock)
    manual_clock.advance(DAY)
    upstream.error = error
    for _ in range(5):
        assert await size(kept, manual_clock) == 2
        await settled()
    assert len(upstream.asked) == 2
    upstream.error, upstream.names = None, ["Vishay"]
    manual_clock.advance(directory.PAUSE_SECONDS)
    assert await size(kept, manual_clock) == 2
    await settled()
    assert (await size(kept, manual_clock), len(upstream.asked)) == (1, 3)


@pytest.mark.parametrize("names, failures", [([], 0), (["Vishay"], 0), (["Texas Instruments", "Yageo", "Vishay"], 1)])
async def test_possibly_incomplete_list_does_not_replace_a_good_one(
    kept: directory.Directory, upstream: _Upstream, manual_clock: clocks.ManualClock, names: list[str], failures: int
) -> None:
    upstream.names = ["Texas Instruments", "Yageo", "Rohm"]
    await size(kept, manual_clock)
    upstream.names, upstream.failures = names, failures
    manual_clock.advance(DAY)
    for asked in (2, 3):
        assert await size(kept, manual_clock) == 3
        await settled()
        assert (await size(kept, manual_clock), len(upstream.asked)) == (3, asked)
        manual_clock.advance(directory.PAUSE_SECONDS)
    upstream.names, upstream.failures = ["Vishay", "Rohm"], 0
    await size(kept, manual_clock)
    await settled()
    assert await size(kept, manual_clock) == 2


async def test_list_that_stays_small_is_accepted_after_a_second_lifetime(
    kept: directory.Directory, upstream: _Upstream, manual_clock: clocks.ManualClock
) -> None:
    upstream.names = ["Texas Instruments", "Yageo", "Rohm"]
    await size(kept, manual_clock)
    upstream.names = ["Vishay"]
    manual_clock.advance(2 * DAY)
    await size(kept, manual_clock)
    await settled()
    assert await size(kept, manual_clock) == 1


@pytest.mark.parametrize("names, failures", [([], 0), (["Vishay"], 1)])
async def test_possibly_incomplete_first_list_is_used_and_refreshed_soon(
    kept: directory.Directory, upstream: _Upstream, manual_clock: clocks.ManualClock, names: list[str], failures: int
) -> None:
    upstream.names, upstream.failures = names, failures
    assert await size(kept, manual_clock) == len(names)
    upstream.names, upstream.failures = ["Vishay", "Yageo"], 0
    assert await size(kept, manual_clock) == len(names)
    manual_clock.advance(directory.PAUSE_SECONDS)
    await size(kept, manual_clock)
    await settled()
    assert await size(kept, manual_clock) == 2
    manual_clock.advance(DAY - 1)
    assert (await size(kept, manual_clock), len(upstream.asked)) == (2, 2)


async def test_untranslatable_list_does_not_replace_a_good_one(
    kept: directory.Directory, upstream: _Upstream, manual_clock: clocks.ManualClock
) -> None:
    await size(kept, manual_clock)
    manual_clock.advance(DAY)
    upstream.ids = "x"
    for _ in range(3):
        assert await size(kept, manual_clock) == 2
        await settled()
    assert len(upstream.asked) == 2


async def test_untranslatable_record_is_left_out(
    kept: directory.Directory, upstream: _Upstream, monkeypatch: pytest.MonkeyPatch, manual_clock: clocks.ManualClock
) -> None:
    async def execute(operation: Any, credentials: identity.Credentials, *, partial_errors: list[Any]) -> Any:
        return SimpleNamespace(supManufacturers=[maker("1", "Yageo"), maker("none", "Odd"), maker("2", "Vishay")])

    monkeypatch.setattr(upstream, "execute", execute)
    listing = await kept.listing("Brand", WHO, manual_clock.monotonic())
    assert (len(listing), listing.skipped) == (2, 1)


async def test_unexpected_refresh_error_keeps_the_list(
    kept: directory.Directory, upstream: _Upstream, manual_clock: clocks.ManualClock
) -> None:
    await size(kept, manual_clock)
    manual_clock.advance(DAY)
    upstream.error = RuntimeError("unexpected")
    for _ in range(3):
        assert await size(kept, manual_clock) == 2
        await settled()
    assert len(upstream.asked) == 2


async def test_missing_list_raises_the_error_and_the_next_caller_retries(
    kept: directory.Directory, upstream: _Upstream, manual_clock: clocks.ManualClock
) -> None:
    upstream.error = errors.UpstreamUnreachable("gone")
    outcomes = await asyncio.gather(*(size(kept, manual_clock) for _ in range(3)), return_exceptions=True)
    assert [str(outcome) for outcome in outcomes] == ["gone"] * 3
    assert len(upstream.asked) == 1
    upstream.error = None
    assert await size(kept, manual_clock) == 2


async def test_untranslatable_first_list_is_an_upstream_error(
    kept: directory.Directory, upstream: _Upstream, manual_clock: clocks.ManualClock
) -> None:
    upstream.ids = "x"
    with pytest.raises(errors.UpstreamUnreadable, match="cannot be translated"):
        await size(kept, manual_clock)


async def test_cancelled_caller_does_not_cancel_the_fetch(
    kept: directory.Directory, upstream: _Upstream, manual_clock: clocks.ManualClock
) -> None:
    upstream.gate.clear()
    first = asyncio.create_task(size(kept, manual_clock))
    second = asyncio.create_task(size(kept, manual_clock))
    await asyncio.sleep(0)
    first.cancel()
    upstream.gate.set()
    assert await second == 2
    assert len(upstream.asked) == 1


async def test_caller_waits_within_its_time_limit_and_the_fetch_continues(
    kept: directory.Directory, upstream: _Upstream, manual_clock: clocks.ManualClock
) -> None:
    upstream.gate.clear()
    others = asyncio.create_task(size(kept, manual_clock))
    for ago in (WHOLE - 0.01, WHOLE, WHOLE + 5):
        with pytest.raises(errors.UpstreamUnreachable, match=r"Brand.* in time") as caught:
            await size(kept, manual_clock, ago)
        assert not caught.value.may_be_billed
    upstream.gate.set()
    assert await others == 2
    assert await size(kept, manual_clock, WHOLE + 5) == 2
    assert len(upstream.asked) == 1


async def test_large_list_does_not_block_the_event_loop(
    kept: directory.Directory, upstream: _Upstream, manual_clock: clocks.ManualClock
) -> None:
    upstream.names = [f"Maker {n} of parts" for n in range(30_000)]
    building = asyncio.create_task(size(kept, manual_clock))
    turns = 0  # of others, while the list is built: built in the loop itself it would leave them two or three
    while not building.done():
        await asyncio.sleep(0.001)
        turns += 1
    assert await building == 30_000
    assert turns > 5


async def test_close_cancels_a_running_refresh(upstream: _Upstream, manual_clock: clocks.ManualClock) -> None:
    lists = directory.Directory(LIST_DEFINITIONS, upstream, DAY, WHOLE, manual_clock)  # type: ignore[arg-type]
    await size(lists, manual_clock)
    manual_clock.advance(DAY)
    upstream.gate.clear()
    await size(lists, manual_clock)
    await lists.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_list_is_exempt_from_garbage_collection(
    kept: directory.Directory, monkeypatch: pytest.MonkeyPatch, manual_clock: clocks.ManualClock
) -> None:
    monkeypatch.setattr(garbage, "exempt", gc.freeze)  # as it is outside of the tests
    gc.unfreeze()
    try:
        await size(kept, manual_clock)
        listing = await kept.listing("Brand", WHO, manual_clock.monotonic())
        assert gc.get_freeze_count() > 0
        assert not any(tracked is listing for tracked in gc.get_objects())
    finally:
        gc.unfreeze()


async def test_a_replaced_list_is_freed_without_garbage_collection(
    kept: directory.Directory, upstream: _Upstream, manual_clock: clocks.ManualClock
) -> None:
    await size(kept, manual_clock)
    former = weakref.ref(await kept.listing("Brand", WHO, manual_clock.monotonic()))
    gc.disable()
    try:
        manual_clock.advance(DAY)
        await size(kept, manual_clock)
        await settled()
        assert former() is None
    finally:
        gc.enable()
        gc.unfreeze()
