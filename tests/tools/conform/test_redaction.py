"""Redaction of results, with planted credentials and ids."""

from typing import Any

import pytest

from proxy.redaction import HIDDEN
from proxy.tools.conform.redaction import ResultRedaction
from proxy.tools.conform.results import Outcome

SECRET, GUID = "S3CRET-OF-THE-TEST", "5B1ac5f0-7d0a-4f0c-8a53-0e4a6f1f7c11"
TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjF9.c2lnbmF0dXJl"


def _redacted(got: Any, reason: str) -> Outcome:
    return ResultRedaction([SECRET, "our-client"]).outcome(Outcome("a", "core", "contradicted", None, got, reason))


@pytest.mark.parametrize(
    "got, shown",
    [
        (SECRET, HIDDEN),
        ([{"client": "our-client", "n": 1}], [{"client": HIDDEN, "n": 1}]),
        ({SECRET: 1}, {HIDDEN: 1}),
        (f"organization {GUID} of ada@company.example", f"organization {HIDDEN} of {HIDDEN}"),
        (GUID.replace("-", ""), HIDDEN),
        (f"Bearer {TOKEN}", f"Bearer {HIDDEN}"),
        ("Contact us at api@nexar.com.", "Contact us at api@nexar.com."),
        (["SN74S74N", 12.5, None, True], ["SN74S74N", 12.5, None, True]),
        ("bd4d768f82c5628a", "bd4d768f82c5628a"),  # a v3 uid
    ],
)
def test_values_and_messages_hold_no_credentials_and_no_ids(got: Any, shown: Any) -> None:
    outcome = _redacted(got, str(got))
    assert outcome.got == shown
    assert all(text not in repr(outcome) for text in (SECRET, GUID, TOKEN, "our-client", "company.example"))
