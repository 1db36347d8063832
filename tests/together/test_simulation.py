"""Tests of the ledger, claims, tokens and windows over simulated time: invariants hold, planted mistakes are found.

`python -m bench.simulate` searches further seeds.
"""

import pytest
from support.simulation import mutants, plan, world

SEEDS_MAX = 10_000  # in which each planted mistake is found
FOUND = (157, 414)  # seeds that found mistakes, which are mended


@pytest.mark.parametrize("seed", [*range(6), *FOUND])
def test_invariants_hold_after_every_step(seed: int) -> None:
    assert world.simulate(plan.make(seed)).violations == []


@pytest.mark.parametrize("name", mutants.MUTANTS)
def test_planted_mistake_is_found(name: str) -> None:
    # The seed on record, which another change may have made pass; then as many as it takes.
    seeds = (mutants.MUTANTS[name].seed, *range(SEEDS_MAX))
    with mutants.planted(name):
        assert any(world.simulate(plan.make(seed)).violations for seed in seeds)


def test_seed_says_all_that_happens() -> None:
    assert world.simulate(plan.make(1)) == world.simulate(plan.make(1))


def test_failure_is_shown_by_the_fewest_events() -> None:
    with mutants.planted("queries in flight are not coalesced"):
        shown = world.shortest(plan.make(1))
    assert [event.kind for event in shown.events] == ["request"] * 2
    assert str(shown).count("request") == 2
