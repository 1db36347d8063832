"""A request as people give it: a URL, a path or a request line. Error messages quote nothing of it: it may hold API
keys.
"""

import re
from typing import NamedTuple

from proxy import errors
from proxy.traffic import logs
from proxy.traffic.v3_request import V3Request, parse_target
from proxy.v3.parsing import path_suggestions

_VARIABLE = re.compile(r"\$\{?\w+\}?")  # a shell variable instead of a key, as in documentation
_HOST = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://[^/?#]*")
_NO_REQUEST = (
    "the input is neither a request nor a file: give a URL, a path such as /v3/parts/match?queries=…, or a file of "
    "requests"
)


class InputRequest(NamedTuple):
    """One request of an input. `path` is that of a request that is not v3's; then there is no `request`."""

    method: str
    request: V3Request | None
    apikey: str | None = None
    path: str = ""

    def __repr__(self) -> str:
        return f"InputRequest({self.method}, key hidden)"


def read_request(text: str) -> InputRequest:
    """Read a request; of a path that v3 never had, its path. Raises SourceError for a text that is no address."""
    # The shell removes quotes, but not those in a pipe.
    stripped = text.strip().removeprefix("\ufeff").strip("\"'<>")
    if not stripped:
        raise errors.SourceError("there is nothing to explain")
    if stripped.startswith(("{", "[")):
        raise errors.SourceError(_NO_REQUEST)
    if "\n" in stripped:
        raise errors.SourceError("the input has several lines, but no request that could be read")
    method, target = logs.request_line(stripped)
    try:
        path, query, apikey = parse_target(target)
    except ValueError:
        return InputRequest(method, None, path=_path(target))
    if apikey is not None and _VARIABLE.fullmatch(apikey):
        apikey = None
    return InputRequest(method, V3Request(path, query), apikey)


def _path(target: str) -> str:
    """Return the path of an address, for a suggestion. Raises SourceError for a text that may as well be the name of a
    file that is not there."""
    address, question_mark, _ = target.partition("?")
    path = _HOST.sub("", address)
    is_url = path != address or bool(question_mark)
    if not path.startswith("/") or not (is_url or path_suggestions.message(path) != path_suggestions.NO_PATH):
        raise errors.SourceError(_NO_REQUEST)
    return path
