"""What is taken into the sample, and what a process does that judges it and fails."""

import random
import sys

import pytest

from proxy.evidence import records, sampler
from proxy.kit import clock
from proxy.stores.open import MemoryStore
from proxy.upstream.http_post import HttpResponse

COUNTS = (
    "import sys, msgspec; sample = msgspec.msgpack.decode(sys.stdin.buffer.read()); "
    "judged = {'evidence': {'exchanges': len(sample)}, 'cpu_seconds': 0.5}; "
    "sys.stdout.buffer.write(msgspec.msgpack.encode(judged))"
)


def make(
    store: MemoryStore, time: clock.ManualClock, share: float, program: str = COUNTS, owner: str = "a"
) -> sampler.EvidenceSampler:
    return sampler.EvidenceSampler(
        share,
        "Nexar",
        store=store,
        owner=owner,
        clock=time,
        rng=random.Random(1),
        command=(sys.executable, "-c", program),
    )


async def judged(taken: sampler.EvidenceSampler, store: MemoryStore, time: clock.ManualClock) -> int:
    """Return how many exchanges were in the sample."""
    await taken.judge()
    return (await records.stored(store, time.now()))["Nexar"].exchanges


@pytest.mark.parametrize(
    "request_body, status, low, high", [(b"{}", 200, 5, 40), (b"{}", 401, 200, 200), (b"", 200, 200, 200)]
)
async def test_a_share_of_good_responses_is_taken_and_all_others(
    request_body: bytes, status: int, low: int, high: int
) -> None:
    time = clock.ManualClock()
    store = MemoryStore(time)
    taken = make(store, time, 0.1)
    for _ in range(200):
        taken.offer(request_body, HttpResponse(status, b"{}"))
    assert low <= await judged(taken, store, time) <= high


async def test_a_sample_is_bounded() -> None:
    time = clock.ManualClock()
    store = MemoryStore(time)
    taken = make(store, time, 1.0)
    for _ in range(sampler.SAMPLES_MAX + 50):
        taken.offer(b"{}", HttpResponse(200, b"{}"))
    assert await judged(taken, store, time) == sampler.SAMPLES_MAX
    for _ in range(5):
        taken.offer(b"{}", HttpResponse(200, b"x" * (sampler.BYTES_MAX // 3)))
    assert await judged(taken, store, time) == sampler.SAMPLES_MAX + 2


@pytest.mark.parametrize("program", ["raise SystemExit(1)", "print('nothing')"])
async def test_a_process_that_fails_loses_its_sample_only(program: str) -> None:
    time = clock.ManualClock()
    store = MemoryStore(time)
    taken = make(store, time, 1.0, program)
    taken.offer(b"{}", HttpResponse(200, b"{}"))
    await taken.judge()
    assert sum(each.exchanges for each in (await records.stored(store, time.now())).values()) == 0


async def test_what_could_not_be_added_is_added_later() -> None:
    time = clock.ManualClock()
    store = MemoryStore(time)
    taken = make(store, time, 1.0)
    taken.offer(b"{}", HttpResponse(200, b"{}"))
    await store.lock(records.LOCK, "another", records.LOCK_SECONDS)
    await taken.judge()
    assert await records.stored(store, time.now()) == {}
    await store.unlock(records.LOCK, "another")
    assert await judged(taken, store, time) == 1


async def test_all_processes_together_use_a_share_of_a_core() -> None:
    time = clock.ManualClock()
    store = MemoryStore(time)
    first, second = (make(store, time, 1.0, owner=owner) for owner in "ab")
    for each in (first, second):
        each.offer(b"{}", HttpResponse(200, b"{}"))
    assert await judged(first, store, time) == 1
    assert await judged(second, store, time) == 1  # not its turn
    time.advance(0.5 / sampler.CPU_SHARE - 1)  # the process says that it took half a second
    assert await judged(second, store, time) == 1
    time.advance(2)
    assert await judged(second, store, time) == 2
