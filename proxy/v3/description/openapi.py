"""OpenAPI 3.1 description of v3's endpoints, generated from the endpoint table, the parameters and the mappings.

Encoded once at start and served without an API key: of the configuration it has only the site's name.
"""

from collections.abc import Iterator
from typing import Any

from proxy import __version__, model
from proxy.mapping import loader
from proxy.v3 import bounds, headers
from proxy.v3.description import field_names, object_schemas, response_schemas
from proxy.v3.description.response_schemas import ANY, FLAG, NULL, TEXT, WHOLE, Schema, either, list_of, ref
from proxy.v3.endpoints import ENDPOINTS, PREFIXES, Endpoint
from proxy.v3.parsing import request_parameters as readers
from proxy.v3.parsing import v3_parameters
from proxy.v3.parsing.v3_parameters import Parameter

PATH = "/openapi.json"
CONTRACT = "x-contract"  # extension: file and section of contract/
ACTIONS = {"match": "Match part numbers", "search": "Search", "get_multi": "Several by uid", "get": "One by uid"}
HEADERS = {
    "X-Request-Id": {"description": "the request's id in the log", "schema": TEXT},
    "X-Cache": {"description": "source of the results", "schema": {"enum": ["hit", "shared", "miss", "stale"]}},
    "X-Parts-Cost": {"description": "parts that the response cost", "schema": {"type": "integer"}},
    "X-Parts-Used": {"description": "parts used or uncertain in this period", "schema": {"type": "integer"}},
    "X-Parts-Limit": {"description": "limit of the period, if there is one", "schema": {"type": "integer"}},
    "X-Parts-Reset": {"description": "seconds until the quota is reset", "schema": {"type": "integer"}},
    "Deprecation": {"description": "`@` and seconds since 1970, where the API key has a sunset", "schema": TEXT},
    "Sunset": {"description": "last second of service to the API key, an HTTP date", "schema": TEXT},
    "Link": {"description": "pages on the deprecation and the sunset", "schema": TEXT},
}
UNSUPPORTED = {
    str(headers.X_V3_UNSUPPORTED): {
        "description": "parameters that the response ignores, comma-separated, percent-encoded; "
        "`+3` at the end stands for three more",
        "schema": {"type": "string", "pattern": r"^[A-Za-z0-9\-._~%\[\]=]+(, [A-Za-z0-9\-._~%\[\]=]+)*(, \+\d+)?$"},
    }
}
RETRY_AFTER = {"Retry-After": {"description": "seconds, where they are known", "schema": {"type": "integer"}}}
KINDS: dict[v3_parameters.Kind, Schema] = {
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
# Limits of the values of a parameter with a field name.
ITEMS: dict[str, Schema] = {"filter[fields]": {"maxItems": bounds.FILTER_VALUES.maximum}}
# Recorded v3 uids, contract v3-rest.md §1 and §3.2.
UIDS = {
    "Part": "bd4d768f82c5628a",
    "Brand": "2239e3330e2df5fe",
    "Category": "8a1e4714bb3951d9",
    "Seller": "2c3be9310496fffc",
}


def document(mappings: loader.Mappings) -> dict[str, Any]:
    """Return the description as JSON data."""
    refused = {
        status: _refused(status) for endpoint in ENDPOINTS for status in response_schemas.error_statuses(endpoint)
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "v3 parts API",
            "version": __version__,
            "summary": "The retired v3 parts API, answered from the GraphQL service that replaced it",
            "description": "GET, HEAD and OPTIONS; any other method is a 405. A trailing slash is accepted. "
            "show[] and hide[] can remove any field of an object: therefore none of them is required.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": prefix} for prefix in PREFIXES],
        "security": [{"apikey": []}],
        "paths": {endpoint.path: {"get": _operation(mappings, endpoint)} for endpoint in ENDPOINTS},
        "components": {
            "schemas": object_schemas.components(mappings) | response_schemas.components(),
            "responses": {f"Error{status}": refused[status] for status in sorted(refused)},
            "securitySchemes": {"apikey": _apikey()},
        },
    }


def _apikey() -> dict[str, Any]:
    key = v3_parameters.APIKEY
    return {"type": "apiKey", "in": "query", "name": key.name, **_explained(key)}


def _operation(mappings: loader.Mappings, endpoint: Endpoint) -> dict[str, Any]:
    failures = {
        str(status): {"$ref": f"#/components/responses/Error{status}"}
        for status in response_schemas.error_statuses(endpoint)
    }
    operation = {
        "operationId": f"{endpoint.path.split('/')[1]}_{endpoint.action}",
        "summary": f"{ACTIONS[endpoint.action]}: {endpoint.object}",
        "description": f"Parts billed: {endpoint.cost}.",
        "tags": [endpoint.object],
        "parameters": [*parameters_of(mappings, endpoint)],
        "responses": {"200": _answered(endpoint), **failures},
    }
    return operation | ({"deprecated": True} if endpoint.alias_of else {})


