"""How long the identity service is left in peace after a failure: a flood of requests must not become one of its own.

Used by acquisition.py. A pause is a value that can be written down, so that the failure of one worker holds for all.
"""

import math

import msgspec

from proxy import errors

REFUSED = 30.0  # seconds after refused credentials
FAILED_MAX = 15.0  # the same for other failures, growing from 1 s; at this pace no window is ever filled
TOLD_MAX = 900.0  # seconds that a Retry-After is believed without asking again

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


class Pause(msgspec.Struct, frozen=True):
    """An error that stands for further ones until a moment. `failures` is how many came in a row, this one included.

    Times are seconds since 1970; `told` is the error's own Retry-After, counted from `since`.
    """

    kind: str
    message: str
    status: int
    told: int | None
    since: float
    until: float
    failures: int

    def holds(self, now: float) -> bool:
        """Not where more of it is left than any pause is long: then the clock was put back."""
        return now < self.until <= now + max(REFUSED, TOLD_MAX)

    def error(self, now: float, *, again: bool = True) -> errors.ServerError:
        """A fresh error for the next caller, with what is left of the wait. Not `again`: for the request that failed,
        which may be sent anew after a first failure."""
        end = self.until if self.told is None else self.since + self.told
        fresh = _KINDS.get(self.kind, errors.ServerError)(self.message, retry_after=max(1, math.ceil(end - now)))
        fresh.status = self.status
        fresh.backing_off = again or self.failures > 1
        return fresh

    def text(self) -> str:
        """Written down. An error's message holds no secret, and so neither does this."""
        return msgspec.json.encode(self).decode()


def after(error: errors.ServerError, failures: int, now: float) -> Pause:
    """The pause that a failure brings, the last of so many in a row."""
    if isinstance(error, errors.CredentialsRefused):
        seconds = REFUSED
    elif error.retry_after is not None:
        seconds = max(1.0, min(error.retry_after, TOLD_MAX))
    else:
        seconds = min(FAILED_MAX, 2.0 ** min(failures - 1, 10))
    kind = type(error).__name__
    return Pause(kind, error.message, error.status, error.retry_after, now, now + seconds, failures)


def read(text: str) -> Pause | None:
    """What was written down; None for what another version wrote in another way."""
    try:
        return msgspec.json.decode(text, type=Pause)
    except msgspec.MsgspecError:
        return None
