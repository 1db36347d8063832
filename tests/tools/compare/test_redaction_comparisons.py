"""Tests of redaction of comparisons that leave a run."""

from decimal import Decimal

import msgspec
from support.comparison_server import request_from_target

from proxy.redaction import Redaction
from proxy.tools.compare.judging.findings import ABSENT, Comparison, Difference, Finding
from proxy.tools.compare.redaction import redact_comparison

KEY = "c4n4ry-key"


def test_request_is_redacted_for_any_parameter_name() -> None:
    request = request_from_target(f"/v3/brands/search?q=x&other={KEY}&{KEY}=1")
    kept = redact_comparison(Comparison(request, 1.0), Redaction([KEY]))
    assert kept.request.query == (("q", "x"), ("other", "…"), ("…", "1"))
    assert redact_comparison(Comparison(request, 1.0), Redaction([])).request == request


def test_numbers_of_any_size_can_be_serialized() -> None:
    large = 10**30
    difference = Difference("value", "a", "a", {"a": [large, -large, 1, True, Decimal("1.5")]}, ABSENT)
    kept = Comparison(request_from_target("/v3/brands/search"), 1.0, (Finding(difference, "unexplained"),))
    text = msgspec.json.Encoder(decimal_format="number").encode(kept)
    read = msgspec.json.Decoder(Comparison, float_hook=Decimal).decode(text)
    assert read.findings[0].difference == difference
