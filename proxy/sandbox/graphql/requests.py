"""The body of a POST, parsed into one frozen value (contract graphql.md §3.1). Batches are not taken."""

from dataclasses import dataclass
from typing import Any

import orjson

from proxy.sandbox.graphql import problems


@dataclass(frozen=True, slots=True)
class Request:
    """What a client asks: the document's text and the values of its variables."""

    query: str
    variables: dict[str, Any]
    operation_name: str | None


def read(body: bytes) -> Request:
    """The request in `body`. Raises RequestError (400) for anything that is none."""
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise problems.bad_request("The request body is not valid JSON.", "HC0012") from None
    if isinstance(content, list):
        raise problems.bad_request("Batches of requests are not supported.", "HC0009")
    if not isinstance(content, dict):
        raise problems.bad_request("The request body must be a JSON object.", "HC0012")
    query, variables, name = (content.get(key) for key in ("query", "variables", "operationName"))
    if not isinstance(query, str) or not query.strip():
        raise problems.bad_request("The request must have a `query`.", "HC0013")
    if variables is not None and not isinstance(variables, dict):
        raise problems.bad_request("`variables` must be a JSON object.", "HC0012")
    if name is not None and not isinstance(name, str):
        raise problems.bad_request("`operationName` must be a string.", "HC0012")
    return Request(query, variables or {}, name or None)
