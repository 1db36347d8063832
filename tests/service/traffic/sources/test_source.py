"""Tests of file type detection, and of compressed, truncated, empty and binary files."""

import bz2
import contextlib
import gzip
import json
import lzma
import os
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proxy import errors
from proxy.kit import zstd
from proxy.traffic import estimate
from proxy.traffic.sources import source as sources
from proxy.traffic.sources.clients import Clients

LINE = '203.0.113.9 - - [10/Oct/2018:13:55:36 +0000] "GET /v3/parts/search?q={} HTTP/1.1" 200 2326\n'
RANDOM = Random(1)
LOG = "".join(LINE.format(RANDOM.randbytes(9).hex()) for _ in range(4000)).encode()
PACKED = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstd.compress}


@pytest.mark.parametrize("suffix, pack", PACKED.items())
def test_compressed_logs_are_read(read_source: Any, suffix: Any, pack: Any) -> None:
    found = read_source(f"access.log{suffix}", pack(LOG))
    assert (found.source.kind, len(found.requests), found.junk) == ("log", 4000, [])


def test_compressed_log_is_recognized_by_content(read_source: Any) -> None:
    assert len(read_source("access.log-20240501", gzip.compress(LOG)).requests) == 4000


@pytest.mark.parametrize("suffix, pack", [(suffix, pack) for suffix, pack in PACKED.items() if suffix != ".zst"])
def test_truncated_compressed_log_is_read_to_the_cut(read_source: Any, suffix: Any, pack: Any) -> None:
    packed = pack(LOG, 1) if suffix == ".bz2" else pack(LOG)
    found = read_source(f"access.log{suffix}", packed[: int(len(packed) * 0.9)])
    number = len(found.requests)
    assert 1000 < number < 4000
    assert found.junk == [("the compressed file is cut", 1, f"access.log{suffix}:after {number}")]


@pytest.mark.parametrize(
    "content, reason",
    [
        (b"", "there is nothing in it"),
        (b"\n \r\n\t\n", "there is nothing in it"),
        (gzip.compress(b"", mtime=0), "there is nothing in it"),
        (bytes(range(256)) * 40, "is neither text nor a workbook"),
        (b"\x7fELF" + bytes(2000), "is neither text nor a workbook"),
        (b"hello\nworld\n", "it is not clear what kind of file this is. Say which it is: log: access logs"),
        (b"<html><body>502</body></html>", "it is not clear what kind of file this is"),
        (b"\xff\xfe", "there is nothing in it"),
    ],
)
def test_file_of_unknown_kind_is_a_clear_error(read_source: Any, tmp_path: Path, content: Any, reason: str) -> None:
    with pytest.raises(errors.SourceError, match=reason) as raised:
        read_source("file", content)
    assert str(tmp_path / "file") in raised.value.message


@pytest.mark.parametrize("kind", sources.KINDS)
@pytest.mark.parametrize(
    "content", [b"", bytes(range(256)) * 400, b"hello\n" * 3, b"\x1f\x8b\x08", b"{}", b"[]", b"\xff\xfeA"]
)
def test_every_kind_explains_unreadable_files(read_source: Any, kind: Any, content: Any) -> None:
    with pytest.raises(errors.SourceError, match=r"no request of v3 in it, read as|there is nothing in it"):
        read_source("file", content, kind)


def test_explicit_kind_overrides_detection(read_source: Any) -> None:
    found = read_source("x.jsonl", "/v3/brands/x\n", "urls")
    assert found.targets == ["/brands/x"]


def test_unknown_kind_is_refused_with_the_known_ones(read_source: Any) -> None:
    with pytest.raises(
        errors.SourceError, match="'excel' is not a kind of file; there are log, json, har, urls, csv, xlsx"
    ):
        read_source("x", "x", "excel")


def test_junk_lines_do_not_prevent_detection(read_source: Any) -> None:
    found = read_source("x", "-- logrotate --\n{broken\n" + LINE.format("a") + "/v3/brands/x\n" + LINE.format("b"))
    assert (found.source.kind, len(found.requests)) == ("log", 2)


def test_missing_file_and_folder_are_clear_errors(tmp_path: Path) -> None:
    with pytest.raises(errors.SourceError, match=r"none\.log: cannot be read: No such file or directory"):
        sources.open_source(tmp_path / "none.log", Clients())
    with pytest.raises(errors.SourceError, match="is not a file"):
        sources.open_source(tmp_path, Clients())


def test_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(errors.SourceError, match="is not a file"):
        sources.open_source(tmp_path / "pipe", Clients())


def test_source_can_be_read_twice_and_partially(tmp_path: Path) -> None:
    (tmp_path / "access.log").write_bytes(LOG + b"junk\n")
    source = sources.open_source(tmp_path / "access.log", Clients())
    begun = source.requests()
    next(begun)
    begun.close()  # type: ignore[attr-defined]  # a generator
    assert source.junk == ()
    assert [len(list(source.requests())) for _ in range(2)] == [4000, 4000]
    junk: tuple[Any, ...] = source.junk  # what has been read since
    assert junk[0].times == 1


def test_source_messages_hold_no_api_key(read_source: Any) -> None:
    lines = [
        LINE.format("x&apikey=5ecre7ke"),
        LINE.format("x&apikey%5B%5D=5ecre7ke&APIKEY=5ecre7ke"),
        'junk apikey=5ecre7ke "GET apikey=5ecre7ke',
        LINE.format("x").replace("/v3/", "/5ecre7ke/"),
        LINE.format("x&apikey=5ecre7ke").replace("GET", "POST"),
    ]
    found = read_source("access.log", "\n".join(lines))
    message = [
        found.source.junk,
        found.source.skipped,
        found.source.name,
        found.requests,
        found.clients,
        vars(found.source),
    ]
    assert "5ecre7ke" not in repr(message)
    assert found.clients.secrets() == ("5ecre7ke",)
    with pytest.raises(errors.SourceError) as raised:
        read_source("access.log", lines[2], "log")
    assert "5ecre7ke" not in raised.value.message


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
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(content=st.binary(max_size=300))
def test_any_bytes_give_requests_or_a_clear_error(read_source: Any, kind: Any, content: Any) -> None:
    attempt(read_source, content, kind)


@pytest.mark.parametrize("kind, good", GOOD.items())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(seed=st.integers(0, 2**32))
def test_damaged_file_gives_requests_or_a_clear_error(read_source: Any, kind: Any, good: Any, seed: Any) -> None:
    random = Random(seed)
    content = bytearray((good * random.randint(1, 3)).encode())
    for _ in range(random.randint(1, 6)):
        place = random.randrange(len(content))
        content[place : place + random.randint(0, 3)] = random.randbytes(random.randint(0, 3)) or b'"'
    attempt(read_source, bytes(content), random.choice([kind, None]))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(values=st.lists(JSON, min_size=1, max_size=4))
def test_any_json_gives_requests_or_a_clear_error(read_source: Any, values: Any) -> None:
    text = "\n".join(map(json.dumps, values))
    for kind in ("json", "har", "recording", None):
        attempt(read_source, text, kind)
