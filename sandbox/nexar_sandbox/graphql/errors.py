"""Errors of the query service: the response formats of contract graphql.md §2.2 and §3.2.

Builders return dicts for the "errors" list of a body. Messages marked "ours" are our choice: the contract has none.
"""

from collections.abc import Sequence
from typing import Any

from graphql import GraphQLError

SCHEMA_NAME = "Supply"
DESIGN_NAME = "Design"
# Messages are no passwords (S105).
INVALID_TOKEN = "Token validation failed. Please provide a valid access token."  # noqa: S105
EXPIRED_TOKEN = "The access token has expired"  # noqa: S105
PART_LIMIT = (
    "You have exceeded your part limit of {limit}. Please upgrade your plan. "
    "Contact us at api@nexar.com for assistance."
)


class ServiceError(Exception):
    """The service behind the gateway rejects a field; the message is for the client."""

    schema_name = SCHEMA_NAME


class DesignError(ServiceError):
    """The design services reject a field."""

    schema_name = DESIGN_NAME


class RequestError(Exception):
    """The whole request fails with an HTTP status, "errors", and `data: null` or no data.

    `json_status` is sent to clients that name `application/json`; None: the same status.
    """

    def __init__(
        self,
        status: int,
        errors: Sequence[dict[str, Any]],
        null_data: bool = False,
        json_status: int | None = 200,
    ) -> None:
        super().__init__(status)
        self.status, self.errors, self.null_data, self.json_status = status, list(errors), null_data, json_status


def stitched(
    message: str,
    path: list[str | int] | None,
    locations: list[dict[str, int]],
    schema_name: str = SCHEMA_NAME,
    code: str | None = None,
) -> dict[str, Any]:
    """Return an error as the gateway forwards it from the service behind it. `path` None: it is about no field."""
    place: dict[str, Any] = {} if path is None else {"locations": locations, "path": path}
    coded = {} if code is None else {"code": code}
    remote: dict[str, Any] = {"message": message} | ({} if path is None else {"path": path})
    remote |= {"extensions": coded} if coded else {}
    return {"message": message, **place, "extensions": {**coded, "remote": remote, "schemaName": schema_name}}


def part_limit(limit: int) -> RequestError:
    """Return the error of an exceeded part limit: no path, no locations, no code."""
    return RequestError(200, [stitched(PART_LIMIT.format(limit=limit), None, [])], null_data=True, json_status=None)


def unauthorized(expired: bool, path: list[str | int] | None, locations: list[dict[str, int]]) -> RequestError:
    """Return the error of a token that is missing, invalid or expired. `path` None: the document could not be
    parsed."""
    message, code = (EXPIRED_TOKEN, "AuthExpiredToken") if expired else (INVALID_TOKEN, "AuthInvalidToken")
    return RequestError(401, [stitched(message, path, locations, code=code)], json_status=None)


def out_of_scope(path: list[str | int], locations: list[dict[str, int]], schema_name: str) -> dict[str, Any]:
    """Return the error of a token that lacks a needed scope. Not in the contract: message and code are those of the
    service's software, Hot Chocolate (contract graphql.md §3.3)."""
    message = "The current user is not authorized to access this resource."
    return stitched(message, path, locations, schema_name, "AUTH_NOT_AUTHORIZED")


def invalid_document(errors: Sequence[dict[str, Any]]) -> RequestError:
    """Return the error of an invalid document, operation name or variable."""
    return RequestError(400, errors, json_status=200)


def variable_error(error: GraphQLError) -> dict[str, Any]:
    """Return the error of a variable's value; one without a location is about the operation and has no code."""
    if not error.nodes:
        return {**error.formatted}
    return with_code(error, "HC0018" if "of non-null type" in error.message else "HC0016")


def execution_error(error: GraphQLError) -> dict[str, Any]:
    """Return an error of an execution: a ServiceError in the stitched format, an unexpected one without its message."""
    original = error.original_error
    if isinstance(original, ServiceError):
        return stitched(str(original), error.path or [], locations_of(error), original.schema_name)
    if original is None:
        return {**error.formatted}
    return {**GraphQLError("Unexpected Execution Error", error.nodes, path=error.path).formatted}


def bad_request(message: str, code: str, status: int = 400) -> RequestError:
    """Return the error of what is not a GraphQL request (codes of contract graphql.md §3.3)."""
    return RequestError(status, [{"message": message, "extensions": {"code": code}}], json_status=None)


def too_complex(max_fields: int) -> RequestError:
    """Return the error of a response with more fields than are allowed."""
    extensions = {"allowedComplexity": max_fields, "code": "HC0047"}
    message = "The maximum allowed operation complexity was exceeded."
    return RequestError(400, [{"message": message, "extensions": extensions}])


def with_code(error: GraphQLError, code: str) -> dict[str, Any]:
    """Return an error of the GraphQL library with the code that the service would give it."""
    formatted: dict[str, Any] = {**error.formatted}
    formatted["extensions"] = {"code": code, **(error.extensions or {})}
    return formatted


def locations_of(error: GraphQLError) -> list[dict[str, int]]:
    return [{"line": place.line, "column": place.column} for place in error.locations or ()]
