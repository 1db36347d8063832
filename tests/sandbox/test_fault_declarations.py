"""Syntax of fault declarations, on the command line and as JSON, and errors of invalid ones."""

import random

import pytest
from support import cases

from nexar_sandbox import faults


@pytest.mark.parametrize(
    "text, fault",
    [
        ("latency", faults.LatencyFault()),
        ("latency ms=50 share=0.5", faults.LatencyFault(ms=50, share=0.5)),
        ("  reset   on=both count=3 ", faults.ResetFault(on="both", count=3)),
        ("5xx status=502 body=json retry_after=0", faults.ServerErrorFault(status=502, body="json", retry_after=0)),
        ("429 share=1", faults.RateLimitFault(share=1.0)),
        ("quota", faults.QuotaFault(at=None)),
        ("quota at=0", faults.QuotaFault(at=0)),
    ],
)
def test_a_fault_text_has_a_kind_and_parameters(text: str, fault: faults.Fault) -> None:
    assert faults.parse_faults(text) == (fault,)


@cases.parametrize("text, complaint")
def test_an_invalid_fault_text_is_named_with_word_and_value(text: str, complaint: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the text is what is tested)
        faults.parse_faults(text)
    assert complaint in str(caught.value)


def test_json_faults_are_a_list_of_texts() -> None:
    read = faults.read_faults(["latency ms=5 share=1", "429 retry_after=2"])
    assert read == (faults.LatencyFault(ms=5), faults.RateLimitFault(retry_after=2))
    assert faults.read_faults([]) == ()


@cases.parametrize("declared, complaint")
def test_an_invalid_json_fault_is_named(declared: object, complaint: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the text is what is tested)
        faults.read_faults(declared)
    assert complaint in str(caught.value)


def test_one_fault_is_selected_plus_latency_in_any_position() -> None:
    declared = [one for text in ("5xx", "429", "latency ms=10", "latency ms=5") for one in faults.parse_faults(text)]
    drawing = faults.FaultInjector(declared, random.Random(1))
    assert drawing.draw("graphql") == faults.InjectedFault(0.015, faults.ServerErrorFault())
    assert drawing.draw("token") is faults.NO_FAULT
