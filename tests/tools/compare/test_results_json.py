"""Tests of the JSON report against docs/reference/compare.schema.json."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from support import comparison_result

from proxy.tools.compare import results
from proxy.tools.compare.results import ComparisonResult

PAGE = Path(__file__).parents[3] / "docs/reference/compare.schema.json"


@pytest.fixture(scope="module")
def validator() -> Any:
    document = json.loads(PAGE.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(document)
    return jsonschema.Draft202012Validator(document)


@pytest.mark.parametrize(
    "make", [comparison_result.result, comparison_result.ready_result, comparison_result.hostile_result]
)
def test_written_report_conforms_to_the_schema(validator: Any, make: Any) -> None:
    validator.validate(json.loads(results.render_json(make())))


@pytest.mark.parametrize("name", ComparisonResult.__struct_fields__)
def test_schema_requires_every_key(validator: Any, name: str) -> None:
    written = json.loads(results.render_json(comparison_result.result()))
    del written[name]
    assert not validator.is_valid(written)


def test_other_version_is_refused(validator: Any) -> None:
    assert not validator.is_valid(json.loads(results.render_json(comparison_result.result(schema=results.SCHEMA + 1))))


def test_result_is_read_back_from_its_report() -> None:
    result = comparison_result.result()
    assert msgspec.json.decode(results.render_json(result), type=ComparisonResult) == result


def test_unencodable_text_is_escaped() -> None:
    text = results.render_json(comparison_result.result(notes=("a\ud800",)))
    assert json.loads(text)["notes"] == ["a\\ud800"]
    text.encode()
