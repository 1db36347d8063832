"""The question that tries a token: the service understands it, and whatever it says is read."""

import json

import graphql
import pytest

from proxy.kit import shipped
from proxy.upstream.trial import TRIAL


def test_it_is_a_question_of_the_schema_and_returns_no_part() -> None:
    text = shipped.path("mappings/schema.graphql").read_text(encoding="utf-8")
    schema = graphql.build_schema(text.replace("{site}", "octopart"))
    body = json.loads(TRIAL.payload)
    assert body["operationName"] == TRIAL.name
    assert graphql.validate(schema, graphql.parse(body["query"])) == []
    assert "part" not in body["query"].lower()


@pytest.mark.parametrize(
    "body, taken", [(b'{"data":{"supCategories":[{"id":"4161"}]}}', True), (b'{"data":null,"errors":[]}', False)]
)
def test_data_is_told_from_none(body: bytes, taken: bool) -> None:
    assert (TRIAL.decode(body).data is not None) is taken
