"""GraphQL requests: parsing the parameters from a body or a URL (GraphQL over HTTP, "GraphQLRequest"; contract
graphql.md §3.1). Of `extensions` only a persisted query is read.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from multidict import MultiMapping

from nexar_sandbox.graphql import errors

PARAMETERS = ("query", "operationName", "variables", "extensions")
CONTENT_TYPE = "application/json"
CHARSETS = frozenset({"utf-8", "utf8"})


@dataclass(frozen=True, slots=True)
class GraphQLRequest:
    """A request: the document and the values of its variables. `safe`: it must not be a mutation (HTTP GET)."""

    query: str
    variables: dict[str, Any]
    operation_name: str | None
    safe: bool = False


def check_type(content_type: str | None, charset: str | None) -> None:
    """Raise RequestError (415) for a content type other than JSON in UTF-8."""
    media_type, reason = (content_type or "").partition(";")[0].strip(), ""
    if media_type.lower() != CONTENT_TYPE:
        reason = f"it is `{media_type}`" if media_type else "the request has none"
    elif charset is not None and charset.lower() not in CHARSETS:
        reason = f"its charset is `{charset}`"
    if reason:  # the message is ours
        message = f"The content type must be application/json in UTF-8; {reason}."
        raise errors.bad_request(message, "HC0009", status=415)


def parse_body(body: bytes) -> GraphQLRequest:
    """Return the request in a body. Raises RequestError (400) for an invalid one."""
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise errors.bad_request("The request body is not valid JSON.", "HC0012") from None
    if isinstance(content, list):
        raise errors.bad_request("Batches of requests are not supported.", "HC0009")
    return parse_object(content)


def parse_object(content: Any) -> GraphQLRequest:
    """Return the request in decoded JSON. Raises RequestError (400) for an invalid one."""
    if not isinstance(content, dict):
        raise errors.bad_request("The request body must be a JSON object.", "HC0012")
    return _request(content, safe=False)


def parse_url(parameters: MultiMapping[str]) -> GraphQLRequest:
    """Return the request in the query string of a URL: objects are JSON text, empty parameters are ignored. Raises
    RequestError (400)."""
    content: dict[str, Any] = {}
    for name in PARAMETERS:
        values = [value for value in parameters.getall(name, []) if value]
        if len(values) > 1:
            raise errors.bad_request(f"`{name}` is given {len(values)} times.", "HC0012")
        if values:
            try:
                content[name] = orjson.loads(values[0]) if name in ("variables", "extensions") else values[0]
            except orjson.JSONDecodeError:
                raise errors.bad_request(f"`{name}` is not valid JSON.", "HC0012") from None
    return _request(content, safe=True)


def _request(content: Mapping[str, Any], *, safe: bool) -> GraphQLRequest:
    query, name = content.get("query"), content.get("operationName")
    variables, extensions = _map(content, "variables"), _map(content, "extensions")
    if query is None and (isinstance(content.get("id"), str) or "persistedQuery" in extensions):
        not_found = {"message": "PersistedQueryNotFound", "extensions": {"code": "HC0020"}}
        raise errors.RequestError(200, [not_found])
    if not isinstance(query, str) or not query.strip():
        raise errors.bad_request("The request must have a `query`.", "HC0013")
    if name is not None and not isinstance(name, str):
        raise errors.bad_request("`operationName` must be a string.", "HC0012")
    return GraphQLRequest(query, variables, name or None, safe)


def _map(content: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = content.get(name)
    if value is not None and not isinstance(value, dict):
        raise errors.bad_request(f"`{name}` must be a JSON object.", "HC0012")
    return value or {}
