"""`v3bridge explain` of GraphQL documents: the source of each root field, and parts at most, without a request."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.running_commands import run_in_this_process

RECORDS = "records that all dialects share"


def explained(given: str, *options: str, code: int = 0) -> str:
    done = run_in_this_process("explain", *options, given)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def document(given: str, **options: Any) -> Any:
    return json.loads(explained(given, "--json", **options))


@pytest.mark.parametrize(
    "text, source, parts, because",
    [
        ('{ supMultiMatch(queries: [{mpn: "SN74S74N"}]) { parts { mpn } } }', RECORDS, 3, ""),
        ('{ supSearch(q: "x") { results { part { mpn sellers { company { name } } } } } }', RECORDS, 10, ""),
        ('{ supParts(ids: ["1", "2"]) { similarParts { mpn } } }', "an operation of its own", 2, "similarParts"),
        ('{ supParts(ids: ["1"], distributorApi: true) { mpn } }', "an operation of its own", 1, "arguments"),
        ("{ supSellers { name } }", "passed on, cached for 5 minutes", 0, ""),
        ("{ __schema { types { name } } }", "the shipped schema", 0, ""),
        ("mutation { desCreateProject { id } }", "passed on with your own access token", 0, ""),
    ],
)
def test_each_root_field_has_its_source_and_its_cost(text: str, source: str, parts: int, because: str) -> None:
    [field] = document(text)["fields"]
    assert (field["source"], field["parts_max"], field["because"]) == (source, parts, because)


def test_document_of_v4_keeps_its_names(tmp_path: Path) -> None:
    sent = {"query": "query ($q: [PartMatchQuery!]!) { multi_match(queries: $q) { parts { mpn } } }"}
    file = tmp_path / "sent.json"
    file.write_text(json.dumps({**sent, "variables": {"q": [{"mpn": "SN74S74N", "limit": 2}]}}))
    found = document(str(file))
    assert (found["dialect"], found["parts_max"]) == ("v4", 2)
    assert found["fields"] == [{"field": "multi_match", "source": RECORDS, "parts_max": 2, "because": ""}]


def test_refused_document_says_why() -> None:
    text = explained("{ supMultiMatch(queries: [{mpm: 1}]) { hits } }", code=1)
    assert "Refused before anything is sent" in text
    assert "'mpm'" in text


def test_options_of_other_inputs_are_refused() -> None:
    assert "leave --trace out" in explained("{ supSellers { name } }", "--trace", code=2).replace("\n", " ")
