"""Query strings as v3 clients really send them (contract v3-rest.md §2, §6): the web and comparisons
read requests with it.

Targets arrive raw or percent-encoded, arrays in four spellings, booleans in seven; unknown parameters are ignored.
"""

import re

from proxy import errors
from proxy.v3 import bounds

TRUE = {"true", "1", ""}  # a bare `&exact_only` has no value and means true
FALSE = {"false", "0"}

_ESCAPE = re.compile("%([0-9A-Fa-f]{2})")
_DIGITS = "0123456789ABCDEFabcdef"
_OCTETS = {high + low: chr(int(high + low, 16)) for high in _DIGITS for low in _DIGITS}


def pairs(query: str) -> list[tuple[str, str]]:
    """Return names and values of a query string, decoded, as sent. What is no UTF-8 becomes a question mark."""
    return [(name, decoded(value)) for name, value in _split(query)]


def decoded(encoded: str) -> str:
    """Decode a form value (WHATWG URL §5.1), in time proportional to its length; urllib takes ten times as long for a
    text of nothing but `%`."""
    if "+" in encoded:
        encoded = encoded.replace("+", " ")
    if "%" not in encoded:
        return encoded
    octets = _ESCAPE.split(encoded.encode("utf-8", "surrogateescape").decode("latin-1"))
    octets[1::2] = map(_OCTETS.__getitem__, octets[1::2])
    return "".join(octets).encode("latin-1").decode("utf-8", "replace")


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
        bounds.PARAMETERS.check(len(query) and query.count("&") + 1)
        self._values: dict[str, list[str]] = {}
        for name, value in _split(query):
            self._values.setdefault(bare(name), []).append(value)

    def text(self, name: str) -> str | None:
        """Return the last value, as PHP and Python servers alike read it; None where there is none."""
        values = self._values.get(name)
        return decoded(values[-1]) if values else None

    def texts(self, name: str) -> list[str]:
        """Return all values of an array: `name[]=a`, `name[0]=a` and `name=a` are the same."""
        return [decoded(value) for value in self._values.get(name, [])]

    def uids(self) -> list[str]:
        """Return the uids of get_multi: `uid[]`, and `uids[]`, which one client sends. Raises BadRequest without any,
        and for too many."""
        uids = [uid for name in ("uid", "uids") for uid in self.texts(name) if uid]
        if not uids:
            raise errors.BadRequest("uid[] argument missing; send one for each object, like uid[]=2c3be9310496fffc")
        bounds.UIDS.check(len(set(uids)))
        return uids

    def names(self, start: str) -> list[str]:
        """Return the names that begin like this, such as `facet[`, in the order sent."""
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


def _split(query: str) -> list[tuple[str, str]]:
    """Split a query string into decoded names, and values as they are; what is no UTF-8 is replaced."""
    if not query.isascii():
        query = query.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    split = [pair.partition("=") for pair in query.split("&") if pair]
    return [(decoded(name), value) for name, _, value in split]
