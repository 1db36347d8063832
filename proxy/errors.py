"""All exceptions that the service raises on purpose, in one tree.

The web layer makes error responses of `status`, `message` and `retry_after`; the command line prints a StartError and
exits. Messages are for people and never hold an API key, a secret or a token.

    BridgeError
    ├── ClientError    the request cannot be served
    ├── ServerError    the request is valid, but there is no result
    └── StartError     never seen by a client: the service, or a command, cannot begin
"""

# ruff: noqa: N818  (the names say what happened; a suffix Error would add nothing)

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self


def seconds_to_next_month(now: float) -> int:
    """Whole seconds, at least 1, from `now` (seconds since 1970) to the 1st of the next month, 00:00 UTC."""
    # The upstream resets quotas on the 1st (contract graphql.md §6). At which hour is not documented: UTC is assumed.
    today = datetime.fromtimestamp(now, UTC)
    first = datetime(today.year + today.month // 12, today.month % 12 + 1, 1, tzinfo=UTC)
    return max(1, math.ceil(first.timestamp() - now))


class BridgeError(Exception):
    """Base class. `status`: HTTP status; `retry_after`: whole seconds, for the Retry-After header; `may_be_billed`: the
    request may have returned parts, which are uncertain usage; it is not sent again; `reported`: the upstream's own
    errors."""

    status = 500
    default = ""  # message where none is given
    retry_after: int | None = None
    _origin: TracebackType | None = None

    def __init_subclass__(cls, status: int | None = None) -> None:
        cls.status = status or cls.status

    def __init__(
        self,
        message: str = "",
        *,
        retry_after: int | None = None,
        may_be_billed: bool = False,
        reported: Sequence[Any] = (),
    ) -> None:
        self.message = message or self.default  # text of the error response
        super().__init__(self.message)
        self.may_be_billed, self.reported = may_be_billed, reported
        if retry_after is not None:
            self.retry_after = retry_after

    def shared(self) -> Self:
        """Return this error, to be raised in one of several requests that it fails: without the frames of the others,
        which would be kept in memory, and walked for each line of the log."""
        self._origin = self._origin or self.__traceback__
        return self.with_traceback(self._origin)


class ClientError(BridgeError, status=400):
    """Error in the request: 4xx."""


class BadRequest(ClientError):
    """A parameter cannot be parsed, or is out of range."""

    refused: str | None = None  # what v3 could do and upstream cannot, such as `sort by 'price'`


class MissingKey(ClientError):
    """The request has no API key."""

    default = "apikey argument missing"  # v3's words, which clients may compare (contract v3-rest.md §5)


class ForbiddenKey(ClientError, status=403):
    """The API key belongs to no application."""

    default = "Forbidden request"


class ExpiredKey(ForbiddenKey):
    """The API key was valid until a day that is over."""


class NotFound(ClientError, status=404):
    """There is no such path, or no object with that uid."""


class MethodNotAllowed(ClientError, status=405):
    """The path does not serve the method."""


class RequestTimeout(ClientError, status=408):
    """The body of the request was not sent in time."""


class Gone(ClientError, status=410):
    """The sunset of the API key has passed."""


class ContentTooLarge(ClientError, status=413):
    """The body of the request is too long."""


class UnsupportedMediaType(ClientError, status=415):
    """The body of the request is of another type or encoding."""


class TooManyRequests(ClientError, status=429):
    """The rate limit of the upstream or the API key is exceeded."""


class QuotaExhausted(ClientError, status=429):
    """The remaining parts do not cover the request; `retry_after`: until the reset."""


class ServerError(BridgeError):
    """Error of the service or the upstream: 5xx. Of this class itself, an unexpected internal error. `backing_off`: the
    error of an earlier request, raised again during the back-off, after which nobody should wait."""

    backing_off = False


class UpstreamUnreachable(ServerError, status=503):
    """No connection, a connection lost before the response, or no response in time."""


class CircuitBreakerOpen(UpstreamUnreachable):
    """The circuit breaker is open: no request is sent for some seconds."""

    backing_off = True


class DeadlineExceeded(UpstreamUnreachable):
    """The time limit of the request passed; does not count as a failure of the service."""


class UpstreamUnreadable(ServerError, status=502):
    """The response is HTML, empty, truncated, or JSON that does not fit the schema."""


class OversizedOperation(UpstreamUnreadable):
    """The operation is too complex for the upstream, or its response has more bytes than allowed."""


class UpstreamFault(ServerError, status=502):
    """5xx from upstream: 503 is passed on, everything else becomes 502."""


class CredentialsRefused(ServerError, status=502):
    """The client credentials, or their tokens, are not accepted. The message names only the application."""

    # Not 4xx: the client's API key is accepted; the operator has to change the configuration.
    code = ""  # of the GraphQL service, for a token


class TokenLimit(ServerError, status=503):
    """The rate limit of token requests is exceeded (contract graphql.md §4.1)."""


class QueryRefused(ServerError, status=502):
    """The upstream refused this query. The message is the upstream's, and becomes the `error` of the query."""

    @property
    def was_executed(self) -> bool:
        """Whether it may have been billed: unless all its errors are of validation, which have no path, or name the
        specification."""
        executed = [each for each in self.reported if each.path is not None]
        return any("specifiedBy" not in (each.extensions or {}) for each in executed)


class StoreUnavailable(ServerError, status=503):
    """The store of tokens and usage cannot be read or written. Nothing is sent upstream that could not be booked. As a
    text it is the `reason`, for operators: it may name a file or a host, and clients get only its message."""

    default = "the store of the service cannot be used; /readyz on the operators' port says why"
    retry_after = 1

    def __init__(self, reason: str, message: str = "") -> None:
        super().__init__(message)
        self.args = (reason,)


class TooManyConnections(ServerError, status=503):
    """The limit of client connections is reached, and further ones serve health checks only; or that of all bodies
    which clients are sending."""


class UpstreamLoop(ServerError, status=508):
    """The request comes from a v3bridge, perhaps this one, whose upstream leads here (RFC 5842 §7.2)."""


class NotFetched(BridgeError, status=200):
    """A quote: parts that are not stored were left where they are."""


class StartError(BridgeError):
    """The service, or a command, cannot begin or go on; of this class itself, for reasons outside the configuration."""


class ConfigError(StartError):
    """Mistakes in the configuration, in a file that it names, or in a mapping. The message has a line for each."""


class SourceError(StartError):
    """A file of recorded requests cannot be read. The message names the file and the reason."""


class SheetError(StartError):
    """A spreadsheet cannot be read or written. One line, which names the file, and where known the sheet and cell."""
