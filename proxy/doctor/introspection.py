"""Introspection of the upstream's types by name: costs no parts, and one request.

Only the types that the mappings read are requested: the whole schema has hundreds of others. mapping/drift.py compares
the result.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from proxy import model
from proxy.mapping import drift

NAME = "introspection"
QUERY_TYPE = "Query"  # what the mappings call it, whatever its name is upstream
# Types of fields have at most four levels, as in [SupPart!]!. Without `includeDeprecated` the fields that v3's pictures
# are read from would seem to be gone.
_FRAGMENTS = """
fragment Reference on __Type { kind name ofType { kind name ofType { kind name ofType { kind name } } } }
fragment Argument on __InputValue { name defaultValue type { ...Reference } }
fragment Described on __Type {
  name
  fields(includeDeprecated: true) { name type { ...Reference } args { ...Argument } }
  inputFields { ...Argument }
  enumValues(includeDeprecated: true) { name }
}
"""


class IntrospectedTypes(msgspec.Struct, frozen=True):
    """Types of the upstream by name; those that it does not have are left out."""

    types: dict[str, drift.RemoteType]


class IntrospectionEnvelope(msgspec.Struct, frozen=True):
    """Response to an introspection."""

    data: IntrospectedTypes | None = None
    errors: list[model.GraphQLError] | None = None


@dataclass(frozen=True, slots=True)
class IntrospectionOperation:
    """Operation that introspects some types; implements classify.GraphQLOperation."""

    payload: bytes
    decode: Callable[[bytes], IntrospectionEnvelope]
    name: str = NAME


def operation(type_names: Iterable[str]) -> IntrospectionOperation:
    """Return the operation for these types; the query type is always among them."""
    named = [name for name in type_names if name != QUERY_TYPE]
    # Names of types are no input of users, and GraphQL has no list argument for them: each is an alias.
    fields = " ".join(f'{name}: __type(name: "{name}") {{ ...Described }}' for name in named)
    document = f"query {NAME} {{ __schema {{ queryType {{ ...Described }} }} {fields} }}{_FRAGMENTS}"
    payload = msgspec.json.encode({"operationName": NAME, "query": document})
    return IntrospectionOperation(payload, _decode)


class _RawEnvelope(msgspec.Struct, frozen=True):
    data: dict[str, msgspec.Raw] | None = None
    errors: list[model.GraphQLError] | None = None


class _Root(msgspec.Struct, frozen=True, rename="camel"):
    query_type: drift.RemoteType


_raw_decoder = msgspec.json.Decoder(_RawEnvelope)
_root_decoder = msgspec.json.Decoder(_Root)
_type_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(drift.RemoteType | None)


def _decode(body: bytes) -> IntrospectionEnvelope:
    envelope = _raw_decoder.decode(body)
    if envelope.data is None:
        return IntrospectionEnvelope(None, envelope.errors)
    fields = dict(envelope.data)
    if "__schema" not in fields:
        raise msgspec.ValidationError("the response has no __schema")
    types = {QUERY_TYPE: _root_decoder.decode(fields.pop("__schema")).query_type}
    types |= {name: kind for name, raw in fields.items() if (kind := _type_decoder.decode(raw)) is not None}
    return IntrospectionEnvelope(IntrospectedTypes(types), envelope.errors)
