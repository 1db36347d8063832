"""Tests of the cause of a difference, derived from the list of v3 fields and the kind of the difference."""

from typing import Any

import pytest
from support import cases

from proxy.tools.compare.judging import fields
from proxy.tools.compare.judging.findings import CAUSES, Difference

MATCH, SEARCH, ONE, SEVERAL = "/parts/match", "/parts/search", "/parts/{uid}", "/parts/get_multi"


@cases.parametrize("endpoint, path, field, rest")
def test_field_of_a_path_is_found_through_the_list(
    causes: Any, endpoint: Any, path: str, field: str, rest: Any
) -> None:
    found = causes.field(endpoint, path)
    assert (f"{found.row.object}.{found.row.field}", list(found.rest)) == (field, rest)


@cases.parametrize("endpoint, path")
def test_envelope_paths_have_no_field(causes: Any, endpoint: Any, path: str) -> None:
    assert causes.field(endpoint, path) is None


def test_every_listed_field_is_reachable_from_an_endpoint(causes: Any) -> None:
    """No object of the list is out of reach."""
    objects, found = fields.load(), set()

    def walk(name: Any, path: Any, endpoint: Any, depth: Any) -> None:
        for field, entry in objects[name].items():
            at = f"{path}.{field}".lstrip(".")
            row = causes.field(endpoint, at).row
            assert (row.object, row.field) == (name, field)
            found.add((name, field))
            below = at + ("[*]" if entry.each else ".some_key" if entry.keyed else "")
            if entry.target and depth:
                walk(entry.target, below, endpoint, depth - 1)

    walk("Part", "", ONE, 6)
    walk("Category", "[*]", "/categories/get_multi", 6)
    assert found == {(name, field) for name, listed in objects.items() for field in listed}


@cases.parametrize("difference, cause")
def test_difference_has_its_cause(causes: Any, difference: Any, cause: str) -> None:
    assert causes.of(MATCH, Difference(*difference)) == cause
    assert cause in CAUSES


@pytest.mark.parametrize(
    "endpoint, path, cause",
    [
        (SEARCH, "results[*]", "extra part"),
        (SEARCH, "results[*].item", "extra part"),
        (SEVERAL, "[*]", "extra part"),
        ("/brands/get_multi", "[*]", "unexplained"),
        (MATCH, "results[*]", "unexplained"),
    ],
)
def test_part_paths_are_recognized_in_every_endpoint(causes: Any, endpoint: Any, path: str, cause: str) -> None:
    assert causes.of(endpoint, Difference("extra", path, path, candidate={})) == cause


def test_difference_between_two_errors_is_the_shape_of_errors(causes: Any) -> None:
    assert causes.of(MATCH, Difference("value", "message", "message", "a", "b"), refused=True) == "error shape"
    assert causes.of(MATCH, Difference("status", "(status)", "(status)", 403, 400), refused=True) == "status"


@pytest.mark.parametrize(
    "endpoint, baseline, candidate, cause",
    [
        (ONE, 200, 404, "missing part"),
        (ONE, 404, 200, "extra part"),
        (ONE, 200, 503, "status"),
        ("/brands/{uid}", 200, 404, "status"),
    ],
)
def test_part_unknown_to_one_side_is_missing_or_extra(
    causes: Any, endpoint: Any, baseline: int, candidate: int, cause: str
) -> None:
    assert causes.of(endpoint, Difference("status", "(status)", "(status)", baseline, candidate)) == cause
