"""Tests of the recording of a run as a source of requests."""

from pathlib import Path

from support.comparison_server import request_from_target

from proxy.redaction import Redaction
from proxy.traffic.recording.recorder import RecordedExchange, Recorder, RecordingHeader
from proxy.traffic.sources.clients import Clients
from proxy.traffic.sources.source import open_source
from proxy.traffic.v3_response import SideResponse
from proxy.upstream.replay import RecordedGraphQLResponse


def test_every_request_of_a_run_recording_is_read(tmp_path: Path) -> None:
    file = tmp_path / "run.zst"
    recorder = Recorder(file, RecordingHeader(made=1.0, baseline="a", candidate="b", source="c"), Redaction([]))
    requests = [request_from_target(f"/v3/brands/search?q={n}", client="erp", times=n + 1) for n in range(3)]
    shared = RecordedGraphQLResponse("supManufacturers", "{}", "query a { b }", 200, b'{"data": []}')
    for request in requests:
        notes = (RecordedGraphQLResponse("supSearch", '{"q":1}', "query c { d }", 200, b"{}"),)
        recorder.keep(RecordedExchange(request, SideResponse(200, b"{}", 0.1), None, notes), [shared])
    lookup = request_from_target("/v3/brands/b4a2d0000000001e", client="erp")
    recorder.keep(RecordedExchange(lookup, None, SideResponse(200, b"{}", 0.1), lookup=True))
    recorder.close()
    source = open_source(file, Clients())
    read = list(source.requests())
    assert [(request.path, request.query, request.client, request.times) for request in read] == [
        (request.path, request.query, request.client, request.times) for request in requests
    ]
    assert source.junk == source.skipped == ()
