"""Every error that this program raises on purpose, so that an edge can look up the reply or exit.

The web edge reads `status`, `v3_class` and `retry_after`; the CLI prints StartError and exits. Messages are
for people and never hold an apikey, a secret or a token.

    BridgeError
    ├── ClientError                 the caller's request cannot be served
    │   ├── BadRequest         400
    │   ├── MissingKey         400
    │   ├── ForbiddenKey       403
    │   ├── NotFound           404
    │   ├── MethodNotAllowed   405
    │   ├── TooManyRequests    429  slow down
    │   └── PartLimitUsedUp    429  what is left of the parts does not cover it
    ├── ServerError                 the request was fine, the way to an answer is not
    │   ├── UpstreamUnreachable 503 no connection, or no answer in time
    │   │   ├── BreakerOpen    503  not asked at all, because it has failed again and again
    │   │   └── OutOfTime      503  the time was over before the service had a fair part of it
    │   ├── UpstreamUnreadable 502  an answer that makes no sense
    │   ├── UpstreamFault      502  the service says that it has broken (503: that it is closed)
    │   ├── CredentialsRefused 502  the application's client id and secret are not taken
    │   ├── TokenLimit         503  no more token requests for the moment
    │   ├── QueryRefused       502  the service refused this one query, and says why
    │   ├── StoreUnavailable   503  what is shared between workers cannot be reached
    │   ├── TooManyConnections 503  the process has as many client connections as it may
    │   └── Overloaded         503  the process has more to do than it can
    └── StartError                  never seen by a client: the program does not start
        ├── ConfigError
        ├── MappingError
        └── SourceError
"""

# ruff: noqa: N818  (these are named by what has happened)

import math
from datetime import UTC, datetime
from typing import ClassVar, Literal

V3Class = Literal["ClientErrorResponse", "ServerErrorResponse"]


def seconds_to_next_month(now: float) -> int:
    """Whole seconds, at least 1, from `now` (seconds since 1970) to the 1st of the next month, 00:00 UTC."""
    today = datetime.fromtimestamp(now, UTC)
    year, month = (today.year + 1, 1) if today.month == 12 else (today.year, today.month + 1)
    return max(1, math.ceil(datetime(year, month, 1, tzinfo=UTC).timestamp() - now))


class BridgeError(Exception):
    """The root. `status` is the HTTP status, `v3_class` the reply's `__class__` (contract v3-rest.md §5).

    `retry_after` is in whole seconds, for the header of that name.
    """

    status: int = 500
    v3_class: ClassVar[V3Class] = "ServerErrorResponse"

    def __init__(self, message: str, *, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after

    @property
    def message(self) -> str:
        """What a client is told."""
        return str(self)


class ClientError(BridgeError):
    """4xx."""

    status = 400
    v3_class = "ClientErrorResponse"


class BadRequest(ClientError):
    """A parameter that cannot be understood, or numbers outside their range."""


class MissingKey(ClientError):
    """No apikey at all."""

    def __init__(self, message: str = "apikey argument missing") -> None:
        super().__init__(message)


class ForbiddenKey(ClientError):
    """An apikey that no application serves; the message is the recorded one."""

    status = 403

    def __init__(self, message: str = "Forbidden request") -> None:
        super().__init__(message)


class NotFound(ClientError):
    """No such path, or no object of that uid."""

    status = 404


class MethodNotAllowed(ClientError):
    """Anything but GET, HEAD and OPTIONS."""

    status = 405


class TooManyRequests(ClientError):
    """The service asks for fewer requests a second, or the key makes more than it may."""

    status = 429


class PartLimitUsedUp(ClientError):
    """The parts left to the application, or to the key, do not cover the request; `retry_after` says until when."""

    status = 429


class ServerError(BridgeError):
    """A fault inside, where no kind below says more: message and log have the request's id in common.

    `may_be_billed`: the request reached the GraphQL service, and nothing says that it returned no parts. Such a
    request is not sent again, and its parts are in doubt. `backing_off`: the error is that of an earlier request, told
    again without asking; waiting for the end of the back-off would keep the client waiting with it.
    """

    backing_off = False

    def __init__(self, message: str, *, retry_after: int | None = None, may_be_billed: bool = False) -> None:
        super().__init__(message, retry_after=retry_after)
        self.may_be_billed = may_be_billed


class UpstreamUnreachable(ServerError):
    """No connection, a connection that broke before an answer, or no answer in time."""

    status = 503


class BreakerOpen(UpstreamUnreachable):
    """The service has failed so often that it is left alone for some seconds."""


class OutOfTime(UpstreamUnreachable):
    """The time was over before the service had a fair part of it: no fault of the service's."""


class UpstreamUnreadable(ServerError):
    """HTML, an empty or cut body, or JSON that does not fit the schema."""

    status = 502


class UpstreamFault(ServerError):
    """A 5xx from upstream: 503 is passed on, everything else is 502."""

    status = 502

    def __init__(
        self,
        message: str,
        *,
        status: Literal[502, 503] = 502,
        retry_after: int | None = None,
        may_be_billed: bool = False,
    ) -> None:
        super().__init__(message, retry_after=retry_after, may_be_billed=may_be_billed)
        self.status = status


class CredentialsRefused(ServerError):
    """Client id and secret, or the tokens they bring, are not accepted. Names the application only."""

    status = 502


class TokenLimit(ServerError):
    """A token is needed and may not be asked for yet (contract graphql.md §4.1)."""

    status = 503


class QueryRefused(ServerError):
    """The service refused this query. The message is the service's, and becomes the query's own `error`."""

    status = 502


class StoreUnavailable(ServerError):
    """The store of tokens and parts cannot be read or written: what cannot be counted is not spent."""

    status = 503


class TooManyConnections(ServerError):
    """The process has as many client connections as it may; only health checks are answered on further ones."""

    status = 503


class Overloaded(ServerError):
    """The process has more to do than it can in time, or little memory left: what is new is refused."""

    status = 503


class StartError(BridgeError):
    """The program cannot start as it is set up. The message names file, line and key."""


class ConfigError(StartError):
    """A mistake in the configuration file or in what it refers to."""


class MappingError(StartError):
    """A mistake in the files of mappings/."""


class SourceError(StartError):
    """A file of requests, to be compared, of which nothing can be read. The message names the file and the reason."""
