"""Tests of the recorder: recorded data, compatibility with older recordings, and no API keys."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from support.comparison_server import request_from_target

from proxy import errors
from proxy.kit import zstd
from proxy.redaction import Redaction
from proxy.traffic.recording.line_files import WholeLines
from proxy.traffic.recording.recorded import RecordedSide, Recording
from proxy.traffic.recording.recorder import RecordedExchange, Recorder, RecordingHeader
from proxy.traffic.v3_response import SideResponse

NOW = 1_700_000_000.0  # of the recorded data

KEY = "c4n4ry-key-of-a-client"
HEADER = RecordingHeader(made=1.0, baseline="http://old/v3", candidate="own.yaml", source="access.log")


def recorded_request(n: Any, **fields: Any) -> Any:
    usual: dict[str, Any] = {
        "baseline": SideResponse(
            200, b'{"price": 1.10, "link": "https://x/?apikey=%s"}' % KEY.encode(), 0.25, "application/json"
        ),
        "candidate": SideResponse(404, b'{"message": "\xc3\xa4"}', 0.5, "application/json", 3),
    }
    return RecordedExchange(request_from_target(f"/v3/brands/search?q={n}&start=0", client="erp"), **usual | fields)


@pytest.fixture
def file(tmp_path: Path) -> Any:
    return tmp_path / "run.jsonl.zst"


@pytest.fixture
def record(file: Any) -> Any:
    """Writes requests into the file."""

    def write(*kept: Any, header: Any = HEADER, at: float = NOW) -> Any:
        recorder = Recorder(file, header, Redaction([KEY]), lambda: at)
        for each in kept:
            recorder.keep(each)
        recorder.close()
        return recorder

    return write


@pytest.fixture
def read() -> Any:
    opened = []

    def of(path: Any, now: float = NOW) -> Any:
        opened.append(Recording(path, now))
        return opened[-1]

    yield of
    for each in opened:
        each.close()


def test_recording_is_read_back_equal(file: Any, record: Any, read: Any) -> None:
    record(recorded_request(1), recorded_request(2))
    recorded = read(file)
    assert recorded.header == HEADER
    assert list(recorded.requests()) == [recorded_request(1).request, recorded_request(2).request]
    line = recorded.line(recorded_request(1).request)
    assert line.baseline.response() == SideResponse(
        200, '{"price": 1.10, "link": "https://x/?apikey=…"}'.encode(), 0.25, "application/json", 0
    )
    assert line.candidate.response().body == b'{"message": "\xc3\xa4"}'
    assert (recorded.cut, recorded.junk.lines) == (False, 0)


def test_equivalent_request_of_any_client_finds_its_response(file: Any, record: Any, read: Any) -> None:
    record(recorded_request(1))
    recorded = read(file)
    assert recorded.line(request_from_target("/v3/brands/search?start=0&q=1", client="erp"))
    assert recorded.line(request_from_target("/v3/brands/search?start=0&q=1", client="somebody else"))
    assert recorded.line(request_from_target("/v3/brands/search?start=1&q=1", client="erp")) is None


def test_lookup_is_found_and_is_no_request_of_the_recording(file: Any, record: Any, read: Any) -> None:
    lookup = recorded_request(1, lookup=True)
    assert record(recorded_request(2), lookup).known == {recorded_request(2).request.id}
    assert record().known == {recorded_request(2).request.id}
    recorded = read(file)
    assert [request.id for request in recorded.requests()] == [recorded_request(2).request.id]
    line = recorded.line(lookup.request)
    assert line.candidate.response().body == b'{"message": "\xc3\xa4"}'


def test_request_is_preferred_to_a_lookup(file: Any, record: Any, read: Any) -> None:
    record(recorded_request(1), recorded_request(1, lookup=True, candidate=None))
    assert read(file).line(recorded_request(1).request).candidate is not None


def test_recording_holds_no_api_key(file: Any, record: Any) -> None:
    request = request_from_target(f"/v3/brands/search?q={KEY}", client="erp")
    body = json.dumps({"data": {"click": f"https://x/?key={KEY}"}}).encode()
    record(RecordedExchange(request, SideResponse(200, KEY.encode(), 0.1), SideResponse(200, body, 0.1)))
    text = b"\n".join(WholeLines(file))
    assert KEY.encode() not in text
    assert text.count("…".encode()) >= 3
    assert file.stat().st_mode & 0o777 == 0o600


def test_binary_bodies_are_read_back_unchanged(file: Any, record: Any, read: Any) -> None:
    record(recorded_request(1, baseline=SideResponse(200, b'{"a": "\xff\xfe"}', 0.1)))
    recorded = read(file)
    assert recorded.line(recorded_request(1).request).baseline.response().body == b'{"a": "\xff\xfe"}'


@pytest.mark.parametrize("off", [1, 10, 100])
def test_truncated_recording_is_read_to_the_cut_and_resumed(file: Any, record: Any, read: Any, off: int) -> None:
    record(*(recorded_request(n) for n in range(3)))
    file.write_bytes(file.read_bytes()[:-off])
    recorded = read(file)
    assert recorded.cut
    assert len(list(recorded.requests())) == 2
    again = record(recorded_request(2), recorded_request(3))
    assert again.known == {recorded_request(n).request.id for n in range(4)}
    whole = read(file)
    assert not whole.cut
    assert [request.values("q") for request in whole.requests()] == [["0"], ["1"], ["2"], ["3"]]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lambda text: zstd.compress(text)[:-9]])
def test_recording_that_cannot_be_resumed_is_unchanged(file: Any, record: Any, pack: Any) -> None:
    record(recorded_request(1), recorded_request(2))
    file.write_bytes(pack(b"\n".join([*WholeLines(file), b""])))
    before = file.read_bytes()
    with pytest.raises(errors.ConfigError, match="is left as it is"):
        record(recorded_request(3))
    assert file.read_bytes() == before


def test_recording_of_a_newer_version_is_refused(file: Any) -> None:
    file.write_bytes(b'{"v3bridge-recording":2,"by":"v3bridge 9","made":1.0,"old":null,"new":null,"source":"x"}\n')
    with pytest.raises(errors.ConfigError, match="is a recording of format 2; this program reads 1"):
        Recording(file, NOW)


@pytest.mark.parametrize("folder", ["nowhere", "file"])
def test_unwritable_path_is_named(tmp_path: Path, folder: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(errors.ConfigError, match=r"the recording .*rec\.zst cannot be written"):
        Recorder(tmp_path / folder / "rec.zst", HEADER, Redaction([]), lambda: NOW)


OWN = b"""{"url": "https://old.example/v3/brands/search?apikey=whatever&q=1", "body": {"hits": 1.10}}
{"path": "/brands/search?q=2", "status": 404, "body": "{\\"message\\": \\"none\\"}"}

