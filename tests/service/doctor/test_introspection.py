"""Introspection of types by name, executed by graphql-core on the complete schema of the sandbox."""

import json
from pathlib import Path
from typing import Any

import graphql
import pytest

from proxy.doctor import introspection
from proxy.mapping import drift

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