def _answered(endpoint: Endpoint) -> dict[str, Any]:
    errors = [ref(name) for name in response_schemas.ERRORS]
    return {
        "description": "the response; with suppress_status_codes also any error",
        "headers": HEADERS | UNSUPPORTED,
        "content": _content(either(response_schemas.answer(endpoint), *errors)),
    }


def _refused(status: int) -> dict[str, Any]:
    kinds = [kind for kind in response_schemas.error_types() if kind.status == status]
    return {
        "description": " ".join((kind.__doc__ or "").partition("\n")[0] for kind in kinds),
        "headers": HEADERS | (RETRY_AFTER if status in (429, 503) else {}),
        "content": _content(ref(kinds[0].v3_class)),
    }


def _content(schema: Schema) -> dict[str, Any]:
    return {
        "application/json": {"schema": schema},
        "application/javascript": {"schema": {"type": "string", "description": "with callback: a call of it"}},
    }


def parameters_of(mappings: loader.Mappings, endpoint: Endpoint) -> Iterator[dict[str, Any]]:
    """Return all parameters of an endpoint except apikey, which is its security scheme."""
    accepted = (*v3_parameters.of(endpoint), *v3_parameters.GLOBALS)
    for parameter in accepted:
        if parameter.head is None:
            yield _single(mappings, endpoint, parameter)
    for head in dict.fromkeys(parameter.head for parameter in accepted if parameter.head):
        yield _by_field(mappings, endpoint, [parameter for parameter in accepted if parameter.head == head])


def _single(mappings: loader.Mappings, endpoint: Endpoint, parameter: Parameter) -> dict[str, Any]:
    place = "path" if f"{{{parameter.name}}}" in endpoint.path else "query"
    description: dict[str, Any] = {
        "name": parameter.name,
        "in": place,
        "required": parameter.required,
        **_explained(parameter),
    }
    if parameter.kind == "queries":
        return description | {"content": {"application/json": {"schema": _queries(), "example": [{"mpn": "SN74S74N"}]}}}
    description["schema"] = _value_schema(parameter) | LIMITS.get(parameter.name, {})
    if parameter.kind == "texts" and (names := field_names.named(mappings, endpoint.object, parameter)):
        # The names are a help for people and generators; unknown ones are ignored, so any text is valid.
        description["schema"] |= list_of(either({"enum": names}, TEXT))
    if parameter.name in ("uid", "uid[]"):
        description["example"] = UIDS[endpoint.object] if place == "path" else [UIDS[endpoint.object]]
    return description


def _by_field(mappings: loader.Mappings, endpoint: Endpoint, group: list[Parameter]) -> dict[str, Any]:
    """Return one object parameter for the parameters with a field name: field to value, or field to options."""
    first = group[0]
    options = {parameter.option: _value_schema(parameter) | _explained(parameter) for parameter in group}
    value = options.get("") or {
        "type": "object",
        "properties": options,
        "additionalProperties": False,
        "minProperties": 1,
    }
    value = value | ITEMS.get(first.head or "", {})
    schema: Schema = {
        "type": "object",
        "properties": dict.fromkeys(field_names.named(mappings, endpoint.object, first), value),
        "additionalProperties": value if first.kind == "slice" else False,
    }
    if field_names.takes_specs(endpoint.object, first):
        schema["patternProperties"] = {field_names.SPECS_PATTERN: value}
    schema |= LIMITS.get(first.head or "", {})
    names = ", ".join(parameter.name for parameter in group)
    return {
        "name": first.head,
        "in": "query",
        "description": f"{names}: brackets go as deep as the object",
        # the only style for name[key]; OpenAPI does not define it below one level
        "style": "deepObject",
        "explode": True,
        "schema": schema,
    }


def _explained(parameter: Parameter) -> Schema:
    return {"description": parameter.meaning, CONTRACT: f"v3-rest.md {parameter.source}"}


def _queries() -> Schema:
    properties = {
        key.name: (either(_value_schema(key), NULL) if key.kind != "any" else ANY) | _explained(key)
        for key in v3_parameters.QUERY
    }
    query = {
        "type": "object",
        "properties": properties,
        "description": "unknown keys are ignored and named in X-V3-Unsupported",
    }
    return {**list_of(query), "maxItems": model.MATCH_QUERIES_MAX}


def _value_schema(parameter: Parameter) -> Schema:
    schema = dict(KINDS[parameter.kind])
    if parameter.maximum is not None:
        schema["maximum"] = parameter.maximum
    if parameter.default is not None:
        schema["default"] = parameter.default
    return schema
