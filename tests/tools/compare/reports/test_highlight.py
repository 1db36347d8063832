"""Tests of highlighted differences of two texts, in bounded time."""

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.tools.compare.reports import highlight
from proxy.tools.compare.reports.highlight import Piece


def text(side: highlight.HighlightedText | None) -> str:
    assert side is not None
    return "".join(piece.text for piece in side.pieces)


def marked(side: highlight.HighlightedText | None) -> list[str]:
    assert side is not None
    return [piece.text for piece in side.pieces if piece.marked]


def test_only_different_characters_are_marked() -> None:
    baseline, candidate = highlight.highlight_pair('[1000,"0.21430"]', '[1000,"0.21980"]')
    assert baseline is not None
    assert baseline.pieces == (Piece('[1000,"0.21', False), Piece("43", True), Piece('0"]', False))
    assert marked(candidate) == ["98"]


def test_two_changes_far_apart_are_two_marks() -> None:
    baseline, candidate = highlight.highlight_pair('"Op Amp dual, 8-Pin PDIP"', '"op Amp dual, 8-Pin SOIC"')
    assert (marked(baseline), marked(candidate)) == (["O", "PDIP"], ["o", "SOIC"])


def test_dissimilar_texts_are_marked_completely() -> None:
    baseline, candidate = highlight.highlight_pair('"general purpose"', '"±16V/32V 8-Pin"')
    assert (len(marked(baseline)), len(marked(candidate))) == (1, 1)


def test_missing_side_is_none_and_the_other_is_marked() -> None:
    pair = highlight.highlight_pair(None, '{"uid":"1"}')
    assert pair.baseline is None
    assert marked(pair.candidate) == ['{"uid":"1"}']


def test_equal_texts_have_no_marks() -> None:
    baseline, candidate = highlight.highlight_pair('"0.5"', '"0.5"')
    assert marked(baseline) == marked(candidate) == []


def test_repeated_suffix_is_not_counted_twice() -> None:
    baseline, candidate = highlight.highlight_pair("aaaa", "aa")
    assert (text(baseline), text(candidate)) == ("aaaa", "aa")


def test_change_deep_in_a_long_text_is_visible() -> None:
    body = "x" * 5_000_000
    baseline, candidate = highlight.highlight_pair(f'"{body}1{body}"', f'"{body}2{body}"')
    assert (marked(baseline), marked(candidate)) == (["1"], ["2"])
    assert baseline is not None
    assert len(text(baseline)) == highlight.WINDOW
    assert baseline.before + highlight.WINDOW + baseline.after == len(body) * 2 + 3


def test_worst_case_texts_take_bounded_time() -> None:
    began = time.process_time()
    for n in range(10):
        highlight.highlight_pair("ab" * (5_000_000 + n), "ba" * 5_000_000)
    assert time.process_time() - began < 5


@settings(database=None)
@given(st.text(max_size=highlight.WIDTH), st.text(max_size=highlight.WIDTH), st.integers(8, 60))
def test_joined_pieces_equal_the_text(baseline: str, candidate: str, window: int) -> None:
    for side, whole in zip(highlight.highlight_pair(baseline, candidate, window), (baseline, candidate), strict=True):
        assert side is not None
        assert side.before + len(text(side)) + side.after == len(whole)
        assert text(side) == whole[side.before : len(whole) - side.after]


@settings(database=None)
@given(st.text(), st.text())
def test_common_text_is_found(baseline: str, candidate: str) -> None:
    length = highlight.common_prefix(baseline, candidate)
    assert baseline[:length] == candidate[:length]
    assert length == min(len(baseline), len(candidate)) or baseline[length] != candidate[length]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=40,
)


def test_short_value_stays_on_one_line() -> None:
    assert highlight.pretty_print('[1000,"0.21430"]') == '[1000,"0.21430"]'


def test_long_object_has_one_member_per_line() -> None:
    text = '{"brand":{"name":"TI","uid":"1"},"offers":[{"sku":"' + "x" * 60 + '","n":1.10}]}'
    assert highlight.pretty_print(text).split("\n") == [
        "{",
        '  "brand": {"name": "TI", "uid": "1"},',
        '  "offers": [',
        "    {",
        f'      "sku": "{"x" * 60}",',
        '      "n": 1.10',
        "    }",
        "  ]",
        "}",
    ]


@settings(database=None)
@given(VALUES)
def test_layout_changes_only_white_space(value: Any) -> None:
    assert json.loads(highlight.pretty_print(json.dumps(value))) == value


@pytest.mark.parametrize("cut", range(0, 200, 7))
def test_truncated_json_keeps_every_character(cut: int) -> None:
    text = json.dumps({"offers": [{"sku": f"number-{n}", "text": 'a "quoted" \\ one'} for n in range(9)]})[:cut]
    assert "".join(highlight.pretty_print(text).split()) == "".join(text.split())


def test_unbalanced_brackets_are_accepted() -> None:
    assert "".join(highlight.pretty_print("]}" * 60).split()) == "]}" * 60
