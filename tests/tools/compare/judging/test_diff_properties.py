"""Property tests of the diff of any two responses, and of any JSON."""

import copy
import random
from collections import Counter
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from support import v3_responses

from proxy.tools.compare.judging import diff


def again(value: Any, rng: random.Random) -> Any:
    """Return a deep copy with the keys in another order."""
    if isinstance(value, dict):
        keys = list(value)
        rng.shuffle(keys)
        return {key: again(value[key], rng) for key in keys}
    return [again(each, rng) for each in value] if isinstance(value, list) else copy.copy(value)


def alike(baseline: Any, candidate: Any) -> bool:
    """Compare like `same`, in the simplest way."""
    if type(baseline) is not type(candidate):
        return False
    if isinstance(baseline, dict):
        return baseline.keys() == candidate.keys() and all(alike(baseline[key], candidate[key]) for key in baseline)
    if isinstance(baseline, list):
        return len(baseline) == len(candidate) and all(map(alike, baseline, candidate))
    return str(baseline) == str(candidate)


def shuffled(value: Any, rng: random.Random) -> Any:
    """All lists in another order, but not the two halves of a price break."""
    if isinstance(value, dict):
        return {key: shuffled(each, rng) for key, each in value.items()}
    if not isinstance(value, list):
        return value
    made = [each if isinstance(each, list) else shuffled(each, rng) for each in value]
    rng.shuffle(made)
    return made


def prices(found: dict[str, Any]) -> Any:
    return found.get("prices")


def changed(value: Any, rng: random.Random) -> tuple[Any, bool]:
    """One thing in it is another now; whether there was anything to change."""
    made = copy.deepcopy(value)
    whole = [*v3_responses.containers(made, dict), *v3_responses.containers(made, list)]
    spots = [(each, at) for each in whole for at in (each if isinstance(each, dict) else range(len(each)))]
    if not spots:
        return made, False
    container, at = rng.choice(spots)
    before = container[at]
    others = [None, True, 1, 0, Decimal("1.0"), "1", "1.0", [], {}, [before], {"uid": before}]
    container[at] = rng.choice([other for other in others if not alike(other, before)])
    return made, True


@given(st.one_of(v3_responses.RESPONSES, v3_responses.ANY_JSON), v3_responses.RANDOM)
def test_value_does_not_differ_from_itself(value: Any, rng: Any) -> None:
    assert diff.diff(value, again(value, rng)) == []


@given(v3_responses.ANY_JSON, v3_responses.ANY_JSON)
def test_differences_exist_exactly_for_unequal_values(baseline: Any, candidate: Any) -> None:
    assert (diff.diff(baseline, candidate) == []) == alike(baseline, candidate)


@given(st.one_of(v3_responses.RESPONSES, v3_responses.ANY_JSON), v3_responses.RANDOM)
def test_every_single_change_is_found(value: Any, rng: Any) -> None:
    made, any_ = changed(value, rng)
    assert bool(diff.diff(value, made)) == any_


@given(st.one_of(v3_responses.RESPONSES, v3_responses.ANY_JSON), v3_responses.RANDOM)
def test_missing_and_extra_are_symmetric(value: Any, rng: Any) -> None:
    made, _ = changed(changed(shuffled(value, rng), rng)[0], rng)
    mirrored = {"missing": "extra", "extra": "missing"}
    forth = Counter(
        (each.kind, each.path, repr(each.baseline), repr(each.candidate)) for each in diff.diff(value, made)
    )
    back = diff.diff(made, value)
    places = {"order"}  # an order is told by the baseline's places
    assert Counter({key: count for key, count in forth.items() if key[0] not in places}) == Counter(
        (mirrored.get(each.kind, each.kind), each.path, repr(each.candidate), repr(each.baseline))
        for each in back
        if each.kind not in places
    )
    assert Counter(each.path for each in back if each.kind == "order") == Counter(
        path for kind, path, _, _ in forth.elements() if kind == "order"
    )


@given(st.one_of(v3_responses.RESPONSES, v3_responses.ANY_JSON), v3_responses.ANY_JSON, v3_responses.RANDOM)
def test_additional_list_element_is_one_difference(value: Any, added: Any, rng: Any) -> None:
    made = copy.deepcopy(value)
    breaks = [
        each for found in v3_responses.containers(made, dict) for each in v3_responses.containers(prices(found), list)
    ]
    inside = {id(part) for whole in breaks for part in whole}
    lists = [each for each in v3_responses.containers(made, list) if id(each) not in inside]
    if not lists:
        return
    longer = rng.choice(lists)
    longer.insert(rng.randint(0, len(longer)), rng.choice([added, *copy.deepcopy(longer)]))
    assert [each.kind for each in diff.diff(value, made)] == ["extra"]
    assert [each.kind for each in diff.diff(made, value)] == ["missing"]


@given(v3_responses.RESPONSES, v3_responses.RANDOM)
def test_reordered_v3_list_is_only_an_order_difference(value: Any, rng: Any) -> None:
    assert {each.kind for each in diff.diff(value, shuffled(value, rng))} <= {"order"}


@given(
    st.lists(v3_responses.ANY_JSON),
    st.sampled_from(["results", "items", "offers", "other", "queries"]),
    v3_responses.RANDOM,
)
def test_reordered_list_is_only_an_order_difference(elements: Any, name: Any, rng: Any) -> None:
    other = list(elements)
    rng.shuffle(other)
    found = diff.diff({name: elements}, {name: other})
    assert [each.kind for each in found] == ([] if alike(elements, other) else ["order"])


@given(v3_responses.ANY_JSON, v3_responses.ANY_JSON)
def test_differences_of_a_kind_have_distinct_paths(baseline: Any, candidate: Any) -> None:
    found = Counter((each.kind, each.place) for each in diff.diff(baseline, candidate))
    assert set(found.values()) <= {1}
