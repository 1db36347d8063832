"""Errors of the query service: the response formats of contract graphql.md §2.2 and §3.2.

Builders return dicts for the "errors" list of a body. Messages marked "ours" are our choice: the contract has none.
"""

from collections.abc import Sequence
from typing import Any

from graphql import GraphQLError

from nexar_sandbox import behavior as behaviors

SCHEMA_NAME = "Supply"
DESIGN_NAME = "Design"
ADMIN_NAME = "Admin"
EXPIRED_TOKEN = "The access token has expired"  # noqa: S105 (a message)


class ServiceError(Exception):
    """The service behind the gateway rejects a field; the message is for the client."""

    schema_name = SCHEMA_NAME


class FeatureError(ServiceError):
    """The field is outside the plan."""


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


class ErrorFormat:
    """Errors in the formats of the service, with the changed details of a `behavior`."""

    def __init__(self, behavior: behaviors.Behavior) -> None:
        self._behavior = behavior

    def stitched(
        self,
        message: str,
        path: list[str | int] | None,
        locations: list[dict[str, int]],
        schema_name: str = SCHEMA_NAME,
        code: str | None = None,
    ) -> dict[str, Any]:
        """Return an error as the gateway forwards it from the service behind it. `path` None: it is about no field."""
        place: dict[str, Any] = {} if path is None else {"locations": locations, "path": path}
        coded = {} if code is None else {"code": code}
        if not self._behavior.remote_errors:
            return {"message": message, **place, **({"extensions": coded} if coded else {})}
        remote: dict[str, Any] = {"message": message} | ({} if path is None else {"path": path})
        remote |= {"extensions": coded} if coded else {}
        return {"message": message, **place, "extensions": {**coded, "remote": remote, "schemaName": schema_name}}

    def part_limit(self, limit: int) -> dict[str, Any]:
        """Return the error of an exceeded part limit: no path, no locations, no code."""
        message = self._behavior.part_limit_message.format(limit=limit)
        return self.stitched(message, None, [], code=self._behavior.part_limit_code)

    def limit(self, message: str, path: list[str | int], locations: list[dict[str, int]]) -> dict[str, Any]:
        """Return the error of an argument of a root field that is out of its range."""
        return self.stitched(message, path if self._behavior.range_error_path else None, locations)

    def unauthorized(
        self, token: str | None, expired: bool, path: list[str | int] | None, locations: list[dict[str, int]]
    ) -> RequestError:
        """Return the error of a token that is missing (None), invalid or expired. `path` None: the document could not
        be parsed."""
        behavior = self._behavior
        message, code = (
            (EXPIRED_TOKEN, "AuthExpiredToken")
            if expired
            else (behavior.invalid_token_message, behavior.invalid_token_code)
        )
        status = behavior.invalid_token_status
        if not token:
            status, code = behavior.missing_token_status, behavior.missing_token_code
        error = self.stitched(message, path if behavior.token_error_path else None, locations, code=code)
        return RequestError(status, [error], null_data=behavior.token_error_data, json_status=None)

    def out_of_scope(self, path: list[str | int], locations: list[dict[str, int]], schema_name: str) -> dict[str, Any]:
        """Return the error of a token that lacks a needed scope. Not in the contract: message and code are those of
        the service's software, Hot Chocolate (contract graphql.md §3.3)."""
        message = "The current user is not authorized to access this resource."
        return self.stitched(message, path, locations, schema_name, self._behavior.scope_error_code)

    def document(self, errors: Sequence[dict[str, Any]]) -> RequestError:
        """Return the error of an invalid document, operation name or variable."""
        behavior = self._behavior
        return RequestError(behavior.document_error_status, errors, json_status=behavior.document_error_status_json)

    def variable(self, error: GraphQLError) -> dict[str, Any]:
        """Return the error of a variable's value; one without a location is about the operation and has no code."""
        if not error.nodes:
            return {**error.formatted}
        is_null = "of non-null type" in error.message
        return with_code(error, self._behavior.null_variable_code if is_null else self._behavior.variable_error_code)

    def execution(self, error: GraphQLError) -> dict[str, Any]:
        """Return an error of an execution: a ServiceError in the stitched format, an unexpected one without its
        message."""
        original, path = error.original_error, error.path or []
        if isinstance(original, FeatureError):
            shown_path = path if self._behavior.feature_error_path else None
            code = self._behavior.feature_error_code
            return self.stitched(str(original), shown_path, locations_of(error), code=code)
        if isinstance(original, ServiceError):
            return self.stitched(str(original), path, locations_of(error), original.schema_name)
        if original is None:
            return {**error.formatted}
        plain = GraphQLError("Unexpected Execution Error", error.nodes, path=error.path)
        return {**plain.formatted}


def bad_request(message: str, code: str, status: int = 400) -> RequestError:
    """Return the error of what is not a GraphQL request (codes of contract graphql.md §3.3)."""
    return RequestError(status, [{"message": message, "extensions": {"code": code}}], json_status=None)


def unsupported(reason: str) -> RequestError:
    """Return the error of an unsupported content type (ours)."""
    return bad_request(f"The content type must be application/json in UTF-8; {reason}.", "HC0009", status=415)


def timed_out(seconds: float) -> RequestError:
    """Return the error of an exceeded timeout, which is formatted as in .NET."""
    whole_seconds, fraction = divmod(round(seconds * 1e7), 10**7)
    time = f"{whole_seconds // 3600:02}:{whole_seconds // 60 % 60:02}:{whole_seconds % 60:02}" + (
        f".{fraction:07}" if fraction else ""
    )
    message = f"The request exceeded the configured timeout of `{time}`."
    return RequestError(500, [{"message": message, "extensions": {"code": "HC0045"}}])


def with_code(error: GraphQLError, code: str) -> dict[str, Any]:
    """Return an error of the GraphQL library with the code that the service would give it."""
    formatted: dict[str, Any] = {**error.formatted}
    formatted["extensions"] = {"code": code, **(error.extensions or {})}
    return formatted


def locations_of(error: GraphQLError) -> list[dict[str, int]]:
    return [{"line": place.line, "column": place.column} for place in error.locations or ()]
