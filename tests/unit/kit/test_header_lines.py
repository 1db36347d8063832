"""Headers as lines."""

import pytest

from proxy.kit import header_lines


def test_every_header_is_a_line():
    assert header_lines.of({"A": "1", "B": "two words"}) == "A: 1\r\nB: two words\r\n"
    assert header_lines.of({}) == ""


@pytest.mark.parametrize("text", ["\n", "\r", "a\r\nB: 2", "\0"])
@pytest.mark.parametrize("place", ["name", "value"])
def test_what_would_begin_another_is_refused(text, place):
    header = {"A" + text: "1"} if place == "name" else {"A": "1" + text}
    with pytest.raises(ValueError, match="line break"):
        header_lines.of(header)
