"""Tests of the diff against DeepDiff, which does not know v3: both find differences at the same places."""

import copy
import random
from collections import Counter
from typing import Any

from deepdiff import DeepDiff
from hypothesis import given, settings
from hypothesis import strategies as st
from support import v3_responses

from proxy.tools.compare.judging import diff, paths

NAMED = ("uid", "sku", "reference", "seller", "mpn")  # what identifies: another of these is another element
KINDS = {
    "values_changed": "value",
    "type_changes": "type",
    "dictionary_item_added": "extra",
    "iterable_item_added": "extra",
    "dictionary_item_removed": "missing",
    "iterable_item_removed": "missing",
}


def deep(baseline: Any, candidate: Any, **options: Any) -> DeepDiff:
    return DeepDiff(
        baseline, candidate, ignore_private_variables=False, threshold_to_diff_deeper=0, view="tree", **options
    )


def oracle(baseline: Any, candidate: Any) -> Counter[tuple[str, str, str, str]]:
    """Kind, path, old and new of what DeepDiff finds."""
    levels = [(KINDS[kind], level) for kind, levels in deep(baseline, candidate).items() for level in levels]
    return Counter(
        (kind, path_of(level.path(output_format="list")), str(level.t1), str(level.t2)) for kind, level in levels
    )


def path_of(steps: list[Any]) -> str:
    """A path of indexes and keys as diff writes it: elements are `[*]`, a price break's amount is the break."""
    path = paths.ROOT
    for at, step in enumerate(steps):
        in_break = at > 2 and isinstance(steps[at - 1], int) and steps[at - 3] == "prices"
        if isinstance(step, int):
            path = path if in_break else paths.each(path)
        else:
            path = paths.each(path) if at == 0 and v3_responses.is_uid(step) else paths.field(path, step)
    return path


def ours(baseline: Any, candidate: Any) -> Counter[tuple[str, str, str, str]]:
    absent = {"UNSET": "not present"}
    words = (
        (each.kind, each.path, *(absent.get(str(side), str(side)) for side in (each.baseline, each.candidate)))
        for each in diff.diff(baseline, candidate)
    )
    return Counter(("value" if kind == "format" else kind, path, one, other) for kind, path, one, other in words)


def spots(value: Any) -> list[tuple[Any, Any]]:
    """Return the paths whose value can change without a change of element: fields, and amounts of price breaks."""
    objects = v3_responses.containers(value, dict)
    fields = [(each, key) for each in objects for key in each if key not in NAMED and not v3_responses.is_uid(key)]
    priced = [each for found in objects for each in v3_responses.containers(found.get("prices"), list)]
    return fields + [(each, 1) for each in priced if len(each) == 2 and isinstance(each[1], str)]


def change(value: Any, rng: random.Random, times: int) -> Any:
    """The value with so many changes that DeepDiff and diff must tell alike: none to what identifies."""
    made = copy.deepcopy(value)
    for _ in range(times):
        found = spots(made)
        if not found:
            return made
        container, at = rng.choice(found)
        do = rng.choice(["set", "drop", "add", "pop"])
        if do == "set" or isinstance(container, list):
            container[at] = (
                f"other {rng.random()}" if rng.random() < 0.7 else rng.choice([None, True, 12, {"candidate": 1}])
            )
        elif do == "drop":
            del container[at]
        elif do == "add":
            container[f"new{rng.randint(0, 9)}"] = [1, 2]
        elif isinstance(container[at], list) and container[at]:
            container[at].pop()
    return made


@given(v3_responses.RESPONSES, v3_responses.RANDOM, st.integers(0, 4))
def test_changes_are_found_where_deepdiff_finds_them(value: Any, rng: Any, times: Any) -> None:
    made = change(value, rng, times)
    assert ours(value, made) == oracle(value, made)


@given(v3_responses.RESPONSES, v3_responses.RESPONSES, v3_responses.RANDOM)
@settings(max_examples=50)
def test_differences_equal_those_of_deepdiff(value: Any, other: Any, rng: Any) -> None:
    for made in (other, copy.deepcopy(value), change(value, rng, 1)):
        assert bool(diff.diff(value, made)) == bool(deep(value, made))


@given(v3_responses.RESPONSES, v3_responses.RANDOM, st.integers(0, 2))
@settings(max_examples=50)
def test_differences_without_order_equal_those_of_deepdiff(value: Any, rng: Any, times: Any) -> None:
    made = change(value, rng, times)
    for each in v3_responses.containers(made, list):
        if not v3_responses.is_break(each):
            rng.shuffle(each)
    found = [each for each in diff.diff(value, made) if each.kind != "order"]
    assert bool(found) == bool(deep(value, made, ignore_order=True, report_repetition=True))


@given(st.lists(v3_responses.PLAIN_JSON, max_size=4), st.lists(v3_responses.PLAIN_JSON, max_size=4))
@settings(max_examples=50)
def test_differences_of_any_json_equal_those_of_deepdiff(baseline: Any, candidate: Any) -> None:
    assert bool(diff.diff(baseline, candidate)) == bool(deep(baseline, candidate))
