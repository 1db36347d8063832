"""Fields of a program: paths, a v3 response, a recording, a HAR file."""

import json
from pathlib import Path
from typing import Any

import pytest
from support import cases

from proxy import errors
from proxy.explain.explainer import Explainer
from proxy.explain.programs import fields
from proxy.redaction import Redaction
from proxy.traffic.recording.recorder import RecordedExchange, Recorder, RecordingHeader
from proxy.traffic.v3_request import V3Request
from proxy.traffic.v3_response import SideResponse

NOW = 1_700_000_000.0  # of the recorded data

MATCH = V3Request("/parts/match", (("queries", "[]"), ("hide[]", "mpn"), ("include[]", "datasheets"), ("q", "x")))
PART = {
    "__class__": "Part",
    "mpn": "A",
    "no_field_of_v3": 1,
    "brand": {"__class__": "Brand", "uid": "1", "name": "B", "homepage_url": None},
    "offers": [{"sku": "S", "seller": {"name": "N"}}, {"moq": 1}],
    "specs": {"pin_count": {"value": ["8"]}, "color": {}},
    "datasheets": [],
}
PATHS = (
    "brand",
    "datasheets",
    "mpn",
    "offers.moq",
    "offers.seller.name",
    "offers.sku",
    "specs.color",
    "specs.pin_count",
)
HEADER = RecordingHeader(made=1.0, baseline="http://old/v3", candidate="own.yaml", source="access.log")
RESPONSE = {"results": [{"items": [PART, {"mpn": "C"}], "hits": 2}]}


def read(text: str | Path, explainer: Explainer, request: V3Request = MATCH) -> tuple[str, ...]:
    return fields.read(str(text), request, explainer.mappings)


def test_paths_are_those_of_show(explainer: Explainer) -> None:
    assert read(" mpn, offers.prices,specs.any_key.value ", explainer) == (
        "mpn",
        "offers.prices",
        "specs.any_key.value",
    )


@cases.parametrize("text, message")
def test_a_mistaken_path_is_named_with_what_it_may_mean(text: str, message: str, explainer: Explainer) -> None:
    with pytest.raises(errors.SourceError, match=r".") as raised:
        read(text, explainer)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    "response", [RESPONSE, PART, {"uid1": {"uid": "1", **PART}}, {"results": [{"item": PART}]}, [RESPONSE, PART]]
)
def test_fields_of_a_response_are_those_of_its_objects(response: Any, explainer: Explainer, tmp_path: Path) -> None:
    file = tmp_path / "response.json"
    file.write_text(json.dumps(response))
    assert tuple(path for path in read(file, explainer) if path != "uid") == PATHS


def test_fields_of_a_recording_are_those_of_its_responses_of_the_endpoint(explainer: Explainer, tmp_path: Path) -> None:
    file = tmp_path / "run.zst"
    recorder = Recorder(file, HEADER, Redaction([]), lambda: NOW)
    for path, body in (("/parts/match", RESPONSE), ("/parts/search", {"results": [{"item": {"uid": "1"}}]})):
        response = SideResponse(200, json.dumps(body).encode(), 0.0, "application/json", 0)
        recorder.keep(RecordedExchange(V3Request(path, (("queries", "[]"),)), response))
    recorder.close()
    assert read(file, explainer) == PATHS


def test_fields_of_a_har_file_are_those_of_its_responses_of_the_endpoint(explainer: Explainer, tmp_path: Path) -> None:
    file = tmp_path / "traffic.har"
    contents = [("/v3/parts/match?queries=[]", json.dumps(RESPONSE)), ("/v3/parts/search", "{}"), ("/logo", "")]
    entries = [
        {"request": {"url": f"https://octopart.com/api{path}"}, "response": {"content": {"text": text}}}
        for path, text in contents
    ]
    file.write_text(json.dumps({"log": {"entries": entries}}))
    assert read(file, explainer) == PATHS


@pytest.mark.parametrize("content", ["{}", '{"results": []}', "no JSON", "\x00\xff"])
def test_a_file_without_a_response_is_an_error(content: str, explainer: Explainer, tmp_path: Path) -> None:
    file = tmp_path / "response.json"
    file.write_text(content, encoding="latin-1")
    with pytest.raises(errors.StartError, match=r"response\.json"):
        read(file, explainer)


def test_a_restricted_request_asks_for_the_fields_alone(explainer: Explainer) -> None:
    restricted = fields.restricted(MATCH, ["mpn", "specs.color"], explainer.mappings)
    assert restricted.query == (
        ("queries", "[]"), ("q", "x"), ("show[]", "mpn"), ("show[]", "specs.color"), ("include[]", "specs")
    )  # fmt: skip


def test_more_fields_than_a_request_may_have_are_an_error(explainer: Explainer) -> None:
    with pytest.raises(errors.SourceError, match="at most 150 fields, not 160"):
        fields.restricted(MATCH, [f"specs.key_{number}" for number in range(160)], explainer.mappings)
