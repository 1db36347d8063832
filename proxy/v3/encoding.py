"""v3 over HTTP: query strings as its clients really send them, with their bounds, and bodies of responses: JSON, JSONP,
gzip, errors, and the header that names what was ignored (contract v3-rest.md §2, §5, §6). Pure.

Targets arrive raw or percent-encoded, arrays in four spellings, booleans in seven; unknown parameters are ignored.
"""

import gzip as gzip_module
import json
import re
from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple
from urllib.parse import quote

from proxy import errors

REQUEST_LINE = 69_632  # bytes: 66 KiB of query and a path; aiohttp's default of 8 190 is 60 BOM lines
TRUE = {"true", "1", ""}  # a bare `&exact_only` has no value and means true
FALSE = {"false", "0"}

_ESCAPE = re.compile(b"%([0-9A-Fa-f]{2})")
_DIGITS = "0123456789ABCDEFabcdef"
_OCTETS = {f"{high}{low}".encode(): bytes.fromhex(high + low) for high in _DIGITS for low in _DIGITS}

VALUES, FILTER_TEXTS = "filter[fields][<field>][]", ("filter[queries][]", "facet[queries][]")

GZIP_FROM = 512  # bytes; a shorter body hardly shrinks
GZIP_LEVEL = 4

JSON = {"Content-Type": "application/json"}
# Without a charset a browser decodes a script in the encoding of the page that includes it.
SCRIPT = {"Content-Type": "application/javascript; charset=utf-8", "X-Content-Type-Options": "nosniff"}
GZIPPED = {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
X_V3_UNSUPPORTED = "X-V3-Unsupported"
SAFE = "[]="  # not percent-encoded in X-V3-Unsupported
NAME_MAX = 200  # characters of one name; a longer one is cut
LENGTH_MAX = 2_000  # characters of the header
# `?` is what a program sends that writes jQuery's `callback=?` without jQuery.
CALLBACK = re.compile(r"\?|[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*|\[\d+\])*", re.ASCII)


class Maximum(NamedTuple):
    """Maximum of something that some parameters may hold, and the unit that is counted of them."""

    parameters: tuple[str, ...]
    maximum: int
    unit: str


class Bound(Maximum, Enum):
    """Maximum of something that a request may hold, because effort grows with it.

    Each is larger than what v3 clients are known to send; of v3's own bounds only that of queries is known.
    """

    PARAMETERS = ("query string",), 1_000, "parameters"
    PROJECTION = ("include[]", "show[]", "hide[]", "slice[<field>]"), 150, "values together"
    UIDS = ("uid[]",), 100, "different values"  # v2's limit
    Q = ("q",), 2_000, "characters in a search"
    SORT_KEYS = ("sortby",), 10, "fields"
    FILTERS = ("filter[fields]",), 20, "fields"
    FILTER_VALUES = (VALUES,), 200, "values for each field"
    FILTER_LENGTH = (VALUES,), 2_000, "characters each"
    FILTER_QUERIES = ("filter[queries][]",), 20, "queries"
    QUERY_LENGTH = FILTER_TEXTS, 2_000, "characters each"  # each is parsed
    QUERIES_LENGTH = FILTER_TEXTS, 10_000, "characters together"
    CONDITIONS = ("filter[fields]", "filter[queries][]"), 100, "conditions together"
    COUNTS = ("facet[fields]", "facet[queries][]", "stats"), 20, "counts together"
    PATTERNS = (VALUES, *FILTER_TEXTS), 10, "values with * together"
    MATCHES = (VALUES, *FILTER_TEXTS), 1_000, "names for a value with *"
    CALLBACK = ("callback",), 128, "characters"

    def check(self, number: int, name: str = "") -> None:
        """Raise BadRequest beyond the maximum. `name` is the parameter as it was sent, where there are several."""
        if number > self.maximum:
            # The name is the client's text: the message must not be as long as the request.
            named = name[:60] or ", ".join(self.parameters)
            raise errors.BadRequest(f"{named}: at most {self.maximum} {self.unit}, not {number}")


def decoded(encoded: str) -> str:
    """Decode a form value (WHATWG URL §5.1); urllib takes ten times as long for a text of nothing but `%`."""
    if "+" in encoded:
        encoded = encoded.replace("+", " ")
    if "%" not in encoded:
        return encoded
    octets = _ESCAPE.split(encoded.encode("utf-8", "surrogateescape"))
    octets[1::2] = map(_OCTETS.__getitem__, octets[1::2])
    return b"".join(octets).decode("utf-8", "replace")


def bare(name: str) -> str:
    """Return a name without its array brackets: `include[]`, `include[0]` and `include` are one.

    `filter[fields][x][]` loses only its last brackets."""
    if name.endswith("]"):
        head, _, index = name[:-1].rpartition("[")
        if not index or index.isdigit():
            return head
    return name


class Parameters:
    """Parameters of one request: names without their brackets, values in the order sent."""

    def __init__(self, target: str) -> None:
        """Parse a request target as it came over the wire, absolute-form included. Values are decoded when they are
        read: the API key comes first, and a request that is refused costs no more. Raises BadRequest for too many."""
        query = target.partition("?")[2]
        Bound.PARAMETERS.check(len(query) and query.count("&") + 1)
        self._values: dict[str, list[str]] = {}
        for name, value in split(query):
            self._values.setdefault(bare(name), []).append(value)

    def text(self, name: str) -> str | None:
        """Return the last value, as PHP and Python servers alike read it; None where there is none."""
        values = self._values.get(name)
        return decoded(values[-1]) if values else None

    def texts(self, name: str) -> list[str]:
        """Return all values of an array: `name[]=a`, `name[0]=a` and `name=a` are the same."""
        return [*map(decoded, self._values.get(name, ()))]

    def uids(self) -> list[str]:
        """Return the uids of get_multi: `uid[]`, and `uids[]` of one client. Raises BadRequest for none or too many."""
        uids = [uid for name in ("uid", "uids") for uid in self.texts(name) if uid]
        if not uids:
            raise errors.BadRequest("uid[] argument missing; send one for each object, like uid[]=2c3be9310496fffc")
        Bound.UIDS.check(len(set(uids)))
        return uids

    def names(self, start: str | tuple[str, ...]) -> list[str]:
        """Return the names that begin like this, such as `facet[`, or in one of several ways, in the order sent."""
        return [name for name in self._values if name.startswith(start)]

    def whole(self, name: str, default: int, maximum: int) -> int:
        """Return a whole number from 0; absent or empty is the default. Raises BadRequest beyond its range."""
        value = self.text(name)
        if not value:
            return default
        if not (value.isascii() and value.isdigit() and len(value) < 10 and int(value) <= maximum):
            raise errors.BadRequest(f"{name} must be a whole number between 0 and {maximum}, not {value[:40]!r}")
        return int(value)

    def flag(self, name: str) -> bool:
        """Return a boolean; absent is false. Raises BadRequest for a value that is none."""
        value = self.text(name)
        if value is None or value.lower() in FALSE:
            return False
        if value.lower() in TRUE:
            return True
        raise errors.BadRequest(f"{name} must be true or false, not {value[:40]!r}")


def split(query: str) -> list[tuple[str, str]]:
    """Split a query string into decoded names, and values as they are; what is no UTF-8 is replaced."""
    if not query.isascii():
        query = query.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    split = [pair.partition("=") for pair in query.split("&") if pair]
    return [(decoded(name), value) for name, _, value in split]


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


def encode_body(
    body: bytes, response_format: ResponseFormat, gzip: bool, headers: dict[str, str] = JSON
) -> EncodedBody:
    """Wrap JSON for JSONP if requested, and compress a body that is long enough if the client accepts `gzip`."""
    if response_format.callback:
        # U+2028 ends a line in old JavaScript engines.
        safe = body.replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029")
        body, headers = response_format.callback.encode() + b"(" + safe + b")", SCRIPT
    if gzip and len(body) >= GZIP_FROM:
        # mtime=0: equal bodies give equal bytes, whenever they are compressed.
        return EncodedBody(gzip_module.compress(body, GZIP_LEVEL, mtime=0), headers | GZIPPED)
    return EncodedBody(body, headers)


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
