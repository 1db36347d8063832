"""Tests of path patterns: the paths that a rule applies to."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.tools.compare.judging.paths import PathPattern, steps


@pytest.mark.parametrize(
    "pattern, path",
    [
        ("msec", "msec"),
        ("**", "a.b[*].c"),
        ("**.msec", "msec"),
        ("**.msec", "results[*].msec"),
        ("results[*].items[*].mpn", "results[*].items[*].mpn"),
        ("results[*].**", "results[*]"),
        ("results[*].**", "results[*].item.mpn"),
        ("**.offers[*].prices.*[*]", "[*].offers[*].prices.USD[*]"),
        ("**.offers[*].prices.*[*]", "results[*].items[*].offers[*].prices.EUR[*]"),
        ("**.a.**.b", "a.a.x.b"),
        (
            'facet_results.fields["specs.resistance.value"].missing',
            'facet_results.fields["specs.resistance.value"].missing',
        ),
        ("facet_results.fields.*.missing", 'facet_results.fields["specs.resistance.value"].missing'),
        ("(status)", "(status)"),
    ],
)
def test_pattern_matches_path(pattern: str, path: str) -> None:
    assert PathPattern(pattern).matches(path)


@pytest.mark.parametrize(
    "pattern, path",
    [
        ("mpn", "results[*].items[*].mpn"),
        ("results[*].items[*].mpn", "results[*].items[*]"),
        ("results[*].items[*]", "results[*].items[*].mpn"),
        ("results.*.items", "results[*].items"),
        ("*", "a.b"),
        ("**.a.**.b", "a.x.c"),
        ("prices.*[*]", "prices.USD"),
        ("**", "(status)"),
        ("*", "(latency)"),
        ("(status)", "(latency)"),
        ("fields.*.missing", 'fields["a].b.missing"]'),
    ],
)
def test_pattern_does_not_match_other_paths(pattern: str, path: str) -> None:
    assert not PathPattern(pattern).matches(path)


def test_quoted_key_is_one_step() -> None:
    assert steps(r'fields["a.b[*]\"]."][*].value') == ("fields", r'["a.b[*]\"]."]', "[*]", "value")


def test_hostile_path_is_matched_in_bounded_time() -> None:
    assert not PathPattern("**.a.**.a.**.a.**.b").matches(".".join(["a"] * 5000))


@given(st.lists(st.sampled_from(["a", "b", "[*]", "c-d", '["x.y"]']), max_size=8))
def test_every_path_matches_itself_and_the_double_wildcard(parts: Any) -> None:
    path = "".join(part if part.startswith("[") else f".{part}" for part in parts).lstrip(".")
    assert steps(path) == tuple(parts)
    assert PathPattern(path).matches(path)
    assert PathPattern("**").matches(path)
    assert PathPattern(f"**.{path}.**").matches(path)
