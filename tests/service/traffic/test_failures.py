"""Tests of failures: which outcomes are no response, and their messages."""

import json
from typing import Any

import pytest

from proxy.traffic import failures
from proxy.traffic.v3_response import SideResponse


def message(status: Any, body: Any) -> Any:
    """The words that a response's trouble has."""
    with pytest.raises(failures.SideError) as found:
        failures.check_response(SideResponse(status, body, 0.1, "application/json"))
    return str(found.value)


@pytest.mark.parametrize(
    "body,rest",
    [
        (
            b'{"__class__": "ClientErrorResponse", "message": "demo has 3 of 9 parts left"}',
            ": demo has 3 of 9 parts left",
        ),
        (b'/**/cb({"message": "slow down"});', ""),
        (b'{"message": "two\\nlines \\u001b[31mred"}', ": two lines [31mred"),
        (b'{"message": 7}', ""),
        (b'{"message": "  "}', ""),
        (b'["message"]', ""),
        (b"\xff", ""),
        (b"", ""),
    ],
)
def test_rate_limit_failure_has_the_reason_of_the_service(body: bytes, rest: str) -> None:
    assert message(429, body) == f"limits the request rate (HTTP 429){rest}"
    assert message(503, body) == f"is unavailable (HTTP 503){rest}"


def test_long_reason_is_truncated_between_words() -> None:
    body = json.dumps({"message": f"{'word ' * 37}key-that-stands-at-the-end-of-what-is-shown"}).encode()
    assert message(429, body).endswith("word word …")
