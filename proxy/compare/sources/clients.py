"""Names of clients in place of their keys: sources name clients here, a run gets the keys to send from here.

Keys are in memory only. No repr shows one, no name holds one, nothing is written.
"""

import hashlib
from collections.abc import Iterable

import msgspec

from proxy import errors
from proxy.compare.judging.settings import ClientKeys
from proxy.compare.responses import SideName
from proxy.compare.results import UnnamedKey
from proxy.config import secret

NO_KEY = "no key"
SHOWN = 4  # hex digits of a key's SHA-256: enough to tell keys apart, too few to find one by trying
OTHERS = secret.digest("*")  # a `source` that stands for every key that no other entry has


class Clients:
    """Names for keys, and keys for names. Keys that nobody has named become `key 1`, `key 2` as they appear.

    An entry without `source` is for requests without a key, such as lists of parts; one with the source `*` is what all
    that no other entry names are asked with, and they keep their names.
    """

    def __init__(self, known: Iterable[ClientKeys] = ()) -> None:
        """Raises ConfigError where two entries have the same source."""
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
        """Who sent this key."""
        if not apikey:
            return self._by_source[None].name if None in self._by_source else NO_KEY
        name = self._names.get(apikey)
        if name is None:
            known = self._by_source.get(secret.digest(apikey))
            name = self._names[apikey] = known.name if known else self._next()
            self._seen[name] = apikey
        return name

    def met(self, apikey: str | None, origin: str, agent: str | None) -> str:
        """The same, for a request that stands somewhere in a source and was sent by some program."""
        name = self.name(apikey)
        if apikey and name not in self._known:
            first = UnnamedKey(name, _fingerprint(apikey), origin, origin, "")
            known = self._seen_at.get(name, first)
            self._seen_at[name] = msgspec.structs.replace(known, last=origin, agent=known.agent or agent or "")
        return name

    def unnamed(self) -> tuple[UnnamedKey, ...]:
        """The keys that no entry names, as they were met."""
        return tuple(self._seen_at.values())

    def key(self, name: str, side: SideName) -> str | None:
        """The key to send for a client: the one set for that side, else the one it was seen with."""
        entry = self._known.get(name) or (self._by_source.get(OTHERS) if name in self._seen else None)
        chosen = None if entry is None else {"baseline": entry.baseline, "candidate": entry.candidate}[side]
        return chosen.reveal() if chosen else self._seen.get(name)

    def secrets(self) -> tuple[str, ...]:
        """Every key that can be sent, to be taken out of what is shown; the longest first."""
        given = {key.reveal() for entry in self._known.values() for key in (entry.baseline, entry.candidate) if key}
        return tuple(sorted(given | set(self._names), key=lambda key: (-len(key), key)))

    def _add(self, entry: ClientKeys) -> None:
        if entry.source in self._by_source:
            other = self._by_source[entry.source].name
            raise errors.ConfigError(f"the clients {other} and {entry.name} have the same source")
        self._by_source[entry.source] = self._known[entry.name] = entry

    def _next(self) -> str:
        """A name that nobody has."""
        while True:
            self._numbered += 1
            name = f"key {self._numbered}"
            if name not in self._known:
                return name


def _fingerprint(apikey: str) -> str:
    return hashlib.sha256(apikey.encode("utf-8", "surrogatepass")).hexdigest()[:SHOWN]
