"""Tests of rewriting v4 documents: by examples, name by name, and with random documents."""

import hashlib
from pathlib import Path
from random import Random
from typing import Any

import graphql
from hypothesis import given, note, settings
from hypothesis import strategies as st
from support import cases, random_documents, v4_shape

from proxy.v4 import documents

ROOT = Path(__file__).parents[3]
V4 = documents.schema()
COMPLETE = (ROOT / "sandbox" / "nexar_sandbox" / "graphql" / "schema.graphql").read_text(encoding="utf-8")
NEXAR = graphql.build_schema(COMPLETE, assume_valid_sdl=True)


def rewritten(text: str) -> str:
    """A document after rewriting, in one line; it is valid before and after."""
    document = graphql.parse(text)
    assert graphql.validate(V4, document) == []
    result = documents.rewrite(document, V4)
    assert graphql.validate(NEXAR, result) == []
    return " ".join(graphql.print_ast(result).split())


@cases.parametrize("before, after")
def test_document_gets_the_names_of_the_nexar_api(before: str, after: str) -> None:
    assert rewritten(before) == after


def test_locations_are_those_of_the_v4_document() -> None:
    document = graphql.parse("{\n  search_mpn { hits }\n}")
    (field,) = graphql.get_operation_ast(documents.rewrite(document, V4)).selection_set.selections  # type: ignore[union-attr]
    assert graphql.get_location(field.loc.source, field.loc.start) == (2, 3)  # type: ignore[union-attr]


def test_variables_get_the_names_of_the_nexar_api() -> None:
    document = graphql.parse(
        "query ($q: [PartMatchQuery!]!, $one: [PartMatchQuery!], $filters: Map, $none: PartMatchOptions, $left: Int)"
        "{ multi_match(queries: $q) { hits } }"
    )
    operation = graphql.get_operation_ast(document)
    assert operation is not None
    variables = {
        "q": [{"mpn_or_sku": "1"}, {"mpn": "2", "limit": 3}],
        "one": {"mpn_or_sku": "3"},
        "filters": {"manufacturer_id": ["4"], "mpn_or_sku": 5},
        "none": None,
        "undeclared": 6,
    }
    assert documents.rewrite_variables(operation, variables, V4) == {
        "q": [{"mpnOrSku": "1"}, {"mpn": "2", "limit": 3}],
        "one": {"mpnOrSku": "3"},
        "filters": {"manufacturer_id": ["4"], "mpn_or_sku": 5},
        "none": None,
    }


def test_every_name_of_v4_has_a_namesake_of_the_same_type() -> None:
    """Fields, arguments, input fields, values and defaults: nothing has to be refused, and nothing is required anew."""
    different, same = [], 0
    for name, kind in V4.type_map.items():
        namesake: Any = NEXAR.type_map.get(documents.type_name(name))
        if type(namesake) is not type(kind):
            different.append(name)
        for member, definition in getattr(kind, "fields", {}).items():
            same += 1
            if not name.startswith("__") and _differs(name, member, definition, namesake):
                different.append(f"{name}.{member}")
        if not set(getattr(kind, "values", ())) <= set(getattr(namesake, "values", ())):
            different.append(f"{name} values")
    assert different == []
    assert same > 200


def _described(definition: Any) -> Any:
    """The type and default of a field, argument or input field."""
    default = getattr(definition, "default", None)
    return str(definition.type), default and graphql.print_ast(default.literal)


def _differs(name: str, member: str, definition: Any, namesake: Any) -> bool:
    """Whether a member of a v4 type has no equal one in a Nexar type, or one that needs arguments that v4 lacks."""
    new = namesake.fields.get(documents.field_name(name, member))
    if new is None or _described(new) != _renamed(definition):
        return True
    old_arguments = {documents.member_name(known): each for known, each in getattr(definition, "args", {}).items()}
    new_arguments = getattr(new, "args", {})
    return any(
        known not in new_arguments or _described(new_arguments[known]) != _renamed(each)
        for known, each in old_arguments.items()
    ) or any(known not in old_arguments for known, each in new_arguments.items() if graphql.is_required_argument(each))


