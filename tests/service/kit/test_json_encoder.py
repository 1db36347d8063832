"""JSON encoder with a reused buffer: each result is whole, and independent of later ones."""

import pytest

from proxy.kit.json_encoder import JsonEncoder


def test_results_are_independent_of_later_ones_whatever_their_sizes() -> None:
    encoder = JsonEncoder()
    values = [["x" * size] for size in (10, 100_000, 0, 5_000, 1)]
    assert [encoder.encode(value) for value in values] == [b'["%s"]' % value[0].encode() for value in values]


def test_a_value_that_cannot_be_encoded_leaves_nothing_behind() -> None:
    encoder = JsonEncoder()
    with pytest.raises(TypeError):
        encoder.encode(["text", object()])
    assert encoder.encode([1]) == b"[1]"
