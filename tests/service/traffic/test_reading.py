"""Tests of file type detection, and of compressed, truncated, empty and binary files."""

import bz2
import contextlib
import gzip
import lzma
import os
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proxy import errors
from proxy.traffic import reading
from proxy.traffic.v3_request import Clients

LINE = '203.0.113.9 - - [10/Oct/2018:13:55:36 +0000] "GET /v3/parts/search?q={} HTTP/1.1" 200 2326\n'
RANDOM = Random(1)
LOG = "".join(LINE.format(RANDOM.randbytes(9).hex()) for _ in range(4000)).encode()
PACKED = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


@pytest.mark.parametrize("suffix, pack", PACKED.items())
def test_compressed_logs_are_read(read_source: Any, suffix: Any, pack: Any) -> None:
    found = read_source(f"access.log{suffix}", pack(LOG))
    assert (len(found.requests), found.skipped) == (4000, [])


def test_compressed_log_is_recognized_by_content(read_source: Any) -> None:
    assert len(read_source("access.log-20240501", gzip.compress(LOG)).requests) == 4000


@pytest.mark.parametrize("suffix, pack", PACKED.items())
def test_truncated_compressed_log_is_read_to_the_cut(read_source: Any, suffix: Any, pack: Any) -> None:
    packed = pack(LOG, 1) if suffix == ".bz2" else pack(LOG)
    found = read_source(f"access.log{suffix}", packed[: int(len(packed) * 0.9)])
    number = len(found.requests)
    assert 1000 < number < 4000
    assert found.skipped == [("the compressed file is cut", 1, f"after access.log{suffix}:{number}")]


@pytest.mark.parametrize(
    "content, reason",
    [
        (b"", "there is nothing in it"),
        (b"\n \r\n\t\n", "there is nothing in it"),
        (gzip.compress(b"", mtime=0), "there is nothing in it"),
        (bytes(range(256)) * 40, "it is neither an access log, "),
        (b"PK\x03\x04" + bytes(2000), "nor a parts list as CSV with a heading such as mpn"),
        (b"hello\nworld\n", "it is neither"),
        (b"{broken\n[1]\n", "no request of v3 in it: file:1: is no JSON, or is cut"),
        (b'{"log":', "no request of v3 in it: file:1: is no JSON, or is cut"),
        (b'{"log": {"entries": []}}', "file: no request of v3 in it$"),
        (gzip.compress(LOG, mtime=0)[:99], "file: the compressed file is cut$"),
        (gzip.compress(b"", mtime=0)[:9], "file: the compressed file is cut$"),
        (b"\xff\xfe", "there is nothing in it"),
    ],
)
def test_file_of_unknown_kind_is_a_clear_error(read_source: Any, tmp_path: Path, content: Any, reason: str) -> None:
    with pytest.raises(errors.SourceError, match=reason) as raised:
        read_source("file", content)
    assert str(tmp_path / "file") in raised.value.message


def test_junk_lines_do_not_prevent_detection(read_source: Any) -> None:
    found = read_source("x", "-- logrotate --\n{broken\n" + LINE.format("a") + "/v3/brands/x\n" + LINE.format("b"))
    assert len(found.requests) == 3


@pytest.mark.parametrize(
    "name, said", [("none", "none: cannot be read: No such file or"), ("pipe", "is not a file"), ("", "is not a file")]
)
def test_missing_file_pipe_and_folder_are_clear_errors(tmp_path: Path, name: str, said: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(errors.SourceError, match=said):
        list(reading.read_requests(tmp_path / name, Clients(), {}))


def test_source_messages_hold_no_api_key(read_source: Any) -> None:
    lines = [
        LINE.format("x&apikey=5ecre7ke"),
        LINE.format("x&apikey%5B%5D=5ecre7ke&APIKEY=5ecre7ke"),
        'junk apikey=5ecre7ke "GET apikey=5ecre7ke',
        LINE.format("x").replace("/v3/", "/5ecre7ke/"),
        LINE.format("x&apikey=5ecre7ke").replace("GET", "POST"),
    ]
    found = read_source("access.log", "\n".join(lines))
    assert "5ecre7ke" not in repr(found)
    assert found.clients.secrets() == ("5ecre7ke",)
    with pytest.raises(errors.SourceError) as raised:
        read_source("access.log", lines[2])
    assert "5ecre7ke" not in raised.value.message


GOOD = [
    '1.2.3.4 - - [10/Oct/2018:13:55:36 +0000] "GET /v3/parts/match?queries=[{"mpn":"X 1"}] HTTP/1.1" 200 1\n',
    '{"time": 1.7e9, "request": {"method": "GET", "uri": "/v3/parts/search?q=x"}, "apikey": "K"}\n',
    '{"log": {"entries": [{"startedDateTime": "2024-05-01T00:00:00Z", "request": {"url": "/v3/brands/x"}}]}}',
    "12 https://octopart.com/api/v3/parts/search?q=x&apikey=K\n",
    'qty;mpn;brand\n1;"LM358";TI\n',
]


@pytest.mark.parametrize("good", GOOD)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(seed=st.integers(0, 2**32))
def test_damaged_file_gives_requests_or_a_clear_error(read_source: Any, good: str, seed: int) -> None:
    random = Random(seed)
    content = bytearray((good * random.randint(1, 3)).encode())
    for _ in range(random.randint(1, 6)):
        place = random.randrange(len(content))
        content[place : place + random.randint(0, 3)] = random.randbytes(random.randint(0, 3)) or b'"'
    with contextlib.suppress(errors.SourceError):
        for request in read_source("file", bytes(content)).requests:
            assert request.endpoint
            assert request.target("K").isascii()
            assert reading.worst_case_parts(request) >= 0
