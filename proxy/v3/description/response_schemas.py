"""JSON schemas of what is around v3's objects in responses, from responses.yaml.

Part of the OpenAPI description, by which tests validate real responses. show[] and hide[] do not apply to them.
"""

import functools
from collections.abc import Collection
from pathlib import Path
from typing import Any

from proxy import errors
from proxy.kit import located_yaml
from proxy.v3.endpoints import Endpoint

Schema = dict[str, Any]
ErrorType = type[errors.BridgeError]

TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
FLAG: Schema = {"type": "boolean"}
NULL: Schema = {"type": "null"}
# an empty schema accepts everything
ANY: Schema = {}


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def list_of(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


def by_key(schema: Schema) -> Schema:
    return {"type": "object", "additionalProperties": schema}


def either(*schemas: Schema) -> Schema:
    return {"anyOf": list(schemas)}


def answer(endpoint: Endpoint) -> Schema:
    return {
        "match": ref("PartsMatchResponse"),
        "search": ref(f"{endpoint.object}SearchResponse"),
        "get_multi": by_key(ref(endpoint.object)),
        "get": ref(endpoint.object),
    }[endpoint.action]


@functools.cache
def components() -> dict[str, Schema]:
    """Return the schemas by name; those around the results of a search once for each kind of object."""
    properties = located_yaml.load(Path(__file__).with_name("responses.yaml")).data
    of_parts = properties.pop("PartSearchResponse")
    searches = {schema: properties.pop(schema) for schema in ("NAMESearchResponse", "NAMESearchResult")}
    for name in SEARCHABLE:
        for schema, described in searches.items():
            properties[schema.replace("NAME", name)] = _renamed(described, name)
    properties["PartSearchResponse"] |= of_parts
    return {name: _object(described, OPTIONAL.get(name, ())) for name, described in properties.items()}


def error_types() -> list[ErrorType]:
    """Return every error that a client can get, sorted by status."""
    leaves = [*_leaves(errors.ClientError), *_leaves(errors.ServerError)]
    leaves.remove(errors.UpstreamLoop)  # of GraphQL paths only
    kinds = [*leaves, errors.UpstreamUnreadable, errors.ServerError]
    return sorted(kinds, key=lambda kind: kind.status)


def error_statuses(endpoint: Endpoint) -> list[int]:
    """Return the error statuses of a GET."""
    # get_multi leaves unknown uids out; a GET is never a 405.
    only = {404: endpoint.action == "get", 405: False}
    return [status for status in dict.fromkeys(kind.status for kind in error_types()) if only.get(status, True)]


def _leaves(kind: ErrorType) -> list[ErrorType]:
    """Return the leaf classes below `kind` in errors.py. Subclasses in other packages look the same to a client."""
    # A leaf is what a client can tell: the classes above it only group. An expired key is refused like an unknown one.
    below = [
        subclass
        for subclass in kind.__subclasses__()
        if subclass.__module__ == errors.__name__ and subclass != errors.ExpiredKey
    ]
    return [leaf for subclass in below for leaf in _leaves(subclass)] if below else [kind]


def _object(properties: dict[str, Schema], optional: Collection[str]) -> Schema:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _renamed(schema: Any, name: str) -> Any:
    """Return a schema with references to one kind of object."""
    if isinstance(schema, dict):
        return {key: _renamed(value, name) for key, value in schema.items()}
    return schema.replace("/NAME", f"/{name}") if isinstance(schema, str) else schema


SEARCHABLE = ("Part", "Brand", "Category", "Seller")
OPTIONAL = {"SearchRequest": ("spec_drilldown",)}  # only where it was requested

ERRORS = ("ClientErrorResponse", "ServerErrorResponse")
