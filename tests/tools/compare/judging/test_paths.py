"""Tests of paths: response data cannot forge a path, and a program can parse it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import cases

from proxy.tools.compare.judging import paths, thresholds
from proxy.tools.compare.judging.paths import matches, steps

HOSTILE = st.one_of(
    st.text(max_size=5), st.text('.[]*"\\#$…a0', max_size=5), st.sampled_from(["a", "a.b", "[*]", "x" * 200])
)


def path(*keys: Any) -> Any:
    made = paths.ROOT
    for key in keys:
        made = paths.each(made) if key is None else paths.field(made, key)
    return made


def test_plain_names_are_joined_by_dots() -> None:
    assert path("results", None, "items", None, "prices", "USD", None) == "results[*].items[*].prices.USD[*]"


@pytest.mark.parametrize(
    "key,written",
    [
        *cases.of(__file__, "unusual_key_is_quoted_in_ascii"),
        ("\ud800", '["\\ud800"]'),
    ],
)
def test_unusual_key_is_quoted_in_ascii(key: str, written: str) -> None:
    assert path(key) == written
    assert path("a", key, None) == f"a{written}[*]"
    assert paths.steps(path("a", key, None)) == ("a", written, "[*]")


@given(st.lists(HOSTILE | st.none()), st.lists(HOSTILE | st.none()))
def test_paths_are_unambiguous(one: Any, other: Any) -> None:
    assert (path(*one) == path(*other)) == (one == other)


@given(st.lists(HOSTILE | st.none(), min_size=1))
def test_path_splits_into_its_steps(keys: Any) -> None:
    assert len(paths.steps(path(*keys))) == len(keys)


@given(st.lists(st.tuples(HOSTILE | st.none(), st.integers(1, 3)), min_size=2, max_size=2, unique=True))
def test_elements_have_distinct_places(both: Any) -> None:
    one, other = (paths.element("l", label, turn) for label, turn in both)
    assert one != other
    assert one.isprintable()


def test_long_steps_are_truncated_and_stay_distinct() -> None:
    one, other = path("x" * 1_000_000 + "1"), path("x" * 1_000_000 + "2")
    assert one != other
    assert len(one) < 150
    assert path(one[2:-2]) != one
    assert paths.steps(path("a", "x" * 1000, "b"))[2] == "b"


@pytest.mark.parametrize("text", ["Digi-Key 296-1-ND", "10", "10 kΩ ±5%", "a.b"])
def test_identifying_value_is_shown_unchanged(text: str) -> None:
    assert paths.element("offers", text) == f"offers[{text}]"


@cases.parametrize("where,what")
def test_subject_of_a_path_is_named(where: str, what: str) -> None:
    assert paths.subject(where) == what
    assert what in thresholds.SUBJECTS


@cases.parametrize("pattern, path")
def test_pattern_matches_path(pattern: str, path: str) -> None:
    assert matches(pattern, path)


@cases.parametrize("pattern, path")
def test_pattern_does_not_match_other_paths(pattern: str, path: str) -> None:
    assert not matches(pattern, path)


def test_quoted_key_is_one_step() -> None:
    assert steps(r'fields["a.b[*]\"]."][*].value') == ("fields", r'["a.b[*]\"]."]', "[*]", "value")


def test_hostile_path_is_matched_in_bounded_time() -> None:
    assert not matches("**.a.**.a.**.a.**.b", ".".join(["a"] * 5000))


@given(st.lists(st.sampled_from(["a", "b", "[*]", "c-d", '["x.y"]']), max_size=8))
def test_every_path_matches_itself_and_the_double_wildcard(parts: Any) -> None:
    path = "".join(part if part.startswith("[") else f".{part}" for part in parts).lstrip(".")
    assert steps(path) == tuple(parts)
    assert matches(path, path)
    assert matches("**", path)
    assert matches(f"**.{path}.**", path)
