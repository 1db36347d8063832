"""Introspection of types by name, executed by graphql-core on the complete schema of the sandbox."""

import json
from pathlib import Path
from typing import Any

import graphql
import msgspec
import pytest

from proxy.doctor import introspection
from proxy.mapping import drift
from proxy.upstream import classify, http_post

COMPLETE = Path(__file__).parents[3] / "sandbox" / "nexar_sandbox" / "graphql" / "schema.graphql"


@pytest.fixture(scope="module")
def schema() -> graphql.GraphQLSchema:
    return graphql.build_schema(COMPLETE.read_text(encoding="utf-8"), assume_valid_sdl=True)


def introspected(schema: graphql.GraphQLSchema, *names: str) -> dict[str, drift.RemoteType]:
    operation = introspection.operation(names)
    request = json.loads(operation.payload)
    result = graphql.graphql_sync(schema, request["query"], operation_name=request["operationName"])
    assert result.errors is None
    envelope = operation.decode(json.dumps({"data": result.data}).encode())
    assert envelope.data is not None
    return envelope.data.types


def test_types_have_their_fields_arguments_and_deprecated_fields(schema: graphql.GraphQLSchema) -> None:
    types = introspected(schema, "SupPart", "SupImage", "SupPartMatchQuery", "SupSortDirection")
    fields = {field.name: field for field in types["SupPart"].fields or []}
    assert (str(fields["v3uid"].type), str(fields["specs"].type)) == ("ID!", "[SupSpec!]!")
    assert {argument.name: str(argument.type) for argument in fields["sellers"].args}["includeBrokers"] == "Boolean!"
    assert not fields["sellers"].args[0].is_required  # it has a default
    assert "urlLargest" in {field.name for field in types["SupImage"].fields or []}
    assert {field.name for field in types["SupPartMatchQuery"].input_fields or []} >= {"mpn", "limit"}
    assert [value.name for value in types["SupSortDirection"].enum_values or []] == ["asc", "desc"]


def test_query_type_is_found_by_its_role_and_unknown_types_are_left_out(schema: graphql.GraphQLSchema) -> None:
    types = introspected(schema, "Query", "NoSuchType")
    assert set(types) == {"Query"}
    arguments = {field.name: field.args for field in types["Query"].fields or []}
    assert [argument.name for argument in arguments["supParts"] if argument.is_required] == ["ids"]


@pytest.mark.parametrize("body", [{"errors": [{"message": "no introspection"}]}, {"data": None, "errors": []}])
def test_refused_introspection_has_no_types(body: Any) -> None:
    assert introspection.operation([]).decode(json.dumps(body).encode()).data is None


def test_operation_can_be_sent_by_the_graphql_client(schema: graphql.GraphQLSchema) -> None:
    operation = introspection.operation(["SupPart"])
    request = json.loads(operation.payload)
    assert request["operationName"] == operation.name == "introspection"
    result = graphql.graphql_sync(schema, request["query"])
    reply = http_post.HttpResponse(200, json.dumps({"data": result.data}).encode())
    data = classify.data(reply, classify.decode(operation, reply), 0.0)
    assert set(data.types) == {"Query", "SupPart"}


@pytest.mark.parametrize("data", [{}, {"__schema": None}, {"__schema": {"queryType": {"name": 1}}}, {"A": []}])
def test_data_of_another_form_is_not_decoded(data: Any) -> None:
    with pytest.raises(msgspec.MsgspecError):
        introspection.operation([]).decode(json.dumps({"data": data}).encode())
