"""Schema drift: what the upstream lacks of what the mappings read, and the v3 fields that lose their source."""

import json
from collections.abc import Callable
from pathlib import Path

import graphql
import msgspec
import pytest
from support import cases

from proxy.doctor import introspection
from proxy.kit import shipped
from proxy.mapping import drift, loader

COMPLETE = Path(__file__).parents[3] / "sandbox" / "nexar_sandbox" / "graphql" / "schema.graphql"
Remote = dict[str, drift.RemoteType]


@pytest.fixture(scope="module")
def mappings() -> loader.Mappings:
    return loader.load(shipped.path("mappings"))


@pytest.fixture(scope="module")
def remote(mappings: loader.Mappings) -> Remote:
    """The types of the sandbox's complete schema."""
    operation = introspection.operation(mappings.schema.named_types())
    schema = graphql.build_schema(COMPLETE.read_text(encoding="utf-8"), assume_valid_sdl=True)
    result = graphql.graphql_sync(schema, json.loads(operation.payload)["query"])
    envelope = operation.decode(json.dumps({"data": result.data}).encode())
    assert envelope.data is not None
    return envelope.data.types


def without(remote: Remote, type_name: str, *names: str) -> Remote:
    """Return the types without some fields of one of them."""
    kind = remote[type_name]
    kept = msgspec.structs.replace(
        kind,
        fields=kind.fields and [field for field in kind.fields if field.name not in names],
        input_fields=kind.input_fields and [field for field in kind.input_fields if field.name not in names],
        enum_values=kind.enum_values and [value for value in kind.enum_values if value.name not in names],
    )
    return {**remote, type_name: kept}


def retyped(remote: Remote, type_name: str, name: str, change: Callable[[str], str]) -> Remote:
    """Return the types with another type of one field, as SDL."""
    kind = remote[type_name]
    fields = [
        msgspec.structs.replace(field, type=_reference(change(str(field.type)))) if field.name == name else field
        for field in kind.fields or []
    ]
    return {**remote, type_name: msgspec.structs.replace(kind, fields=fields)}


def _reference(text: str) -> drift.RemoteTypeReference:
    if text.endswith("!"):
        return drift.RemoteTypeReference("NON_NULL", None, _reference(text[:-1]))
    if text.startswith("["):
        return drift.RemoteTypeReference("LIST", None, _reference(text[1:-1]))
    scalar = text in {"ID", "Int", "Float", "String", "Time", "DateTime", "Url"}
    return drift.RemoteTypeReference("SCALAR" if scalar else "OBJECT", text)


def test_complete_schema_has_no_drift(mappings: loader.Mappings, remote: Remote) -> None:
    assert drift.compare(mappings, remote) == []


def test_every_field_that_the_mappings_read_is_missed_and_its_uses_are_named(
    mappings: loader.Mappings, remote: Remote
) -> None:
    unused = set()
    for type_name, kind in mappings.schema.named_types().items():
        if isinstance(kind, graphql.GraphQLEnumType):
            continue
        for field in kind.fields:  # type: ignore[attr-defined]  # objects and inputs have fields
            (difference,) = drift.compare(mappings, without(remote, type_name, field))
            assert (difference.place, difference.problem, difference.breaks) == (
                f"{type_name}.{field}",
                "is gone",
                True,
            )
            if not difference.affected:
                unused.add(difference.place)
    assert unused == set()


@cases.parametrize("type_name, field, affected")
def test_missing_field_names_the_v3_fields_that_lose_their_source(
    mappings: loader.Mappings, remote: Remote, type_name: str, field: str, affected: list[str]
) -> None:
    (difference,) = drift.compare(mappings, without(remote, type_name, field))
    assert list(difference.affected) == affected


@pytest.mark.parametrize(
    "change, problem, breaks",
    [
        (lambda _: "ID!", None, None),
        (lambda _: "Int!", "is Int! instead of String!", True),
        (lambda _: "Url!", "is Url! instead of String!", False),
        (lambda _: "[String!]!", "is [String!]! instead of String!", True),
        (lambda text: text.removesuffix("!"), "may be null now: String instead of String!", False),
        (lambda _: "SupText!", "is SupText! instead of String!", True),
    ],
)
def test_changed_type_is_told_by_its_consequence(
    mappings: loader.Mappings, remote: Remote, change: Callable[[str], str], problem: str | None, breaks: bool | None
) -> None:
    differences = drift.compare(mappings, retyped(remote, "SupPart", "mpn", change))
    assert [(each.place, each.problem, each.breaks) for each in differences] == (
        [("SupPart.mpn", problem, breaks)] if problem else []
    )


@pytest.mark.parametrize("change", [lambda text: text.replace("!]", "]"), lambda text: text.removesuffix("!")])
def test_nulls_in_lists_are_drift(mappings: loader.Mappings, remote: Remote, change: Callable[[str], str]) -> None:
    (difference,) = drift.compare(mappings, retyped(remote, "SupPart", "images", change))
    assert (difference.place, difference.breaks) == ("SupPart.images", False)


def test_further_required_argument_and_lost_enum_value_are_drift(mappings: loader.Mappings, remote: Remote) -> None:
    query = remote["Query"]
    required = drift.RemoteArgument("tenant", _reference("String!"))
    optional = drift.RemoteArgument("tenant", _reference("String!"), '"none"')
    for argument, expected in ((required, ["Query.supSellers(tenant)"]), (optional, [])):
        fields = [
            msgspec.structs.replace(field, args=[*field.args, argument]) if field.name == "supSellers" else field
            for field in query.fields or []
        ]
        types = {**remote, "Query": msgspec.structs.replace(query, fields=fields)}
        assert [each.place for each in drift.compare(mappings, types)] == expected
    assert [each.place for each in drift.compare(mappings, without(remote, "SupSortDirection", "desc"))] == [
        "SupSortDirection.desc"
    ]
