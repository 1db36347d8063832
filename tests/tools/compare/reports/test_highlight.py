"""Tests of highlighted differences of two texts, in bounded time."""

import json
import time
from typing import Any

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


def test_missing_side_is_none_and_the_other_is_marked() -> None:
    pair = highlight.highlight_pair(None, '{"uid":"1"}')
    assert pair.baseline is None
    assert marked(pair.candidate) == ['{"uid":"1"}']


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


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=40,
)


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
