"""The OpenAPI 3.1 description of v3's surface, made of the route table, the parameters' data and the mappings.

Written once at start and served as it is, to anybody: it holds nothing of the configuration but the site's name.
"""

from typing import Any

from aiohttp import web

from proxy import __version__
from proxy.endpoints import ENDPOINTS, PREFIXES, Endpoint
from proxy.kit import encoding
from proxy.mapping import loader
from proxy.web.v3 import routes, unsupported
from proxy.web.v3.description import envelopes, inputs, parameters, refusals, shapes
from proxy.web.v3.description.envelopes import TEXT, Schema, either, ref

PATH = "/openapi.json"
ACTIONS = {"match": "Match part numbers", "search": "Search", "get_multi": "Several by uid", "get": "One by uid"}
HEADERS = {
    "X-Request-Id": {"description": "the request's name in the log", "schema": TEXT},
    "X-Cache": {"description": "where the answers came from", "schema": {"enum": ["hit", "shared", "miss", "stale"]}},
    "X-Parts-Cost": {"description": "parts that the reply cost", "schema": {"type": "integer"}},
    "X-Parts-Used": {"description": "parts used or in doubt in this period", "schema": {"type": "integer"}},
    "X-Parts-Limit": {"description": "parts of the period, where they are limited", "schema": {"type": "integer"}},
    "X-Parts-Reset": {"description": "seconds until the period begins anew", "schema": {"type": "integer"}},
}
UNSUPPORTED = {
    str(unsupported.HEADER): {
        "description": "parameters that the answer leaves out of account, comma-separated, percent-encoded; "
        "`+3` at the end stands for three more",
        "schema": {"type": "string", "pattern": r"^[A-Za-z0-9\-._~%\[\]=]+(, [A-Za-z0-9\-._~%\[\]=]+)*(, \+\d+)?$"},
    }
}
LATER = {"Retry-After": {"description": "seconds, where they are known", "schema": {"type": "integer"}}}


def add_to(app: web.Application, mappings: loader.Mappings) -> None:
    """Serve the description at /openapi.json under both prefixes; no apikey needed."""
    body = encoding.encode(document(mappings))

    async def description(_: web.Request) -> web.Response:
        response = web.Response(body=body, content_type="application/json")
        response.enable_compression()
        return response

    for prefix in PREFIXES:
        app.router.add_get(f"{prefix}{PATH}", description)
        app.router.add_route("*", f"{prefix}{PATH}", routes.other_method)


def document(mappings: loader.Mappings) -> dict[str, Any]:
    """The description."""
    refused = {status: _refused(status) for endpoint in ENDPOINTS for status in refusals.of(endpoint)}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "v3 parts API",
            "version": __version__,
            "summary": "The retired v3 parts API, answered from the GraphQL service that replaced it",
            "description": "GET, HEAD and OPTIONS; any other method is a 405. A trailing slash is accepted. "
            "show[] and hide[] can take any field of an object away: therefore none of them is required.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": prefix} for prefix in PREFIXES],
        "security": [{"apikey": []}],
        "paths": {endpoint.path: {"get": _operation(mappings, endpoint)} for endpoint in ENDPOINTS},
        "components": {
            "schemas": shapes.components(mappings) | envelopes.components(),
            "responses": {f"Error{status}": refused[status] for status in sorted(refused)},
            "securitySchemes": {"apikey": _apikey()},
        },
    }


def _apikey() -> dict[str, Any]:
    key = parameters.APIKEY
    return {"type": "apiKey", "in": "query", "name": key.name, "description": key.meaning}


def _operation(mappings: loader.Mappings, endpoint: Endpoint) -> dict[str, Any]:
    failures = {str(status): {"$ref": f"#/components/responses/Error{status}"} for status in refusals.of(endpoint)}
    operation = {
        "operationId": f"{endpoint.path.split('/')[1]}_{endpoint.action}",
        "summary": f"{ACTIONS[endpoint.action]}: {endpoint.object}",
        "description": f"Parts billed: {endpoint.cost}.",
        "tags": [endpoint.object],
        "parameters": list(inputs.of(mappings, endpoint)),
        "responses": {"200": _answered(endpoint), **failures},
    }
    return operation | ({"deprecated": True} if endpoint.alias_of else {})


def _answered(endpoint: Endpoint) -> dict[str, Any]:
    errors = [ref(each.name) for each in envelopes.ERRORS]
    return {
        "description": "the answer; with suppress_status_codes also any error",
        "headers": HEADERS | UNSUPPORTED,
        "content": _content(either(envelopes.answer(endpoint), *errors)),
    }


def _refused(status: int) -> dict[str, Any]:
    kinds = [kind for kind in refusals.kinds() if kind.status == status]
    return {
        "description": " ".join((kind.__doc__ or "").partition("\n")[0] for kind in kinds),
        "headers": HEADERS | (LATER if status in (429, 503) else {}),
        "content": _content(ref(kinds[0].v3_class)),
    }


def _content(schema: Schema) -> dict[str, Any]:
    return {
        "application/json": {"schema": schema},
        "application/javascript": {"schema": {"type": "string", "description": "with callback: a call of it"}},
    }
