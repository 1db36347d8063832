"""Tests of the current service with replayed recordings."""

import contextlib
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.comparison_server import request_from_target

from proxy import errors
from proxy.redaction import Redaction
from proxy.traffic.recording.recorded import Recording, ReplayedSide
from proxy.traffic.recording.recorder import RecordedExchange, Recorder, RecordingHeader
from proxy.traffic.v3_response import SideResponse
from proxy.upstream.replay import RECORD_AGAIN, RecordedGraphQLResponse, ResponseRecorder, ResponseReplayer

NOW = 1_700_000_000.0  # of the recorded data

REQUEST = request_from_target("/v3/brands/search?q=1", client="erp")
NOTE = RecordedGraphQLResponse("supSearchMpn", '{"q":"1"}', "query a { b }", 200, b"{}")
RESPONSE = SideResponse(200, b"{}", 0.1, parts=7)


class Service:
    """Looks for a note, as the service beside does, and answers."""

    place, live = "beside", True

    def __init__(self, player: Any, lacks: bool = False) -> None:
        self.player, self.lacks = player, lacks
        self.requests: list[Any] = []

    async def fetch(self, request: Any, request_id: Any) -> Any:
        with contextlib.suppress(errors.UpstreamUnreadable):
            self.requests.append((request.client, self.player.find(request_id, operation("e" if self.lacks else "b"))))
        return RESPONSE


def operation(field: str) -> Any:
    """The operation of the note, with a field."""
    payload = {"operationName": NOTE.name, "query": f"query a {{ {field} }}", "variables": {"q": "1"}}
    return SimpleNamespace(name=NOTE.name, payload=json.dumps(payload).encode())


@pytest.fixture
def replay(tmp_path: Path) -> Any:
    """A replayed side over a recording, with the applications of today."""
    opened: list[Any] = []

    def make(applications: Any, answers: Any = None, shared: Any = (), lacks: bool = False) -> Any:
        file = tmp_path / f"{len(opened)}.zst"
        recorder = Recorder(
            file, RecordingHeader(made=1.0, baseline=None, candidate="x", source="y"), Redaction([]), lambda: NOW
        )
        recorder.keep(answers or RecordedExchange(REQUEST, None, RESPONSE, (NOTE,), "demo"), shared)
        recorder.close()
        recorded = Recording(file, NOW)
        opened.append(recorded)
        player = ResponseReplayer()
        service = Service(player, lacks)
        return ReplayedSide(recorded, service, player, applications, ResponseRecorder()), service

    yield make
    for each in opened:
        each.close()


async def test_request_is_replayed_by_its_application_without_cost(replay: Any) -> None:
    side, service = replay({"demo": "k1", "other": "k2"})
    response = await side.fetch(REQUEST, "r1")
    assert (response.body, response.parts, response.failure) == (b"{}", 0, None)
    assert service.requests == [("demo", NOTE)]
    with pytest.raises(errors.UpstreamUnreadable):
        service.player.find("r1", operation("b"))  # nothing is kept
    assert side.place == "0.zst, mapped again"


async def test_single_application_replays_under_any_recorded_name(replay: Any) -> None:
    side, service = replay({"renamed": "k1"})
    await side.fetch(REQUEST, "r1")
    assert service.requests == [("renamed", NOTE)]


async def test_missing_application_is_named(replay: Any) -> None:
    side, _ = replay({"a": "k1", "b": "k2"})
    response = await side.fetch(REQUEST, "r1")
    assert response.failure == "has no application demo, which answered when this was recorded"


async def test_incomplete_recording_is_a_failure(replay: Any) -> None:
    side, _ = replay({"demo": "k1"}, lacks=True)
    response = await side.fetch(REQUEST, "r1")
    assert response.failure == f"has no response: the mappings ask for more than was recorded (e): {RECORD_AGAIN}"


async def test_unrecorded_request_is_a_failure(replay: Any) -> None:
    side, _ = replay({"demo": "k1"})
    response = await side.fetch(request_from_target("/v3/brands/search?q=2"), "r1")
    assert response.failure == "has no recorded response to this request"


def test_recording_of_remote_services_cannot_be_replayed(replay: Any) -> None:
    with pytest.raises(errors.ConfigError, match="holds no responses of the GraphQL service"):
        replay({"demo": "k1"}, RecordedExchange(REQUEST, RESPONSE, RESPONSE))
