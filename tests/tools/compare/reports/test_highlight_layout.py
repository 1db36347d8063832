"""Tests of JSON laid out over several lines: equal JSON, easier to read."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.tools.compare.reports import highlight

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
