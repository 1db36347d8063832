"""Clients by API key: files of requests have names in place of keys, and a run gets the keys to send by these names.

Keys are in memory only: no repr and no name shows one, and none is written.
"""

from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from proxy import errors
from proxy.config import secret
from proxy.config.base import Settings as Block

NO_KEY = "no key"
OTHERS = secret.digest("*")  # a `source` that applies to all keys without an entry of their own

SideName = Literal["baseline", "candidate"]


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
        self._keys: dict[str, str] = {}  # by client name, as seen in the source
        self._unnamed: dict[str, UnnamedKey] = {}
        for entry in known:
            if entry.source in self._by_source:
                other = self._by_source[entry.source].name
                raise errors.ConfigError(f"the clients {other} and {entry.name} have the same source")
            self._by_source[entry.source] = self._known[entry.name] = entry
        self._names: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"Clients({', '.join(dict.fromkeys([*self._known, *self._keys]))}; keys hidden)"

    def register(self, apikey: str | None, origin: str = "", agent: str = "") -> str:
        """Return the client's name for a key, creating one if necessary; of an unnamed key, note the position and the
        User-Agent."""
        if not apikey:
            return self._by_source[None].name if None in self._by_source else NO_KEY
        if apikey not in self._names:
            known = self._by_source.get(secret.digest(apikey))
            self._names[apikey] = name = known.name if known else f"key {len(self._unnamed) + 1}"
            self._keys[name] = apikey
            if known is None:
                self._unnamed[name] = UnnamedKey(name, secret.digest(apikey).fingerprint, origin, origin, "")
        name = self._names[apikey]
        if name in self._unnamed:
            seen = self._unnamed[name]
            self._unnamed[name] = msgspec.structs.replace(seen, last=origin, agent=seen.agent or agent)
        return name

    def unnamed(self) -> tuple[UnnamedKey, ...]:
        """Keys without an entry, in order of appearance."""
        return tuple(self._unnamed.values())

    def key(self, name: str, side: SideName) -> str | None:
        """Return the key to send for a client: the one configured for that side, else the one in the source."""
        entry = self._known.get(name) or (self._by_source.get(OTHERS) if name in self._keys else None)
        chosen = None if entry is None else {"baseline": entry.baseline, "candidate": entry.candidate}[side]
        return chosen.reveal() if chosen else self._keys.get(name)

    def secrets(self) -> tuple[str, ...]:
        """All keys that can be sent, for redaction; the longest first, so that none is hidden only in part."""
        given = {key.reveal() for entry in self._known.values() for key in (entry.baseline, entry.candidate) if key}
        return tuple(sorted(given | set(self._names), key=lambda key: (-len(key), key)))
