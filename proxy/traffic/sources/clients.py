"""Clients by API key: sources replace keys by client names, and a run gets the keys to send by these names.

Keys are in memory only: no repr and no name shows one, and none is written.
"""

from collections.abc import Iterable
from typing import Annotated

import msgspec
from msgspec import Meta

from proxy import errors
from proxy.config import secret
from proxy.config.base import Settings as Block
from proxy.traffic.v3_response import SideName

NO_KEY = "no key"
OTHERS = secret.digest("*")  # a `source` that applies to all keys without an entry of their own


class ClientKeys(Block, frozen=True):
    """Settings of a client: its API key in the source, which maps requests to the client's name, and its keys for each
    side."""

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

    def __init__(self, known: Iterable[ClientKeys] = ()) -> None:
        """Raise ConfigError where two entries have the same source."""
        self._known: dict[str, ClientKeys] = {}
        self._by_source: dict[secret.Digest | None, ClientKeys] = {}
        self._names: dict[str, str] = {}
        self._seen: dict[str, str] = {}
        self._seen_at: dict[str, UnnamedKey] = {}
        self._numbered = 0
        for entry in known:
            self._add(entry)

    def __repr__(self) -> str:
        return f"Clients({', '.join(dict.fromkeys([*self._known, *self._seen]))}; keys hidden)"

    def name(self, apikey: str | None) -> str:
        """Return the client's name for a key, creating one if necessary."""
        if not apikey:
            return self._by_source[None].name if None in self._by_source else NO_KEY
        name = self._names.get(apikey)
        if name is None:
            known = self._by_source.get(secret.digest(apikey))
            name = self._names[apikey] = known.name if known else self._next()
            self._seen[name] = apikey
        return name

    def register(self, apikey: str | None, origin: str, agent: str | None) -> str:
        """Return the client's name, and note the position and User-Agent of a request with an unnamed key."""
        name = self.name(apikey)
        if apikey and name not in self._known:
            first = UnnamedKey(name, secret.digest(apikey).fingerprint, origin, origin, "")
            known = self._seen_at.get(name, first)
            self._seen_at[name] = msgspec.structs.replace(known, last=origin, agent=known.agent or agent or "")
        return name

    def unnamed(self) -> tuple[UnnamedKey, ...]:
        """Keys without an entry, in order of appearance."""
        return tuple(self._seen_at.values())

    def key(self, name: str, side: SideName) -> str | None:
        """Return the key to send for a client: the one configured for that side, else the one in the source."""
        entry = self._known.get(name) or (self._by_source.get(OTHERS) if name in self._seen else None)
        chosen = None if entry is None else {"baseline": entry.baseline, "candidate": entry.candidate}[side]
        return chosen.reveal() if chosen else self._seen.get(name)

    def secrets(self) -> tuple[str, ...]:
        """All keys that can be sent, for redaction; the longest first, so that none is hidden only in part."""
        given = {key.reveal() for entry in self._known.values() for key in (entry.baseline, entry.candidate) if key}
        return tuple(sorted(given | set(self._names), key=lambda key: (-len(key), key)))

    def _add(self, entry: ClientKeys) -> None:
        if entry.source in self._by_source:
            other = self._by_source[entry.source].name
            raise errors.ConfigError(f"the clients {other} and {entry.name} have the same source")
        self._by_source[entry.source] = self._known[entry.name] = entry

    def _next(self) -> str:
        while True:
            self._numbered += 1
            name = f"key {self._numbered}"
            if name not in self._known:
                return name
