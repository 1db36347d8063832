"""Tests of recordings as a source of requests."""

import json
from typing import Any

import msgspec
import pytest

from proxy import errors
from proxy.traffic.v3_request import V3Request

HEADER = '{"v3bridge-recording": 1, "made": "2024-05-01"}'
REQUEST = V3Request("/parts/match", (("queries", '[{"mpn":"X 1"}]'), ("exact_only", "")), "the shop", 7, "access.log:3")


def line(v3_request: V3Request) -> str:
    return json.dumps(
        {"call": msgspec.to_builtins(v3_request), "old": {"status": 200, "body": "x" * 9999}, "upstream": []}
    )


@pytest.mark.parametrize("name", ["run.jsonl", "run"])
def test_recorded_requests_are_read_back_equal(read_source: Any, name: str) -> None:
    found = read_source(name, f"{HEADER}\n{line(REQUEST)}\n")
    assert found.source.kind == "recording"
    assert found.requests == [msgspec.structs.replace(REQUEST, origin=f"{name}:2")]
    assert found.requests[0].id == REQUEST.id


def test_truncated_recording_keeps_complete_entries(read_source: Any) -> None:
    found = read_source("run.jsonl", f"{HEADER}\n{line(REQUEST)}\n{line(REQUEST)[:500]}")
    assert (len(found.requests), found.junk) == (1, [("is no recorded request, or is cut", 1, "run.jsonl:3")])


def test_recording_of_another_version_is_refused(read_source: Any) -> None:
    with pytest.raises(errors.SourceError, match=r"run\.jsonl:1: is of another version of v3bridge"):
        read_source("run.jsonl", HEADER.replace("1,", "2,"))


def test_recorded_non_v3_request_is_skipped(read_source: Any) -> None:
    found = read_source("run.jsonl", f"{HEADER}\n{line(V3Request('/nowhere'))}\n{line(REQUEST)}")
    assert (len(found.requests), found.skipped) == (1, [("its path is none of v3's", 1, "run.jsonl:2")])
