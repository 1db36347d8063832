"""Counting of the part objects in a response."""

from typing import Any

import pytest

from proxy.tools.conform import runner
from proxy.tools.conform.assumptions import ProbeRequest
from proxy.tools.conform.probes import ProbeResponse

PART = {"id": "1"}


@pytest.mark.parametrize(
    "document, data, parts",
    [
        ("{ supSearch { hits results { part { id } } } }", {"supSearch": {"results": [{"part": PART}] * 3}}, 3),
        ("{ a: supSearchMpn { results { part { id } } } }", {"a": {"results": [{"part": PART}]}}, 1),
        ("{ supSearch { results { description } } }", {"supSearch": {"results": [{"description": ""}]}}, 0),
        ("{ supSearch { hits } }", {"supSearch": {"hits": 7}}, 0),
        ("{ supSearch { hits } }", {"supSearch": None}, 0),
        ("{ supMultiMatch { parts { id } } }", {"supMultiMatch": [{"parts": [PART, PART]}, {"parts": []}]}, 2),
        ("{ supMultiMatch { hits } }", {"supMultiMatch": [{"hits": 2}]}, 0),
        ("{ supParts { id } }", {"supParts": [PART, None]}, 1),
        ("{ supSellers { id } }", {"supSellers": [PART, PART]}, 0),
        (
            "query q { a: supParts { id } b: supSearch { results { part { id } } } }",
            {"a": [PART], "b": {"results": [{"part": PART}]}},
            2,
        ),
        ("{ supParts(", {"supParts": [PART]}, 0),
    ],
)
def test_part_objects_are_counted_at_the_root_fields(document: str, data: Any, parts: int) -> None:
    response = ProbeResponse(200, {}, {"data": data})
    assert runner.count_parts(ProbeRequest(document=document), response) == parts
