"""v3 requests without their API keys: made by sources, sent to both sides, reported; and the clients that they are of.

Files of requests have names in place of keys, and a run gets the keys to send by these names. Keys are in memory only:
no repr and no name shows one, and none is written.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Literal
from urllib.parse import quote, unquote

import msgspec
from msgspec import Meta

from proxy import errors
from proxy.config import Settings as Block
from proxy.config import secret
from proxy.redaction import Redaction
from proxy.v3 import encoding, endpoints

SAFE = "[]{}:,*"  # characters that v3's clients do not encode, and that are more readable so
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://")
NO_KEY = "no key"
OTHERS = secret.digest("*")  # a `source` that applies to all keys without an entry of their own

SideName = Literal["baseline", "candidate"]


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


def parse_target(target: str) -> tuple[str, tuple[tuple[str, str], ...], str | None]:
    """Parse a request target or URL into path without prefix, parameters without the apikey, and the apikey.

    Decodes as the service does: raw or percent-encoded, invalid UTF-8 as a question mark. `#` does not begin a
    fragment: part numbers contain it, and HTTP requests never have fragments. Raises ValueError for anything but a v3
    request.
    """
    try:  # lone surrogates stand for undecodable bytes of the source file
        target = target.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except UnicodeEncodeError:  # JSON can hold one that stands for none
        target = target.encode("utf-8", "replace").decode()
    address, _, query = target.partition("?")
    scheme = _SCHEME.match(address)  # `/path`, `http://host/path` or `host/path`
    rest = address[scheme.end() :] if scheme else address
    path = unquote(rest if rest.startswith("/") and not scheme else "/" + rest.partition("/")[2])
    prefix = next((each for each in endpoints.PREFIXES if path.startswith(f"{each}/")), None)
    if prefix is None:
        raise ValueError(f"its path does not begin with {' or '.join(endpoints.PREFIXES)}")
    path = path.removeprefix(prefix).rstrip("/")
    if endpoints.of(path) is None:
        raise ValueError("its path is none of v3's")
    pairs: list[tuple[str, str]] = []
    keys, unread = [""], [""]  # `apikey[a]` is ignored by the service, and must not be shown either
    for name, encoded in encoding.split(query):
        value = encoding.decoded(encoded)
        if name.partition("[")[0].lower() != "apikey":
            pairs.append((name, value))
        elif encoding.bare(name).lower() == "apikey":
            keys.append(value)
        else:
            unread.append(value)
    return path, tuple(pairs), keys[-1] or unread[-1] or None


def redact_request(request: V3Request, redaction: Redaction) -> V3Request:
    """Redact a request: clients may put a key into a parameter of another name."""
    redaction = redaction.including(request.target())
    query = tuple((redaction.text(name), redaction.text(value)) for name, value in request.query)
    return msgspec.structs.replace(request, path=redaction.text(request.path), query=query)


class ClientKeys(Block, frozen=True):
    """Settings of a client: its API key in the source, which maps requests to its name, and its keys for each side."""

    name: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]+\Z", description="letters, digits, - _ and .")]
    source: Annotated[
        secret.Digest | None,
        Meta(description="an API key in quotes, sha256: with 64 hex digits, env:NAME or file:PATH"),
    ] = None
    baseline: Annotated[secret.Secret | None, Meta(description="an API key in quotes, env:NAME or file:PATH")] = None
    candidate: Annotated[secret.Secret | None, Meta(description="an API key in quotes, env:NAME or file:PATH")] = None


class UnnamedKey(msgspec.Struct, frozen=True):
    """API key of the source that the settings do not name.

    `client` is its name in reports; `fingerprint` the first four hex digits of its SHA-256; `first` and `last` locate
    it in the source; `agent` is the User-Agent of the client, empty where the source has none.
    """

    client: str
    fingerprint: str
    first: str
    last: str
    agent: str


class Clients:
    """Two-way map of API keys and client names. Keys without an entry are named `key 1`, `key 2` in order of
    appearance.

    An entry without `source` is for requests without a key, such as parts lists. An entry with the source `*` gives the
    key to send for all clients without an entry; these keep their generated names.
    """

    def __init__(
        self, known: Iterable[ClientKeys] = (), for_all: Mapping[SideName, secret.Secret | None] | None = None
    ) -> None:
        """Raise ConfigError where two entries have the same source. `for_all` are keys to send for every client."""
        self._for_all = for_all or {}
        self._known: dict[str, ClientKeys] = {}
        self._by_source: dict[secret.Digest | None, ClientKeys] = {}
        self._keys: dict[str, str] = {}  # by client name, as seen in the source
        self.unnamed: dict[str, UnnamedKey] = {}  # in order of appearance
        for entry in known:
            if entry.source in self._by_source:
                other = self._by_source[entry.source].name
                raise errors.ConfigError(f"the clients {other} and {entry.name} have the same source")
            self._by_source[entry.source] = self._known[entry.name] = entry
        self._names: dict[str, str] = {}

    def register(self, apikey: str | None, origin: str = "", agent: str = "") -> str:
        """Return the client's name for a key, or a new one; of an unnamed key, note position and User-Agent."""
        if not apikey:
            return self._by_source[None].name if None in self._by_source else NO_KEY
        if apikey not in self._names:
            digest = secret.digest(apikey)
            known = self._by_source.get(digest)
            self._names[apikey] = name = known.name if known else f"key {len(self.unnamed) + 1}"
            self._keys[name] = apikey
            if known is None:
                self.unnamed[name] = UnnamedKey(name, digest.reveal()[: secret.FINGERPRINT], origin, origin, "")
        name = self._names[apikey]
        if name in self.unnamed:
            seen = self.unnamed[name]
            self.unnamed[name] = msgspec.structs.replace(seen, last=origin, agent=seen.agent or agent)
        return name

    def key(self, name: str, side: SideName) -> str | None:
        """Return the key to send for a client: that for all, else the one configured for that side, else the one in the
        source."""
        entry = self._known.get(name) or (self._by_source.get(OTHERS) if name in self._keys else None)
        own = None if entry is None else {"baseline": entry.baseline, "candidate": entry.candidate}[side]
        chosen = self._for_all.get(side) or own
        return chosen.reveal() if chosen else self._keys.get(name)

    def secrets(self) -> tuple[str, ...]:
        """All keys that can be sent, for redaction; the longest first, so that none is hidden only in part."""
        configured = (key for entry in self._known.values() for key in (entry.baseline, entry.candidate))
        given = {key.reveal() for key in (*self._for_all.values(), *configured) if key}
        return tuple(sorted(given | set(self._names), key=lambda key: (-len(key), key)))