def _renamed(definition: Any) -> Any:
    kind, default = _described(definition)
    named = str(graphql.get_named_type(definition.type))
    return kind.replace(named, documents.type_name(named)), default


def test_shipped_schema_is_that_of_the_contract() -> None:
    shipped = Path(documents.__file__).with_name("schema.graphql").read_text(encoding="utf-8")
    assert shipped == (ROOT / "contract" / "v4-supply.graphql").read_text(encoding="utf-8")


@settings(max_examples=25)
@given(st.randoms())
def test_random_documents_become_valid_nexar_documents_with_results_of_the_v4_shape(random: Random) -> None:
    made = random_documents.random_document(V4, random)
    note(made.text)
    before = graphql.parse(made.text)
    assert graphql.validate(V4, before) == []
    after = documents.rewrite(before, V4)
    assert graphql.validate(NEXAR, after) == []
    operation = graphql.get_operation_ast(before, made.operation_name)
    assert operation is not None
    variables = documents.rewrite_variables(operation, made.variables, V4)
    expected = _executed(V4, before, made.variables, made.operation_name)
    got = _executed(NEXAR, after, variables, made.operation_name)
    assert _ordered(v4_shape.with_v4_types(got.data, before, operation)) == _ordered(expected.data)
    assert [(error.path, error.locations) for error in got.errors or ()] == [
        (error.path, error.locations) for error in expected.errors or ()
    ]


def _executed(schema: Any, document: Any, variables: Any, operation: str | None) -> graphql.ExecutionResult:
    """Execute a document with values that depend on names and arguments, and are equal for both names of a field."""
    result = graphql.execute_sync(
        schema,
        document,
        {"value": ""},
        variable_values=variables,
        operation_name=operation,
        field_resolver=_resolve,
        type_resolver=lambda _value, _info, kind: min(each.name for each in schema.get_possible_types(kind)),
    )
    assert isinstance(result, graphql.ExecutionResult)
    return result


def _resolve(source: Any, info: graphql.GraphQLResolveInfo[Any], **arguments: Any) -> Any:
    definitions = info.parent_type.fields[info.field_name].args
    sent = sorted((_plain(name), _plain_value(value, definitions[name].type)) for name, value in arguments.items())
    # Arguments that v4 lacks, which have a default.
    sent = [(name, value) for name, value in sent if name != "attributeselection"]
    name = _plain(info.field_name).removeprefix("sup")
    return _made(info.return_type, f"{source['value']}/{name}{sent}")


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _plain_value(value: Any, kind: Any) -> Any:
    """Return an input value with names that do not depend on the API."""
    kind = graphql.get_nullable_type(kind)
    if isinstance(kind, graphql.GraphQLList) and isinstance(value, list):
        return [_plain_value(item, kind.of_type) for item in value]
    if isinstance(kind, graphql.GraphQLInputObjectType) and value is not None:
        return sorted((_plain(name), _plain_value(inner, kind.fields[name].type)) for name, inner in value.items())
    return value


def _made(kind: Any, seed: str) -> Any:
    number = int(hashlib.sha256(seed.encode()).hexdigest()[:8], 16)
    if not isinstance(kind, graphql.GraphQLNonNull) and number % 5 == 0:
        return None
    kind = graphql.get_nullable_type(kind)
    if isinstance(kind, graphql.GraphQLList):
        return [_made(kind.of_type, f"{seed}[{n}]") for n in range(number % 3)]
    if graphql.is_leaf_type(kind):
        values = getattr(kind, "values", None)
        return _SCALARS.get(kind.name, str)(number) if values is None else [*values][number % len(values)]
    return {"value": seed}


_SCALARS: dict[str, Any] = {
    "Int": lambda number: number % 1000,
    "Float": lambda number: number / 8,
    "Boolean": lambda number: number % 2 == 0,
    "Map": lambda number: {"some_key": number},
}


def _ordered(data: Any) -> Any:
    """Return data in which the order of keys counts when it is compared."""
    if isinstance(data, dict):
        return [(key, _ordered(value)) for key, value in data.items()]
    return [_ordered(item) for item in data] if isinstance(data, list) else data
