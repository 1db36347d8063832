"""Reasons why a side gave no response, worded to complete "the baseline …", and equal for all requests with that
reason.

They name no address, and hold no key except in the side's own message; messages of the HTTP library would.
"""

import os
import ssl

import aiohttp

from proxy.traffic import v3_response
from proxy.traffic.v3_response import SideResponse

_WORDS: tuple[tuple[type[Exception] | tuple[type[Exception], ...], str], ...] = (
    (
        (aiohttp.ClientConnectorCertificateError, ssl.SSLCertVerificationError),
        "shows a certificate that is not trusted",
    ),
    (aiohttp.ConnectionTimeoutError, "cannot be reached in time"),
    (TimeoutError, "gives no complete response within {seconds:g} s"),
    (aiohttp.ClientConnectorDNSError, "cannot be reached: no such name"),
    (aiohttp.ClientConnectorError, "cannot be reached{reason}"),
    (aiohttp.ClientPayloadError, "sent a truncated response"),
    ((aiohttp.ServerDisconnectedError, aiohttp.ClientOSError), "closed the connection without a response"),
)
_UNSENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, ssl.SSLCertVerificationError)


class SideError(Exception):
    """Failure of a side, as a reason for the reader. `free`: certainly nothing was billed."""

    def __init__(self, words: str, *, free: bool = False) -> None:
        super().__init__(words)
        self.free = free


def from_exception(error: Exception, seconds: float) -> SideError:
    """Translate an exception of the HTTP library. `seconds` is the time limit of a response."""
    number = error.os_error.errno if isinstance(error, aiohttp.ClientConnectorError) else None
    reason = f": {os.strerror(number)}" if number and number > 0 else ""
    for kinds, words in _WORDS:
        if isinstance(error, kinds):
            return SideError(words.format(seconds=seconds, reason=reason), free=isinstance(error, _UNSENT))
    return SideError("sent bytes that are not HTTP")


def check_response(response: SideResponse) -> None:
    """Check that a response is one that v3 could give. Raises SideError."""
    start = response.body[:200].lstrip().lower()
    if response.content_type in ("text/html", "application/xhtml+xml") or start.startswith((b"<!doctype", b"<html")):
        raise SideError(f"sent HTML instead of JSON (HTTP {response.status})", free=response.status < 500)
    if response.status == 429:
        raise SideError(
            f"limits the request rate (HTTP 429){v3_response.message_suffix(response)}", free=not response.parts
        )
    if response.status == 503:
        raise SideError(f"is unavailable (HTTP 503){v3_response.message_suffix(response)}")
    if response.status >= 500 and not start.startswith(b"{"):
        raise SideError(f"sent HTTP {response.status} without a reason")
