"""Recordings of our own: the calls in them."""

import json
from typing import Any

import msgspec
import pytest

from proxy import errors
from proxy.compare.requests import V3Request

HEADER = '{"v3bridge-recording": 1, "made": "2024-05-01"}'
CALL = V3Request("/parts/match", (("queries", '[{"mpn":"X 1"}]'), ("exact_only", "")), "the shop", 7, "access.log:3")


def line(call: V3Request) -> str:
    return json.dumps({"call": msgspec.to_builtins(call), "old": {"status": 200, "body": "x" * 9999}, "upstream": []})


@pytest.mark.parametrize("name", ["run.jsonl", "run"])
def test_calls_come_back_as_they_were_recorded(read: Any, name: str) -> None:
    found = read(name, f"{HEADER}\n{line(CALL)}\n")
    assert found.source.kind == "recording"
    assert found.calls == [msgspec.structs.replace(CALL, origin=f"{name}:2")]
    assert found.calls[0].id == CALL.id


def test_a_recording_that_is_cut_keeps_what_is_whole(read: Any) -> None:
    found = read("run.jsonl", f"{HEADER}\n{line(CALL)}\n{line(CALL)[:500]}")
    assert (len(found.calls), found.junk) == (1, [("is no recorded call, or is cut", 1, "run.jsonl:3")])


def test_a_recording_of_another_version_is_refused(read: Any) -> None:
    with pytest.raises(errors.SourceError, match=r"run\.jsonl:1: is of another version of v3bridge"):
        read("run.jsonl", HEADER.replace("1,", "2,"))


def test_a_recorded_call_that_is_none_of_v3_s_is_skipped(read: Any) -> None:
    found = read("run.jsonl", f"{HEADER}\n{line(V3Request('/nowhere'))}\n{line(CALL)}")
    assert (len(found.calls), found.skipped) == (1, [("its path is none of v3's", 1, "run.jsonl:2")])
