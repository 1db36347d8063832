"""Errors of the query service: the response formats of contract graphql.md §2.2 and §3.2.

Builders return dicts for the "errors" list of a body. Messages marked "ours" are our choice: the contract has none.
"""

from collections.abc import Sequence
from typing import Any

from graphql import GraphQLError

SCHEMA_NAME = "Supply"
DESIGN_NAME = "Design"
INVALID_TOKEN = "Token validation failed. Please provide a valid access token."  # noqa: S105 (a message)
EXPIRED_TOKEN = "The access token has expired"  # noqa: S105 (a message)


class ServiceError(Exception):
    """The service behind the gateway rejects a field; the message is for the client."""

    schema_name = SCHEMA_NAME


class DesignError(ServiceError):
    """The design services reject a field."""

    schema_name = DESIGN_NAME


class RequestError(Exception):
    """The whole request fails with an HTTP status, "errors", and `data: null` or no data.

    A `fixed` status is sent in every media type; others become 200 in `application/json`.
    """

    def __init__(
        self, status: int, errors: Sequence[dict[str, Any]], null_data: bool = False, fixed: bool = False
    ) -> None:
        super().__init__(status)
        self.status, self.errors, self.null_data, self.fixed = status, list(errors), null_data, fixed


def stitched(
    message: str, path: list[str | int], locations: list[dict[str, int]], schema_name: str = SCHEMA_NAME
) -> dict[str, Any]:
    """An error of a field, as the gateway forwards it from the service behind it."""
    remote = {"message": message, "path": path}
    extensions = {"remote": remote, "schemaName": schema_name}
    return {"message": message, "locations": locations, "path": path, "extensions": extensions}


def part_limit(limit: int) -> dict[str, Any]:
    """The part limit is exceeded: no path, no locations, no code."""
    message = (
        f"You have exceeded your part limit of {limit}. Please upgrade your plan. "
        "Contact us at api@nexar.com for assistance."
    )
    return {"message": message, "extensions": {"remote": {"message": message}, "schemaName": SCHEMA_NAME}}


def unauthorized(expired: bool, path: list[str | int] | None, locations: list[dict[str, int]]) -> dict[str, Any]:
    """The token is missing, invalid or expired. `path` None: the document could not be parsed."""
    message, code = (EXPIRED_TOKEN, "AuthExpiredToken") if expired else (INVALID_TOKEN, "AuthInvalidToken")
    return _auth(message, code, path, locations, SCHEMA_NAME)


def out_of_scope(path: list[str | int], locations: list[dict[str, int]], schema_name: str) -> dict[str, Any]:
    """The token lacks a scope that the operation needs. Not in the contract: message and code are those of the
    service's software, Hot Chocolate (contract graphql.md §3.3)."""
    message = "The current user is not authorized to access this resource."
    return _auth(message, "AUTH_NOT_AUTHORIZED", path, locations, schema_name)


def _auth(
    message: str, code: str, path: list[str | int] | None, locations: list[dict[str, int]], schema_name: str
) -> dict[str, Any]:
    place: dict[str, Any] = {} if path is None else {"locations": locations, "path": path}
    remote = {"message": message, **({} if path is None else {"path": path}), "extensions": {"code": code}}
    return {"message": message, **place, "extensions": {"code": code, "remote": remote, "schemaName": schema_name}}


def missing_feature(name: str, field: str) -> str:
    """The message for a field outside the plan (ours)."""
    return f"You do not have access to {field}: your plan lacks the feature {name}. Please upgrade your plan."


def bad_request(message: str, code: str, status: int = 400) -> RequestError:
    """The request is not a GraphQL request (codes of contract graphql.md §3.3)."""
    return RequestError(status, [{"message": message, "extensions": {"code": code}}], fixed=True)


def too_large(limit: int) -> RequestError:
    """The body is longer than `limit` bytes (message ours; HC0010 is the code of the service's software)."""
    return bad_request(f"The request body is longer than {limit} bytes.", "HC0010", status=413)


def unsupported(reason: str) -> RequestError:
    """The content type is not supported (ours)."""
    return bad_request(f"The content type must be application/json in UTF-8; {reason}.", "HC0009", status=415)


def not_acceptable(accept: str) -> RequestError:
    """None of the media types in Accept is available (message ours; HC0063 is the code of the service's software)."""
    message = f"No media type in `Accept: {accept}` is one that can be sent: application/json is."
    return bad_request(message, "HC0063", status=406)


def not_safe() -> RequestError:
    """A GET is not a query; the message of the service's software, which has no code for it."""
    return RequestError(405, [{"message": "The specified operation kind is not allowed."}], fixed=True)


def no_socket() -> RequestError:
    """A subscription was sent by POST (ours)."""
    message = "Subscriptions are answered over a WebSocket, with the protocol graphql-transport-ws."
    return RequestError(400, [{"message": message}], fixed=True)


def not_persisted() -> RequestError:
    """A persisted query is requested; there are none (contract graphql.md §3.3)."""
    return RequestError(200, [{"message": "PersistedQueryNotFound", "extensions": {"code": "HC0020"}}])


def timed_out(seconds: float) -> RequestError:
    """The execution exceeded its timeout, which is formatted as in .NET."""
    whole_seconds, fraction = divmod(round(seconds * 1e7), 10**7)
    time = f"{whole_seconds // 3600:02}:{whole_seconds // 60 % 60:02}:{whole_seconds % 60:02}" + (
        f".{fraction:07}" if fraction else ""
    )
    message = f"The request exceeded the configured timeout of `{time}`."
    return RequestError(500, [{"message": message, "extensions": {"code": "HC0045"}}])


def too_complex(limit: int) -> RequestError:
    """The response has more fields than `limit`."""
    message = "The maximum allowed operation complexity was exceeded."
    return RequestError(400, [{"message": message, "extensions": {"allowedComplexity": limit, "code": "HC0047"}}])


def with_code(error: GraphQLError, code: str) -> dict[str, Any]:
    """An error of the GraphQL library with the code that the service would give it."""
    formatted: dict[str, Any] = {**error.formatted}
    formatted["extensions"] = {"code": code, **(error.extensions or {})}
    return formatted


def execution_error(error: GraphQLError) -> dict[str, Any]:
    """An error of an execution: a ServiceError in the stitched format, an unexpected one without its message."""
    original = error.original_error
    if isinstance(original, ServiceError):
        return stitched(str(original), error.path or [], locations_of(error), original.schema_name)
    if original is None:
        return {**error.formatted}
    plain = GraphQLError("Unexpected Execution Error", error.nodes, path=error.path)
    return {**plain.formatted}


def locations_of(error: GraphQLError) -> list[dict[str, int]]:
    """The locations of an error in the document."""
    return [{"line": place.line, "column": place.column} for place in error.locations or ()]


def variable_error(error: GraphQLError) -> dict[str, Any]:
    """An invalid value of a variable; an error without a location is about the operation and has no code."""
    if not error.nodes:
        return {**error.formatted}
    return with_code(error, "HC0018" if "of non-null type" in error.message else "HC0016")
