"""Tests of recordings: recorded data, files of the user's own, and no API keys."""

from pathlib import Path
from typing import Any

import pytest
from support.comparison_server import request_from_target

from proxy import errors
from proxy.redaction import Redaction
from proxy.traffic import reading
from proxy.traffic.recordings import Recorder, Recording, SideResponse
from proxy.traffic.v3_request import Clients, V3Request

KEY = "c4n4ry-key-of-a-client"
OLD = SideResponse(200, b'{"price": 1.10, "link": "https://x/?apikey=%s"}' % KEY.encode())


def search(n: Any) -> V3Request:
    return request_from_target(f"/v3/brands/search?q={n}&start=0", client="erp", times=2)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "run.jsonl"


@pytest.fixture
def record(file: Path) -> Any:
    def write(*requests: Any) -> None:
        recorder = Recorder(file, "http://old/v3", Redaction([KEY]))
        for request in requests:
            recorder.keep(request, OLD)
        recorder.close()

    return write


@pytest.fixture
def read(file: Path) -> Any:
    opened = []

    def of(path: Path = file) -> Recording:
        opened.append(Recording(path))
        return opened[-1]

    yield of
    for each in opened:
        each.close()


def test_recording_is_read_back_equal(file: Path, record: Any, read: Any) -> None:
    record(search(1), search(2))
    recorded = read()
    assert [*recorded.requests.values()] == [search(1), search(2)]
    assert recorded.response(search(1)) == SideResponse(
        200, '{"price": 1.10, "link": "https://x/?apikey=…"}'.encode(), 0
    )
    assert KEY not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600


def test_recording_is_a_file_of_requests(file: Path, record: Any) -> None:
    record(search(1))
    (request,) = reading.read_requests(file, Clients(), {})
    assert (request.id, request.times, request.origin) == (search(1).id, 2, "run.jsonl:1")


def test_equivalent_request_of_any_client_finds_its_response(record: Any, read: Any) -> None:
    record(search(1))
    for target, found in (("start=0&q=1", True), ("start=1&q=1", False)):
        request = request_from_target(f"/v3/brands/search?{target}", client="somebody else")
        assert (read().response(request) is not None) == found


@pytest.mark.parametrize("off", [1, 10, 100])
def test_cut_recording_is_read_to_the_cut_and_continued(file: Path, record: Any, read: Any, off: int) -> None:
    record(*map(search, range(3)))
    file.write_bytes(file.read_bytes()[:-off])
    assert len(read().requests) == (3 if off == 1 else 2)
    record(search(2), search(3))
    assert [request.values("q") for request in read().requests.values()] == [["0"], ["1"], ["2"], ["3"]]
    assert read().unreadable == 0


@pytest.mark.parametrize("text", [b"junk\n", b'{"url": "/v3/brands/x", "body": {}}\n'])
def test_other_file_is_left_as_it_is(file: Path, record: Any, text: bytes) -> None:
    file.write_bytes(text)
    with pytest.raises(errors.ConfigError, match=r"is left as it is|holds no response"):
        record(search(3))
    assert file.read_bytes() == text


def test_unwritable_path_is_named(tmp_path: Path) -> None:
    with pytest.raises(errors.ConfigError, match=r"the recording .*rec\.jsonl cannot be written"):
        Recorder(tmp_path / "nowhere" / "rec.jsonl", "old", Redaction([]))


OWN = b"""{"url": "https://old.example/v3/brands/search?apikey=whatever&q=1", "body": {"hits": 1.10}}
{"url": "/brands/search?q=2", "status": 404, "body": "{\\"message\\": \\"none\\"}"}

{"url": "/nowhere", "body": {}}
what is this
{"url": "/api/v3/brands/xyz", "body": [1]}"""


async def test_response_file_is_the_baseline(file: Path, read: Any) -> None:
    file.write_bytes(OWN)
    recorded = read()
    targets = ("search?q=1", "search?q=2", "xyz", "search?q=9")
    found = [await recorded.fetch(request_from_target(f"/v3/brands/{target}")) for target in targets]
    assert [(each.status, each.body) for each in found[:3]] == [
        (200, b'{"hits": 1.10}'),
        (404, b'{"message": "none"}'),
        (200, b"[1]"),
    ]
    assert found[3].failure == "has no response to this request in its file"
    assert (recorded.unreadable, recorded.first_unreadable, recorded.keys) == (2, 4, {"whatever"})


@pytest.mark.parametrize("text", [b"", b"junk\n"])
def test_file_without_responses_is_refused(file: Path, text: bytes) -> None:
    file.write_bytes(text)
    with pytest.raises(errors.ConfigError, match="holds no response"):
        Recording(file)
