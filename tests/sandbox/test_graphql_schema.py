"""The schema file against the contract's tables, held as data in schema_facts.txt."""

from collections.abc import Iterator
from pathlib import Path

from graphql import (
    GraphQLArgument,
    GraphQLEnumType,
    GraphQLField,
    GraphQLInputField,
    GraphQLInputObjectType,
    GraphQLNamedType,
    GraphQLObjectType,
    GraphQLScalarType,
    GraphQLUnionType,
    is_introspection_type,
    is_required_argument,
    is_specified_directive,
    is_specified_scalar_type,
    print_ast,
)
from support.sandbox_client import SandboxClient

from nexar_sandbox.graphql import schema

FACTS = Path(__file__).with_name("schema_facts.txt").read_text(encoding="utf-8").splitlines()[1:]
BUILT = schema.build()


def declared(name: str, field: GraphQLField | GraphQLInputField) -> str:
    arguments = field.args if isinstance(field, GraphQLField) else {}
    listed = ", ".join(with_default(arg, one) for arg, one in arguments.items())
    head = f"{name}({listed})" if listed else name
    default = with_default("", field).partition(" = ")[2] if isinstance(field, GraphQLInputField) else ""
    kind = f"{field.type} = {default}" if default else str(field.type)
    return f"{head}: {kind}{' †' if field.deprecation_reason else ''}"


def with_default(name: str, value: GraphQLArgument | GraphQLInputField) -> str:
    assert value.ast_node is not None
    default = value.ast_node.default_value
    return f"{name}: {value.type}" + (f" = {print_ast(default)}" if default else "")


def lines() -> list[str]:
    found = []
    for kind in BUILT.type_map.values():
        if isinstance(kind, GraphQLObjectType) and not is_introspection_type(kind):
            prefix = "query " if kind.name == "Query" else f"type {kind.name}."
            found += [prefix + declared(name, field) for name, field in kind.fields.items()]
        elif isinstance(kind, GraphQLInputObjectType):
            found += [f"input {kind.name}." + declared(name, field) for name, field in kind.fields.items()]
        elif isinstance(kind, GraphQLEnumType) and not is_introspection_type(kind):
            found.append(f"enum {kind.name}: {' '.join(kind.values)}")
        elif isinstance(kind, GraphQLUnionType):
            found.append(f"union {kind.name}: {' '.join(one.name for one in kind.types)}")
        elif isinstance(kind, GraphQLScalarType) and not is_specified_scalar_type(kind):
            found.append(f"scalar {kind.name}")
    return found + directives()


def directives() -> list[str]:
    own = [one for one in BUILT.directives if not is_specified_directive(one)]
    arguments = {
        one.name: ", ".join(f"{name}{'!' if is_required_argument(arg) else ''}" for name, arg in one.args.items())
        for one in own
    }
    return [f"directive @{name}" + (f"({listed})" if listed else "") for name, listed in arguments.items()]


def test_the_schema_declares_exactly_what_the_contract_lists() -> None:
    assert sorted(lines()) == sorted(FACTS)


def test_every_type_and_operation_is_described() -> None:
    roots = [root for root in (BUILT.query_type, BUILT.mutation_type, BUILT.subscription_type) if root is not None]
    bare = [kind.name for kind in BUILT.type_map.values() if not kind.description and kind.name != "Query"]
    assert bare == []
    assert [name for root in roots for name, field in root.fields.items() if not field.description] == []


def test_all_of_the_supply_and_admin_schema_is_described() -> None:
    kinds = [kind for kind in BUILT.type_map.values() if kind.name.startswith(("Sup", "Adm", "Query"))]
    found = {place: text for kind in kinds for place, text in described(kind) if not place.startswith("Query.des")}
    assert len(found) > 400
    assert [place for place, text in found.items() if not text] == []


def described(kind: GraphQLNamedType) -> Iterator[tuple[str, str | None]]:
    """Every place in the type with its description."""
    for name, field in getattr(kind, "fields", {}).items():
        yield f"{kind.name}.{name}", field.description
        for argument, one in getattr(field, "args", {}).items():
            yield f"{kind.name}.{name}({argument})", one.description
    for name, value in getattr(kind, "values", {}).items():
        yield f"{kind.name}.{name}", value.description


async def test_introspection_has_descriptions_and_deprecation_reasons(caller: SandboxClient) -> None:
    response = await caller.ask(
        '{ query: __type(name: "Query") { fields(includeDeprecated: true) { name description isDeprecated'
        " deprecationReason args { name description defaultValue } } }"
        ' image: __type(name: "SupImage") { fields { name } }'
        ' company: __type(name: "SupCompany") { fields(includeDeprecated: true) { name deprecationReason } } }'
    )
    queries = {one["name"]: one for one in response.data["query"]["fields"]}
    old = [one["name"] for one in queries.values() if one["isDeprecated"] and one["name"].startswith("sup")]
    assert old == ["supOctopartIdFromCiivaId"]
    assert queries["supOctopartIdFromCiivaId"]["deprecationReason"] == "Use supPartIdFromCiivaId."
    limit = next(one for one in queries["supSearch"]["args"] if one["name"] == "limit")
    assert "0 to 100; 10 when absent" in limit["description"]
    timeout = next(one for one in queries["supSearch"]["args"] if one["name"] == "distributorApiTimeout")
    assert timeout["defaultValue"] == '"3s"'
    assert [one["name"] for one in response.data["image"]["fields"]] == ["url", "creditString", "creditUrl"]
    reasons = {one["name"]: one["deprecationReason"] for one in response.data["company"]["fields"]}
    assert {name: why for name, why in reasons.items() if why} == {"isBroker": "Use SupPartSeller.isBroker."}
