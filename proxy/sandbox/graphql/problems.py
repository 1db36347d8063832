"""What the query service says when it refuses: the shapes of contract graphql.md §2.2 and §3.2.

Every builder gives a dict ready for the "errors" list of a body. Texts marked "ours" are not in the contract.
"""

from collections.abc import Sequence
from typing import Any

from graphql import GraphQLError

SCHEMA_NAME = "Supply"
INVALID_TOKEN = "Token validation failed. Please provide a valid access token."  # noqa: S105 (a message)
EXPIRED_TOKEN = "The access token has expired"  # noqa: S105 (a message)


class ServiceError(Exception):
    """The service behind the gateway refuses a field; the message is for the caller."""


class RequestError(Exception):
    """The whole request gets this answer: an HTTP status, "errors", and `data: null` or no data."""

    def __init__(self, status: int, errors: Sequence[dict[str, Any]], null_data: bool = False) -> None:
        super().__init__(status)
        self.status, self.errors, self.null_data = status, list(errors), null_data


def stitched(message: str, path: list[str | int], locations: list[dict[str, int]]) -> dict[str, Any]:
    """An error of a field, as the gateway passes it on from the service behind it."""
    remote = {"message": message, "path": path}
    extensions = {"remote": remote, "schemaName": SCHEMA_NAME}
    return {"message": message, "locations": locations, "path": path, "extensions": extensions}


def part_limit(limit: int) -> dict[str, Any]:
    """The part limit is used up: no path, no locations, no code."""
    message = (
        f"You have exceeded your part limit of {limit}. Please upgrade your plan. "
        "Contact us at api@nexar.com for assistance."
    )
    return {"message": message, "extensions": {"remote": {"message": message}, "schemaName": SCHEMA_NAME}}


def unauthorized(expired: bool, path: list[str | int] | None, locations: list[dict[str, int]]) -> dict[str, Any]:
    """The token is missing, not ours, or its time is over. `path` None: the document could not be read."""
    message, code = (EXPIRED_TOKEN, "AuthExpiredToken") if expired else (INVALID_TOKEN, "AuthInvalidToken")
    place: dict[str, Any] = {} if path is None else {"locations": locations, "path": path}
    remote = {"message": message, **({} if path is None else {"path": path}), "extensions": {"code": code}}
    return {
        "message": message,
        **place,
        "extensions": {"code": code, "remote": remote, "schemaName": SCHEMA_NAME},
    }


def feature(name: str, field: str) -> str:
    """The text for a field outside the plan (ours)."""
    return f"You do not have access to {field}: your plan lacks the feature {name}. Please upgrade your plan."


def bad_request(message: str, code: str) -> RequestError:
    """The body is not a GraphQL request (codes of contract graphql.md §3.3)."""
    return RequestError(400, [{"message": message, "extensions": {"code": code}}])


def coded(error: GraphQLError, code: str) -> dict[str, Any]:
    """An error of the GraphQL library with the code that the service would give it."""
    formatted: dict[str, Any] = {**error.formatted}
    formatted["extensions"] = {"code": code, **(error.extensions or {})}
    return formatted


def executed(error: GraphQLError) -> dict[str, Any]:
    """An error of an execution: refusals in the stitched shape; anything else without its text."""
    original = error.original_error
    if isinstance(original, ServiceError):
        return stitched(str(original), error.path or [], locations_of(error))
    if original is None:
        return {**error.formatted}
    plain = GraphQLError("Unexpected Execution Error", error.nodes, path=error.path)
    return {**plain.formatted}


def locations_of(error: GraphQLError) -> list[dict[str, int]]:
    """Where in the document."""
    return [{"line": place.line, "column": place.column} for place in error.locations or ()]


def variable(error: GraphQLError) -> dict[str, Any]:
    """A value of a variable does not fit; an error without a place is about the operation and has no code."""
    if not error.nodes:
        return {**error.formatted}
    return coded(error, "HC0018" if "of non-null type" in error.message else "HC0016")
