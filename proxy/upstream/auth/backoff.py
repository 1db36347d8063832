"""Back-off after failed token requests, so that many requests for a token do not flood the identity service.

Used by token_requests.py. A back-off is a value that can be encoded, so that the failure of one worker holds for all.
"""

import math

import msgspec

from proxy import errors

REFUSED_SECONDS = 30.0  # after refused credentials
FAILURE_MAX = 15.0  # seconds after other failures, doubling from 1 s; at this rate no window is ever filled
RETRY_AFTER_MAX = 900.0  # seconds of a Retry-After that are waited for

_KINDS = {
    kind.__name__: kind
    for kind in (
        errors.TokenLimit,
        errors.CredentialsRefused,
        errors.UpstreamUnreachable,
        errors.CircuitBreakerOpen,
        errors.DeadlineExceeded,
        errors.UpstreamUnreadable,
        errors.UpstreamFault,
    )
}


class Backoff(msgspec.Struct, frozen=True):
    """Back-off until a time: requests until then get the error of the failed one. Shared by workers through the store.

    `kind`: class name of the error; `failures`: failures in a row, with this one; `retry_after`: seconds from `since`,
    as the identity service sent it. Times are seconds since 1970.
    """

    kind: str
    message: str
    status: int
    retry_after: int | None
    since: float
    until: float
    failures: int

    def is_active(self, now: float) -> bool:
        """Return whether it still applies. It does not if more time remains than any back-off takes: the clock was
        set back."""
        return now < self.until <= now + max(REFUSED_SECONDS, RETRY_AFTER_MAX)

    def error(self, now: float, *, repeated: bool = True) -> errors.ServerError:
        """Return a new error with the remaining wait. `repeated` is False for the request that failed, which may be
        retried after a first failure."""
        # A client is told the full Retry-After; this service itself waits for RETRY_AFTER_MAX at most.
        end = self.until if self.retry_after is None else self.since + self.retry_after
        error = _KINDS.get(self.kind, errors.ServerError)(self.message, retry_after=max(1, math.ceil(end - now)))
        error.status = self.status
        error.backing_off = repeated or self.failures > 1
        return error

    def encode(self) -> str:
        """Encode for the store. Holds no secret, because error messages hold none."""
        return msgspec.json.encode(self).decode()


def after(error: errors.ServerError, failures: int, now: float) -> Backoff:
    """Return the back-off after a failure, the last of so many in a row."""
    if isinstance(error, errors.CredentialsRefused):
        seconds = REFUSED_SECONDS
    elif error.retry_after is not None:
        seconds = max(1.0, min(error.retry_after, RETRY_AFTER_MAX))
    else:
        # The exponent is bounded, because a float overflows at 1024 failures.
        seconds = min(FAILURE_MAX, 2.0 ** min(failures - 1, 10))
    kind = type(error).__name__
    return Backoff(kind, error.message, error.status, error.retry_after, now, now + seconds, failures)


def decode(text: str) -> Backoff | None:
    """Decode a stored text; None if another version wrote it in another form."""
    try:
        return msgspec.json.decode(text, type=Backoff)
    except msgspec.MsgspecError:
        return None
