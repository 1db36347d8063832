"""Tests of rewriting v4 documents: by examples, name by name, and with random documents."""

from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import graphql
from graphql.execution.values import get_variable_values
from hypothesis import given, note, settings
from hypothesis import strategies as st
from support import cases, random_documents

from proxy import v4
from proxy.graphql.documents import DocumentRequest

ROOT = Path(__file__).parents[3]
V4 = v4.schema()
COMPLETE = (ROOT / "sandbox" / "nexar_sandbox" / "graphql" / "schema.graphql").read_text(encoding="utf-8")
NEXAR = graphql.build_schema(COMPLETE, assume_valid_sdl=True)


def rewritten(
    text: str, operation_name: str | None = None, variables: Mapping[str, Any] = {}
) -> tuple[graphql.DocumentNode, DocumentRequest]:
    """A request after rewriting, and its document, operations first; it is valid before and after."""
    request = v4.V4DocumentReader(V4).request(text, operation_name, variables)
    definitions = *request.document.operations.values(), *request.document.fragments.values()
    document = graphql.DocumentNode(definitions=definitions)
    assert graphql.validate(NEXAR, document) == []
    return document, request


@cases.parametrize("before, after")
def test_document_gets_the_names_of_the_nexar_api(before: str, after: str) -> None:
    assert " ".join(graphql.print_ast(rewritten(before)[0]).split()) == after


def test_variables_get_the_names_of_the_nexar_api() -> None:
    text = """query ($q: [PartMatchQuery!]!, $one: [PartMatchQuery!]!, $filters: Map, $none: PartMatchOptions,
    $left: Int) { multi_match(queries: $q) { hits } other: multi_match(queries: $one, options: $none) { hits }
    search(filters: $filters, limit: $left) { hits } }"""
    variables = {
        "q": [{"mpn_or_sku": "1"}, {"mpn": "2", "limit": 3}],
        "one": {"mpn_or_sku": "3"},
        "filters": {"manufacturer_id": ["4"], "mpn_or_sku": 5},
        "none": None,
        "undeclared": 6,
    }
    assert rewritten(text, None, variables)[1].variables == {
        "q": [{"mpnOrSku": "1"}, {"mpn": "2", "limit": 3}],
        "one": {"mpnOrSku": "3"},
        "filters": {"manufacturer_id": ["4"], "mpn_or_sku": 5},
        "none": None,
    }


def test_every_name_of_v4_has_a_namesake_of_the_same_type() -> None:
    """Fields, arguments, input fields, values and defaults: nothing has to be refused, and nothing is required anew."""
    different, same = [], 0
    for name, kind in V4.type_map.items():
        namesake: Any = NEXAR.type_map.get(v4.type_name(name))
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
    default = getattr(definition, "default", None)
    return str(definition.type), default and graphql.print_ast(default.literal)


def _differs(name: str, member: str, definition: Any, namesake: Any) -> bool:
    """Whether a member of a v4 type has no equal one in a Nexar type, or one that needs arguments that v4 lacks."""
    new = namesake.fields.get(v4.field_name(name, member))
    if new is None or _described(new) != _renamed(definition):
        return True
    old_arguments = {v4.member_name(known): each for known, each in getattr(definition, "args", {}).items()}
    new_arguments = getattr(new, "args", {})
    return any(
        known not in new_arguments or _described(new_arguments[known]) != _renamed(each)
        for known, each in old_arguments.items()
    ) or any(known not in old_arguments for known, each in new_arguments.items() if graphql.is_required_argument(each))


def _renamed(definition: Any) -> Any:
    kind, default = _described(definition)
    named = str(graphql.get_named_type(definition.type))
    return kind.replace(named, v4.type_name(named)), default


def test_shipped_schema_is_that_of_the_contract() -> None:
    shipped = Path(v4.__file__).with_name("schema.graphql").read_text(encoding="utf-8")
    assert shipped == (ROOT / "contract" / "v4-supply.graphql").read_text(encoding="utf-8")


@settings(max_examples=50)
@given(st.randoms())
def test_random_documents_become_valid_nexar_documents_with_the_same_keys(random: Random) -> None:
    made = random_documents.random_document(V4, random)
    note(made.text)
    operations_first = sorted(graphql.parse(made.text).definitions, key=lambda each: each.kind, reverse=True)
    after, request = rewritten(made.text, made.operation_name, made.variables)
    assert keys(after) == keys(graphql.DocumentNode(definitions=tuple(operations_first)))
    coerced = get_variable_values(NEXAR, request.operation.variable_definitions or (), dict(request.variables))
    assert not isinstance(coerced, list), coerced


def keys(document: graphql.DocumentNode) -> list[str]:
    """Return the keys that the fields of a document have in a response, in its order."""
    found: list[str] = []

    class Keys(graphql.Visitor):
        def enter_field(self, node: graphql.FieldNode, *_: Any) -> None:
            found.append((node.alias or node.name).value)

    graphql.visit(document, Keys())
    return found
