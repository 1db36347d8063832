"""Parameters as OpenAPI has them: for openapi.py.

OpenAPI has no word for a name with a field's name inside. `facet[fields][brand.name][include]` is therefore one object
parameter `facet[fields]` in the style deepObject, whose brackets go as deep as the object.
"""

from collections.abc import Iterator
from typing import Any

from proxy import bounds, model
from proxy.endpoints import Endpoint
from proxy.mapping import loader
from proxy.web.v3 import parameters as readers
from proxy.web.v3.description import fields, parameters
from proxy.web.v3.description.envelopes import ANY, FLAG, NULL, TEXT, WHOLE, Schema, either, list_of
from proxy.web.v3.description.parameters import Parameter

KINDS: dict[parameters.Kind, Schema] = {
    "text": TEXT,
    "texts": list_of(TEXT),
    "flag": FLAG,
    "whole": {**WHOLE, "minimum": 0},
    "slice": {"type": "string", "pattern": f"^{readers.SLICE.pattern}$"},
    "any": ANY,
}
LIMITS: dict[str, Schema] = {
    "callback": {"maxLength": bounds.CALLBACK.maximum, "pattern": f"^({readers.CALLBACK.pattern})?$"},
    "q": {"maxLength": bounds.Q.maximum},
    "sortby": {"pattern": f"^[^,]*(,[^,]*){{0,{bounds.SORT_KEYS.maximum - 1}}}$"},
    "uid[]": {"minItems": 1, "maxItems": bounds.UIDS.maximum},
    **{name: {"maxItems": bounds.PROJECTION.maximum} for name in ("include[]", "show[]", "hide[]")},
    "slice": {"maxProperties": bounds.PROJECTION.maximum},
    "filter[fields]": {"maxProperties": bounds.FILTERS.maximum},
    "filter[queries][]": {"maxItems": bounds.FILTER_QUERIES.maximum},
    "facet[queries][]": {"maxItems": bounds.COUNTS.maximum},
    "facet[fields]": {"maxProperties": bounds.COUNTS.maximum},
    "stats": {"maxProperties": bounds.COUNTS.maximum},
}
# Of the values of a parameter that holds the name of a field.
ITEMS: dict[str, Schema] = {"filter[fields]": {"maxItems": bounds.FILTER_VALUES.maximum}}
# Recorded v3 uids, contract v3-rest.md §1 and §3.2.
UIDS = {
    "Part": "bd4d768f82c5628a",
    "Brand": "2239e3330e2df5fe",
    "Category": "8a1e4714bb3951d9",
    "Seller": "2c3be9310496fffc",
}


def of(mappings: loader.Mappings, endpoint: Endpoint) -> Iterator[dict[str, Any]]:
    """All parameters of an endpoint but the apikey, which is its security scheme."""
    wanted = (*parameters.of(endpoint), *parameters.GLOBALS)
    for parameter in wanted:
        if parameter.head is None:
            yield _single(mappings, endpoint, parameter)
    for head in dict.fromkeys(parameter.head for parameter in wanted if parameter.head):
        yield _by_field(mappings, endpoint, [parameter for parameter in wanted if parameter.head == head])


def _single(mappings: loader.Mappings, endpoint: Endpoint, parameter: Parameter) -> dict[str, Any]:
    place = "path" if f"{{{parameter.name}}}" in endpoint.path else "query"
    made: dict[str, Any] = {
        "name": parameter.name,
        "in": place,
        "required": parameter.required,
        "description": parameter.meaning,
    }
    if parameter.kind == "queries":
        return made | {"content": {"application/json": {"schema": _queries(), "example": [{"mpn": "SN74S74N"}]}}}
    made["schema"] = _schema(parameter) | LIMITS.get(parameter.name, {})
    if parameter.kind == "texts" and (known := fields.named(mappings, endpoint.object, parameter)):
        made["schema"] |= list_of(either({"enum": known}, TEXT))
    if parameter.name in ("uid", "uid[]"):
        made["example"] = UIDS[endpoint.object] if place == "path" else [UIDS[endpoint.object]]
    return made


def _by_field(mappings: loader.Mappings, endpoint: Endpoint, group: list[Parameter]) -> dict[str, Any]:
    """One object for the parameters that begin alike: field to value, or field to options."""
    first = group[0]
    options = {parameter.option: {**_schema(parameter), "description": parameter.meaning} for parameter in group}
    value = options.get("") or {
        "type": "object",
        "properties": options,
        "additionalProperties": False,
        "minProperties": 1,
    }
    value = value | ITEMS.get(first.head or "", {})
    schema: Schema = {
        "type": "object",
        "properties": dict.fromkeys(fields.named(mappings, endpoint.object, first), value),
        "additionalProperties": value if first.kind == "slice" else False,
    }
    if fields.takes_specs(endpoint.object, first):
        schema["patternProperties"] = {fields.SPECS_PATTERN: value}
    schema |= LIMITS.get(first.head or "", {})
    names = ", ".join(parameter.name for parameter in group)
    return {
        "name": first.head,
        "in": "query",
        "description": f"{names}: brackets go as deep as the object",
        "style": "deepObject",
        "explode": True,
        "schema": schema,
    }


def _queries() -> Schema:
    properties = {
        key.name: {**(either(_schema(key), NULL) if key.kind != "any" else ANY), "description": key.meaning}
        for key in parameters.QUERY
    }
    query = {
        "type": "object",
        "properties": properties,
        "description": "unknown keys are ignored and named in X-V3-Unsupported",
    }
    return {**list_of(query), "maxItems": model.MATCH_QUERIES_MAX}


def _schema(parameter: Parameter) -> Schema:
    schema = dict(KINDS[parameter.kind])
    if parameter.maximum is not None:
        schema["maximum"] = parameter.maximum
    if parameter.default is not None:
        schema["default"] = parameter.default
    return schema