{"path": "/nowhere", "body": {}}
what is this
{"path": "/api/v3/brands/xyz", "body": [1]}
"""


async def test_response_file_is_the_baseline(tmp_path: Path, read: Any) -> None:
    (tmp_path / "own.jsonl").write_bytes(OWN)
    recorded = read(tmp_path / "own.jsonl")
    side = RecordedSide(recorded)
    first, second, third = (
        request_from_target(f"/v3/brands/{what}", client="erp") for what in ("search?q=1", "search?q=2", "xyz")
    )
    assert (await side.fetch(first, "1")).body == b'{"hits": 1.10}'
    assert await side.fetch(second, "2") == SideResponse(404, b'{"message": "none"}', 0.0, "", 0)
    assert (await side.fetch(third, "3")).body == b"[1]"
    assert (recorded.junk.lines, recorded.junk.first, recorded.header) == (2, 4, None)
    assert side.place == "own.jsonl"
    assert not side.live


async def test_request_missing_in_the_file_is_a_failure(tmp_path: Path, read: Any) -> None:
    (tmp_path / "own.jsonl").write_bytes(OWN)
    response = await RecordedSide(read(tmp_path / "own.jsonl")).fetch(request_from_target("/v3/brands/search?q=9"), "1")
    assert response.failure == "has no response to this request in its file"


@pytest.mark.parametrize(
    "text,words",
    [(b"", "holds no response: requests that a service refused"), (b"junk\n", r"holds no response \(line 1 is none")],
)
def test_file_without_responses_is_refused(tmp_path: Path, text: bytes, words: str) -> None:
    (tmp_path / "own.jsonl").write_bytes(text)
    with pytest.raises(errors.ConfigError, match=words):
        Recording(tmp_path / "own.jsonl", NOW)


def test_data_of_the_new_service_ends_after_a_day(file: Any, record: Any, read: Any) -> None:
    record(recorded_request(1), at=NOW)
    record(recorded_request(2), at=NOW + 3600)
    recording = read(file, NOW + 86_400)
    first, second = (recording.line(request_from_target(f"/v3/brands/search?q={n}&start=0")) for n in (1, 2))
    assert recording.ended == 1
    assert (first.baseline.body, first.candidate.status) == (second.baseline.body, 404)
    assert first.candidate.body == ""
    assert (len(first.candidate.digest), second.candidate.digest) == (32, "")
    assert second.candidate.body == '{"message": "ä"}'
    # Of the file, too, which is as private as before and can be continued.
    text = b"\n".join(WholeLines(file)).decode()
    assert text.count('{"message') + text.count('{\\"message') == 1
    assert file.stat().st_mode & 0o777 == 0o600
    assert record(recorded_request(3)).known == {recorded_request(n).request.id for n in (1, 2, 3)}


def test_data_of_a_sandbox_does_not_end(file: Any, record: Any, read: Any) -> None:
    record(recorded_request(1), at=0.0)
    recording = read(file, NOW)
    assert recording.ended == 0


def test_recording_that_a_run_writes_to_is_left_and_its_ended_data_not_used(file: Any, read: Any) -> None:
    recorder = Recorder(file, HEADER, Redaction([KEY]), lambda: NOW)
    recorder.keep(recorded_request(1))
    before = file.read_bytes()
    assert read(file, NOW + 86_400).line(recorded_request(1).request).candidate.body == ""
    assert file.read_bytes() == before
    recorder.close()
