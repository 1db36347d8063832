"""Tests of trimmed data: no key, no half character, bounded length."""

from decimal import Decimal
from typing import Any

import msgspec

from proxy.tools.compare.judging.findings import ABSENT, Difference
from proxy.tools.compare.judging.judge import Trimming

TRIMMING = Trimming(lambda text: text.replace("s3cret", "…"))
ENCODER = msgspec.json.Encoder(decimal_format="number")


def test_small_difference_is_unchanged() -> None:
    difference = Difference("value", "a[*].b", "a[1].b", [1, "0.64700"], {"x": Decimal("1.50"), "y": None})
    assert TRIMMING.difference(difference) == difference


def test_keys_are_redacted_in_values_names_and_paths() -> None:
    found = TRIMMING.difference(
        Difference("value", "a.s3cret", "a[s3cret]", "http://x/?apikey=s3cret", {"s3cret": ["s3cret"]})
    )
    assert "s3cret" not in repr(found)


def test_key_is_redacted_before_truncation() -> None:
    text = "x" * 497 + "s3cret"
    assert TRIMMING.value(text) == "x" * 497 + "…"


def test_huge_difference_is_truncated() -> None:
    huge = {f"k{n}": ["x" * 1000] * 1000 for n in range(100)}
    found = TRIMMING.difference(Difference("missing", "p" * 10_000, "q" * 10_000, baseline=huge))
    assert len(ENCODER.encode(found)) < 300_000
    assert found.candidate is ABSENT


def test_deep_nesting_is_truncated() -> None:
    deep: list[Any] = []
    for _ in range(500):
        deep = [deep]
    assert len(repr(TRIMMING.value(deep))) < 40


def test_lone_surrogates_can_be_written_to_a_file() -> None:
    found = TRIMMING.difference(Difference("value", "a\ud800", "b\udfff", "\ud83d", {"\ud800": "😀"}))
    assert ENCODER.encode(found)
    assert found.candidate == {"�": "😀"}
