"""Tests of what responses have shown of a plan, and of sharing it between processes."""

import pytest

from proxy import errors
from proxy.gateway.plan_knowledge import PlanKnowledge, PlanNotes
from proxy.kit.clock import ManualClock
from proxy.stores.open import MemoryStore


class _Process(PlanNotes):
    """A process with the plan of one application."""

    def __init__(self, store: MemoryStore, scope: str = "demo 1") -> None:
        self.plan = PlanKnowledge()
        super().__init__(store, {scope: self.plan})


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(ManualClock())


async def refresh(*processes: _Process) -> list[set[str]]:
    for each in processes * 2:
        await each.refresh()
    return [each.plan.shown for each in processes]


async def test_features_shown_to_one_process_are_known_to_all(store: MemoryStore) -> None:
    one, two, other = _Process(store), _Process(store), _Process(store, "demo 2")
    one.plan.shown.add("SPECS")
    two.plan.shown.add("CAD")
    assert await refresh(one, two, other) == [{"SPECS", "CAD"}, {"SPECS", "CAD"}, set()]
    assert await refresh(_Process(store)) == [{"SPECS", "CAD"}]


async def test_feature_that_one_process_finds_refused_is_forgotten_by_all(store: MemoryStore) -> None:
    one, two = _Process(store), _Process(store)
    one.plan.shown |= {"SPECS", "CAD"}
    await refresh(one, two)
    two.plan.shown.discard("CAD")
    assert await refresh(one, two, _Process(store)) == [{"SPECS"}] * 3
    one.plan.shown.add("CAD")  # the plan has it again
    assert await refresh(one, two) == [{"SPECS", "CAD"}] * 2


async def test_what_could_not_be_noted_is_noted_later(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: str) -> None:
        raise errors.StoreUnavailable("no store")

    process = _Process(store)
    process.plan.shown.add("SPECS")
    with monkeypatch.context() as patch:
        patch.setattr(store, "put_note", fail)
        with pytest.raises(errors.StoreUnavailable):
            await process.refresh()
        await process.start()
        await process.close()
    assert await refresh(process, _Process(store)) == [{"SPECS"}] * 2


def test_batches_hold_four_megabytes_by_the_running_mean_of_a_part() -> None:
    plan = PlanKnowledge()
    everything = plan.batch_parts
    plan.measure([50_000, 150_000])
    assert plan.batch_parts == 40 < everything
    plan.measure([200_000])  # a fifth of it counts
    assert plan.batch_parts == 33
    plan.measure([10**9])
    assert plan.batch_parts == 1
