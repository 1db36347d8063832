"""Evidence in stores of every kind: what is added up, and what ends."""

from typing import Any

import msgspec

from proxy.evidence import records
from proxy.evidence.records import ObservedAssumption, TrafficEvidence
from proxy.kit import clock
from proxy.kit.wording import rfc3339
from proxy.stores.protocols import Store

NEXAR = "Nexar"


def seen(now: float, example: str = "") -> TrafficEvidence:
    """One exchange at a time, which contradicts the assumption if there is an example."""
    at = rfc3339(now)
    fields: dict[str, Any] = {"exchanges": 1, "first": at, "last": at}
    if example:
        fields |= {"contradicting": 1, "contradicted": at, "digests": (f"of {example}",)}
        fields |= {"example": example, "example_at": at}
    return TrafficEvidence(1, (ObservedAssumption("stock-codes", "core", "Stock is a number.", **fields),))


async def test_all_processes_add_up(store: Store, manual_clock: clock.ManualClock) -> None:
    begin = manual_clock.now()
    for owner, example in (("a", ""), ("b", "[1, 2]"), ("a", "[1]"), ("b", "")):
        assert await records.add(store, owner, {NEXAR: seen(manual_clock.now(), example)}, manual_clock.now())
        manual_clock.advance(60)
    (kept,) = (await records.stored(store, manual_clock.now()))[NEXAR].contradicted
    assert (kept.exchanges, kept.contradicting, kept.digests) == (4, 2, ("of [1, 2]", "of [1]"))
    assert (kept.first, kept.contradicted, kept.last) == tuple(rfc3339(begin + each) for each in (0, 120, 180))
    assert kept.example == "[1]"  # the smallest


async def test_services_are_kept_apart(store: Store, manual_clock: clock.ManualClock) -> None:
    now = manual_clock.now()
    for service in (NEXAR, "another service", NEXAR):
        await records.add(store, "a", {service: seen(now)}, now)
    assert {name: each.exchanges for name, each in (await records.stored(store, now)).items()} == {
        NEXAR: 2,
        "another service": 1,
    }


async def test_one_process_writes_at_a_time(store: Store, manual_clock: clock.ManualClock) -> None:
    now = manual_clock.now()
    assert await store.lock(records.LOCK, "another", records.LOCK_SECONDS)
    assert not await records.add(store, "a", {NEXAR: seen(now)}, now)
    assert await records.stored(store, now) == {}
    manual_clock.advance(records.LOCK_SECONDS + 1)  # it has died
    assert await records.add(store, "a", {NEXAR: seen(now)}, manual_clock.now())


async def test_an_example_ends_a_day_after_it_was_seen_last(store: Store, manual_clock: clock.ManualClock) -> None:
    await records.add(store, "a", {NEXAR: seen(manual_clock.now(), "[7]")}, manual_clock.now())
    manual_clock.advance(records.DAY_SECONDS - 60)
    await records.add(store, "a", {NEXAR: seen(manual_clock.now(), "[7]")}, manual_clock.now())
    manual_clock.advance(records.DAY_SECONDS - 60)
    assert "[7]" in str(await store.notes(records.NOTE))
    manual_clock.advance(120)
    (read,) = (await records.stored(store, manual_clock.now()))[NEXAR].contradicted
    assert (read.example, read.contradicting, read.digests) == ("", 2, ("of [7]",))
    await records.drop_ended(store, "a", manual_clock.now())
    assert '"example"' not in str(await store.notes(records.NOTE))


def test_only_the_vendor_is_named() -> None:
    assert [records.service_of(host) for host in ("api.nexar.com", "nexar.internal", None)] == [
        NEXAR,
        *["another service"] * 2,
    ]


def test_what_a_newer_program_assumes_is_counted_anew() -> None:
    before, after = seen(0.0, "[1]"), seen(60.0)
    (changed,) = after.observed
    changed = msgspec.structs.replace(changed, statement="Stock is a number, or a code.")
    assert records.merge(before, TrafficEvidence(1, (changed,))).observed == (changed,)
