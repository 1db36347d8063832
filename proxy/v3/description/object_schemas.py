"""JSON schemas of v3's objects, derived from the mappings, for the OpenAPI description and the documentation.

A plain field has its type in the upstream schema; one with a transform has the transform's return type. Any field can
be hidden by show[], hide[] or include[], so none is required.
"""

from typing import Any, get_type_hints

import msgspec

from proxy.mapping import loader, paths, reading, selection
from proxy.mapping.rules import FieldRule
from proxy.mapping.schema import SCALARS
from proxy.v3.description.response_schemas import NULL, Schema, by_key, either, list_of, ref


def components(mappings: loader.Mappings) -> dict[str, Schema]:
    """Return the schema of every v3 object by the object's name."""
    return {name: _object(mappings, name) for name in mappings.rules}


def field(mappings: loader.Mappings, name: str, field_name: str) -> Schema:
    rule = mappings.rules[name].rule(field_name)
    if rule.constant:
        return _constant(rule.blank if rule.none is not None else rule.always)
    schema, nullable = _value_schema(mappings, name, rule)
    # Without the feature in the plan a client sees the blank.
    return _or(schema, rule.blank) if nullable or rule.feature else schema


def paths_of(mappings: loader.Mappings, name: str, depth: int = 3) -> list[str]:
    """Return the dotted paths that show[] and hide[] can name, up to `depth` levels, without the keys of keyed
    objects."""
    names: list[str] = []
    for field_name in mappings.rules[name].fields:
        rule = mappings.rules[name].rule(field_name)
        names.append(field_name)
        if rule.target and not rule.keyed and depth > 1:
            names += [f"{field_name}.{below}" for below in paths_of(mappings, rule.target, depth - 1)]
    return names


def lists_of(mappings: loader.Mappings, name: str) -> list[str]:
    """Return the list fields of an object, which slice[] can cut."""
    rules = mappings.rules[name]
    return [field_name for field_name in rules.fields if field(mappings, name, field_name).get("type") == "array"]


def _object(mappings: loader.Mappings, name: str) -> Schema:
    rules = mappings.rules[name]
    class_name = name if rules.class_ is None else rules.class_
    properties: dict[str, Schema] = {"__class__": {"const": class_name}} if class_name else {}
    properties |= {field_name: field(mappings, name, field_name) for field_name in rules.fields}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _value_schema(mappings: loader.Mappings, name: str, rule: FieldRule) -> tuple[Schema, bool]:
    """Return the schema of a rule's values, and whether they may be replaced by the field's empty value."""
    if rule.each:
        return list_of(ref(rule.each)), False
    if rule.keyed:
        return by_key(ref(rule.keyed)), False
    if not isinstance(rule.paths, str):
        return _returned(mappings, rule.through), False
    read, listed = _read(mappings, name, rule.paths)
    if rule.is_:
        return ref(rule.is_), bool(read.nulls or rule.only)
    if rule.through:
        return _returned(mappings, rule.through), bool(read.nulls)
    schema: Schema = msgspec.json.schema(SCALARS[read.node.type_name])
    return list_of(schema) if listed else schema, bool(read.nulls)


def _read(mappings: loader.Mappings, name: str, text: str) -> tuple[reading.ReadExpression, bool]:
    """Return the expression of a path, and whether it is a list."""
    rules = mappings.rules[name]
    # Only the types are wanted: no expression is written, so it may be empty.
    here, above = (reading.Cursor("", selection.Node(kind)) for kind in (rules.reads, rules.under or rules.reads))
    around, reader, route = reading.Scope(here, above), reading.PathReader(mappings.schema), paths.parse(text)
    listed = route.origin != "context" and reader.is_list(route.steps, around.origin(route).node)
    return reader.read(text, around), listed


def _returned(mappings: loader.Mappings, transform: str | None) -> Schema:
    hints: dict[str, Any] = get_type_hints(mappings.transforms[transform or ""], include_extras=True)
    return msgspec.json.schema(hints["return"])


def _constant(value: Any) -> Schema:
    return NULL if value is None else {"const": value}


def _or(schema: Schema, blank: Any) -> Schema:
    """Return a schema that also accepts the empty value."""
    kinds = {type(None): "null", str: "string", list: "array", dict: "object", bool: "boolean", int: "integer"}
    choices = schema.get("anyOf", [schema])
    if any(choice.get("type") == kinds[type(blank)] for choice in choices):
        return schema
    return either(*choices, _constant(blank))
