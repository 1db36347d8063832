"""Tests of hostile request files: any content results in requests or in one clear error."""

import contextlib
import json
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proxy import errors
from proxy.traffic import estimate
from proxy.traffic.sources import source as sources

GOOD = {
    "log": '1.2.3.4 - - [10/Oct/2018:13:55:36 +0000] "GET /v3/parts/match?queries=[{"mpn":"X 1"}] HTTP/1.1" 200 1\n',
    "json": '{"time": 1.7e9, "request": {"method": "GET", "uri": "/v3/parts/search?q=x"}, "apikey": "K"}\n',
    "har": '{"log": {"entries": [{"startedDateTime": "2024-05-01T00:00:00Z", "request": {"url": "/v3/brands/x"}}]}}',
    "urls": "12 https://octopart.com/api/v3/parts/search?q=x&apikey=K\n",
    "csv": 'qty;mpn;brand\n1;"LM358";TI\n',
    "recording": '{"v3bridge-recording": 1}\n{"call": {"path": "/brands/search", "query": [["q", "x"]], "times": 3}}\n',
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["url", "request", "path", "args", "ts", "apikey", "call", "method", "log"]), inner
        )
    ),
)


def attempt(read_source: Any, content: Any, kind: Any) -> None:
    """Read the file and check the consistency of the result."""
    with contextlib.suppress(errors.SourceError):
        for request in read_source("file", content, kind).requests:
            assert request.endpoint
            assert request.target("K").isascii()
            assert estimate.worst_case_parts(request) >= 0


@pytest.mark.parametrize("kind", [None, *sources.KINDS])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(content=st.binary(max_size=300))
def test_any_bytes_give_requests_or_a_clear_error(read_source: Any, kind: Any, content: Any) -> None:
    attempt(read_source, content, kind)


@pytest.mark.parametrize("kind, good", GOOD.items())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100)
@given(seed=st.integers(0, 2**32))
def test_damaged_file_gives_requests_or_a_clear_error(read_source: Any, kind: Any, good: Any, seed: Any) -> None:
    random = Random(seed)
    content = bytearray((good * random.randint(1, 3)).encode())
    for _ in range(random.randint(1, 6)):
        place = random.randrange(len(content))
        content[place : place + random.randint(0, 3)] = random.randbytes(random.randint(0, 3)) or b'"'
    attempt(read_source, bytes(content), random.choice([kind, None]))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(values=st.lists(JSON, min_size=1, max_size=4))
def test_any_json_gives_requests_or_a_clear_error(read_source: Any, values: Any) -> None:
    text = "\n".join(map(json.dumps, values))
    for kind in ("json", "har", "recording", None):
        attempt(read_source, text, kind)


@pytest.mark.parametrize("kind, good", GOOD.items())
def test_valid_files_are_read(read_source: Any, kind: Any, good: Any) -> None:
    found = read_source("file", good)
    assert (found.source.kind, len(found.requests), found.junk) == (kind, 1, [])


@pytest.mark.parametrize("moment", [10**400, -(10**400), 1e308, -1, 0, 1e30])
def test_out_of_range_time_is_none(read_source: Any, moment: Any) -> None:
    lines = [json.dumps({"url": "/v3/brands/x", "ts": each}) for each in (moment, 1.7e9)]
    assert read_source("file", "\n".join(lines)).source.seconds is None
