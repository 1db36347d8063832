"""v3 requests without their API keys: made by sources, sent to both sides, reported."""

import hashlib
import re
from urllib.parse import quote, unquote

import msgspec

from proxy.redaction import Redaction
from proxy.v3 import endpoints, parameters

SAFE = "[]{}:,*"  # characters that v3's clients do not encode, and that are more readable so
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://")


class V3Request(msgspec.Struct, frozen=True):
    """v3 request. `path` has no prefix; `query` holds the decoded parameters in the order sent, without the apikey.

    `client` is a name that replaces the key, never the key; `times` is the number of occurrences in the source;
    `origin` locates the first one, such as `access.log:17`, `at` is its time in seconds since 1970 and `agent` its
    User-Agent, where the source has them.
    """

    path: str
    query: tuple[tuple[str, str], ...] = ()
    client: str = "default"
    times: int = 1
    origin: str = ""
    at: float | None = None
    agent: str = ""

    @property
    def id(self) -> str:
        """Digest of 16 hex digits, equal for equal requests of the same client."""
        encoded = msgspec.json.encode((self.client, self.path, self.query))
        return hashlib.blake2b(encoded, digest_size=8).hexdigest()

    @property
    def endpoint(self) -> str:
        """Pattern of the path, such as `/parts/{uid}`. Raises LookupError for a path that v3 never had."""
        endpoint = endpoints.of(self.path)
        if endpoint is None:
            raise LookupError(f"{self.path[:80]} is not a v3 path")
        return endpoint.alias_of or endpoint.path

    def values(self, name: str) -> list[str]:
        """Return the values of a parameter, with or without brackets after its name."""
        return [value for key, value in self.query if key.partition("[")[0] == name]

    @property
    def uids(self) -> frozenset[str]:
        """Uids that the request names in its path or parameters."""
        return frozenset((self.path.rpartition("/")[2], *self.values("uid"), *self.values("uids")))

    def target(self, apikey: str | None = None) -> str:
        """Build path and query as they are sent, with the API key if one is given."""
        pairs = [*self.query, *([("apikey", apikey)] if apikey else [])]
        text = "&".join(f"{quote(name, safe=SAFE)}={quote(value, safe=SAFE)}" for name, value in pairs)
        path = quote(self.path, safe="/" + SAFE)
        return f"{path}?{text}" if text else path

    def url(self, base: str, apikey: str | None = None) -> str:
        """Build the URL at a service whose v3 is at `base`."""
        return base + self.target(apikey)


def parse_target(target: str) -> tuple[str, tuple[tuple[str, str], ...], str | None]:
    """Parse a request target or URL into path without prefix, parameters without the apikey, and the apikey.

    Decodes as the service does: raw or percent-encoded, invalid UTF-8 as a question mark. `#` does not begin a
    fragment: part numbers contain it, and HTTP requests never have fragments. Raises ValueError for anything but a v3
    request.
    """
    address, _, query = _encodable(target).partition("?")
    path = _without_prefix(_without_host(address))
    if endpoints.of(path) is None:
        raise ValueError("its path is none of v3's")
    return path, *_without_key(query)


def _without_key(query: str) -> tuple[tuple[tuple[str, str], ...], str | None]:
    """Return the parameters without the API key, and the key."""
    pairs: list[tuple[str, str]] = []
    keys, unread = [""], [""]  # `apikey[a]` is ignored by the service, and must not be shown either
    for name, value in parameters.pairs(query):
        if name.partition("[")[0].lower() != "apikey":
            pairs.append((name, value))
        elif parameters.bare(name).lower() == "apikey":
            keys.append(value)
        else:
            unread.append(value)
    return tuple(pairs), keys[-1] or unread[-1] or None


def _encodable(text: str) -> str:
    """Replace lone surrogates, except those that represent undecodable bytes of the source file."""
    if text.isascii():
        return text
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except UnicodeEncodeError:  # JSON can hold a lone surrogate
        return text.encode("utf-8", "replace").decode()


def _without_host(address: str) -> str:
    """Return the path of `/path`, `http://host/path` or `host/path`."""
    scheme = _SCHEME.match(address)
    rest = address[scheme.end() :] if scheme else address
    return rest if rest.startswith("/") and not scheme else "/" + rest.partition("/")[2]


def _without_prefix(path: str) -> str:
    path = unquote(path)
    for prefix in sorted(endpoints.PREFIXES, key=len, reverse=True):
        if path.startswith(prefix + "/"):
            return path.removeprefix(prefix).rstrip("/")
    raise ValueError("its path does not begin with /v3 or /api/v3")


def redact_request(request: V3Request, redaction: Redaction) -> V3Request:
    """Redact a request: clients may put a key into a parameter of another name."""
    redaction = redaction.including(request.target())
    query = tuple((redaction.text(name), redaction.text(value)) for name, value in request.query)
    return msgspec.structs.replace(request, path=redaction.text(request.path), query=query)
