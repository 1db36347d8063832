"""Encoding of v3 responses: JSON, JSONP, gzip, errors, and the header that names what was ignored (contract v3-rest.md
§2, §5)."""

import gzip as gzip_module
import json
import re
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import quote

from multidict import istr

from proxy import errors
from proxy.v3.parameters import Bound, Parameters

GZIP_FROM = 512  # bytes; a shorter body hardly shrinks
GZIP_LEVEL = 4  # a third faster than 6, with a twentieth more bytes

JSON = {"Content-Type": "application/json"}
# Without a charset a browser decodes a script in the encoding of the page that includes it.
SCRIPT = {"Content-Type": "application/javascript; charset=utf-8", "X-Content-Type-Options": "nosniff"}
GZIPPED = {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
X_V3_UNSUPPORTED = istr("X-V3-Unsupported")
SAFE = "[]="  # not percent-encoded in X-V3-Unsupported
NAME_MAX = 200  # characters of one name; a longer one is cut
LENGTH_MAX = 2_000  # characters of the header
# `?` is what a program sends that writes jQuery's `callback=?` without jQuery.
CALLBACK = re.compile(r"\?|[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*|\[\d+\])*", re.ASCII)


class ResponseFormat(NamedTuple):
    """Format of a response: pretty-printed, JSONP, and whether errors have status 200."""

    pretty_print: bool = False
    callback: str | None = None
    suppress_status_codes: bool = False

    @classmethod
    def of(cls, parameters: Parameters) -> "ResponseFormat":
        """Parse pretty_print, callback and suppress_status_codes. Raises BadRequest."""
        callback = parameters.text("callback") or None
        if callback:
            Bound.CALLBACK.check(len(callback))
            if not CALLBACK.fullmatch(callback):
                raise errors.BadRequest("callback must be the name of a JavaScript function, like handle or app.handle")
        return cls(parameters.flag("pretty_print"), callback, parameters.flag("suppress_status_codes"))


class EncodedBody(NamedTuple):
    """Body of a response as it is sent, and the headers that describe it."""

    body: bytes
    headers: dict[str, str]


def encode_body(body: bytes, response_format: ResponseFormat, gzip: bool) -> EncodedBody:
    """Wrap JSON for JSONP if requested, and compress it if the client accepts `gzip`."""
    if response_format.callback:
        # U+2028 ends a line in old JavaScript engines.
        safe = body.replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029")
        body = response_format.callback.encode() + b"(" + safe + b")"
    return compress(EncodedBody(body, SCRIPT if response_format.callback else JSON), gzip)


def compress(whole: EncodedBody, gzip: bool) -> EncodedBody:
    """Compress a body with gzip, if the client accepts it and the body is long enough."""
    if not gzip or len(whole.body) < GZIP_FROM:
        return whole
    # mtime=0: equal bodies give equal bytes, whenever they are compressed.
    return EncodedBody(gzip_module.compress(whole.body, GZIP_LEVEL, mtime=0), whole.headers | GZIPPED)


def error_body(error: errors.BridgeError, response_format: ResponseFormat, *, has_class: bool = True) -> bytes:
    """Return a ClientErrorResponse or ServerErrorResponse, indented by two spaces as the recorded ones; v4 has no class
    (contract v4.md)."""
    kind = "ClientErrorResponse" if error.status < 500 else "ServerErrorResponse"
    body = {"__class__": kind, "message": error.message} if has_class else {"message": error.message}
    return json.dumps(body, indent=4 if response_format.pretty_print else 2).encode()


def unsupported(names: Iterable[str]) -> dict[str, str]:
    """Return the header that names the parameters of a request that were ignored; none if there are none.

    A comma-separated list (RFC 9110 §5.6.1): each as in the query string without its last `[]`, with `=value` where the
    name alone is not enough. Everything but letters, digits and `-._~[]=` is percent-encoded, so that a client cannot
    inject a header. The list is bounded; `+3` at its end stands for three more names.
    """
    distinct = list(dict.fromkeys(name[:NAME_MAX] for name in names))
    shown: list[str] = []
    length = 0
    for name in distinct:  # names beyond the bound are not encoded: there can be thousands
        encoded = quote(name, safe=SAFE, errors="replace")
        if len(encoded) > NAME_MAX:  # cut at the last escape, which may be half
            encoded = encoded[:NAME_MAX].rpartition("%")[0]
        length += len(encoded) + 2
        if length > LENGTH_MAX:
            shown.append(f"+{len(distinct) - len(shown)}")
            break
        shown.append(encoded)
    return {X_V3_UNSUPPORTED: ", ".join(shown)} if shown else {}
