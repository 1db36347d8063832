"""The probe operation: valid by the schema, and its response shows whether the token was accepted."""

import json

import graphql
import pytest

from proxy.kit import shipped
from proxy.upstream.graphql import PROBE


def test_probe_is_valid_by_the_schema_and_returns_no_part() -> None:
    text = shipped.path("mappings/schema.graphql").read_text(encoding="utf-8")
    schema = graphql.build_schema(text.replace("{site}", "octopart"))
    body = json.loads(PROBE.payload)
    assert body["operationName"] == PROBE.name
    assert graphql.validate(schema, graphql.parse(body["query"])) == []
    assert "part" not in body["query"].lower()


@pytest.mark.parametrize(
    "body, taken", [(b'{"data":{"supCategories":[{"id":"4161"}]}}', True), (b'{"data":null,"errors":[]}', False)]
)
def test_probe_response_shows_whether_there_is_data(body: bytes, taken: bool) -> None:
    assert (PROBE.decode(body).data is not None) is taken
