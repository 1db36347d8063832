"""Tests of paths: response data cannot forge a path, and a program can parse it."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from support import cases

from proxy.tools.compare.judging import paths
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


@cases.parametrize(
    "key,written",
    ("\ud800", '["\\ud800"]'),
)
def test_unusual_key_is_quoted_in_ascii(key: str, written: str) -> None:
    assert path(key) == written
    assert path("a", key, None) == f"a{written}[*]"
    assert paths.steps(path("a", key, None)) == ("a", written, "[*]")


@given(st.lists(HOSTILE | st.none()), st.lists(HOSTILE | st.none()))
def test_paths_are_unambiguous(one: Any, other: Any) -> None:
    assert (path(*one) == path(*other)) == (one == other)


@cases.parametrize("pattern, path")
def test_pattern_matches_path(pattern: str, path: str) -> None:
    assert matches(pattern, path)


@cases.parametrize("pattern, path")
def test_pattern_does_not_match_other_paths(pattern: str, path: str) -> None:
    assert not matches(pattern, path)


def test_hostile_path_is_matched_in_bounded_time() -> None:
    assert not matches("**.a.**.a.**.a.**.b", ".".join(["a"] * 5000))


@given(st.lists(st.sampled_from(["a", "b", "[*]", "c-d", '["x.y"]']), max_size=8))
def test_every_path_matches_itself_and_the_double_wildcard(parts: Any) -> None:
    path = "".join(part if part.startswith("[") else f".{part}" for part in parts).lstrip(".")
    assert steps(path) == tuple(parts)
    assert matches(path, path)
    assert matches("**", path)
    assert matches(f"**.{path}.**", path)
