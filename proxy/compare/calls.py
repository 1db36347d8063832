"""v3 requests as they were asked, without their keys. Made by sources, asked of both sides, shown in reports."""

import hashlib
import shlex
from urllib.parse import quote, unquote_plus

import msgspec

from proxy import endpoints

SAFE = "[]{}:,*"  # characters that v3's clients leave as they are, and that read better so


class Call(msgspec.Struct, frozen=True):
    """One request. `path` has no prefix; `query` is its parameters, decoded, in the order sent, without the apikey.

    `client` is a name that stands for the key, never the key; `times` how often the same was asked; `origin` where it
    stands in its source, such as `access.log:17`.
    """

    path: str
    query: tuple[tuple[str, str], ...] = ()
    client: str = "default"
    times: int = 1
    origin: str = ""

    @property
    def id(self) -> str:
        """16 hex digits, equal for the same request of the same client."""
        asked = msgspec.json.encode((self.client, self.path, self.query))
        return hashlib.blake2b(asked, digest_size=8).hexdigest()

    @property
    def endpoint(self) -> str:
        """The path's pattern, such as `/parts/{uid}`. Raises LookupError for a path that v3 never had."""
        found = endpoints.of(self.path)
        if found is None:
            raise LookupError(f"{self.path[:80]} is no path of v3")
        return found.alias_of or found.path

    def values(self, name: str) -> list[str]:
        """The values of a parameter, whatever its brackets."""
        return [value for key, value in self.query if key.partition("[")[0] == name]

    def target(self, apikey: str | None = None) -> str:
        """Path and query as they are sent, with a key if there is one."""
        pairs = [*self.query, *([("apikey", apikey)] if apikey else [])]
        text = "&".join(f"{quote(name, safe=SAFE)}={quote(value, safe=SAFE)}" for name, value in pairs)
        return f"{quote(self.path, safe='/' + SAFE)}?{text}" if text else self.path

    def curl(self, base: str) -> str:
        """A line for a shell; the key is for people to fill in, from the environment."""
        mark = "&" if self.query else "?"
        return f"""curl -g {shlex.quote(base + self.target())}"{mark}apikey=$APIKEY\""""


def read_target(target: str) -> tuple[str, tuple[tuple[str, str], ...], str | None]:
    """Path without prefix, parameters without the apikey, and the apikey, of a request target or a URL.

    Raises ValueError for what is no v3 request.
    """
    if "://" in target[:12]:
        target = "/" + target.split("://", 1)[1].partition("/")[2]
    path, _, query = target.partition("?")
    for prefix in sorted(endpoints.PREFIXES, key=len, reverse=True):
        if path.startswith(prefix + "/"):
            path = path.removeprefix(prefix)
            break
    else:
        raise ValueError("its path does not begin with /v3 or /api/v3")
    path = unquote_plus(path.replace("+", "%2B")).rstrip("/")
    if endpoints.of(path) is None:
        raise ValueError("its path is none of v3's")
    pairs = [pair.partition("=") for pair in query.split("&") if pair]
    read = [(unquote_plus(name), unquote_plus(value)) for name, _, value in pairs]
    keys = [value for name, value in read if name == "apikey"]
    return path, tuple(pair for pair in read if pair[0] != "apikey"), keys[-1] if keys else None
