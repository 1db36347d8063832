"""JSON lines: one object a line, as log shippers and servers write them (nginx with escape=json, Caddy, Traefik, load
balancers, ECS), or answers that somebody has kept.

Fields are known by many names, whatever their case and punctuation; those inside `request`, `http` and `url` too.
"""

import json
from collections.abc import Iterator
from io import BufferedReader
from typing import Any
from urllib.parse import urlencode

import msgspec

from proxy.compare.sources import access_log, lines, moments, urls
from proxy.compare.sources.entries import Entry, Item, Unreadable, request_line

TARGETS = (
    *("url", "requesturl", "urloriginal", "urlfull", "target", "requesttarget", "uri", "requesturi", "request"),
    *("requestline", "path", "requestpath", "urlpath", "rawpath"),
)
QUERIES = ("querystring", "args", "query", "urlquery", "rawquery", "rawquerystring", "requestquery", "params")
METHODS = ("method", "requestmethod", "httpmethod", "verb", "httprequestmethod")
TIMES = (
    *("timestamp", "time", "ts", "at", "datetime", "date", "timeiso8601", "timelocal", "msec", "starttime"),
    *("startutc", "starteddatetime", "requesttime", "created"),
)
AGENTS = ("useragent", "httpuseragent", "requestuseragent", "useragentoriginal", "agent")
_INSIDE = {"request", "req", "http", "httprequest", "url"}
_DEPTH = 3

NO_JSON = "is no JSON, or is cut"
NO_OBJECT = "is no JSON object"
NO_TARGET = "has no field such as url, request, target or path"


def read(stream: BufferedReader) -> Iterator[Item]:
    """A request for each line."""
    for number, line in lines.of(stream, lines.JSON_LINE):
        yield Unreadable(number, access_log.LONG) if line is None else _entry(number, line)


def _entry(number: int, line: str) -> Item:
    try:
        value = parsed(line)
    except ValueError:
        return Unreadable(number, NO_JSON)
    if not isinstance(value, dict):
        return Unreadable(number, NO_OBJECT)
    fields = dict[str, Any]()
    _gather(value, "", fields, _DEPTH)
    asked = _asked(fields)
    if asked is None:
        return Unreadable(number, NO_TARGET)
    method = _first(fields, METHODS) or asked[0]
    at = next((at for name in TIMES if (at := moments.of(fields.get(name))) is not None), None)
    target, key = _with_query(asked[1], fields), _first(fields, ("apikey",))
    return Entry(number, target, method.upper(), at, key, agent=_agent(fields))


def parsed(line: str) -> Any:
    """Any JSON. Raises ValueError."""
    try:
        try:
            return msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeEncodeError):  # half a character, or NaN
            return json.loads(line)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _gather(value: dict[str, Any], prefix: str, fields: dict[str, Any], depth: int) -> None:
    """Names without case and punctuation; a name inside stands by itself too, where it is not taken."""
    inner = []
    for key, found in value.items():
        name = "".join(filter(str.isalnum, key)).lower()
        if isinstance(found, dict) and name in _INSIDE and depth:
            inner.append((name, found))
        for known in (prefix + name, name):
            fields.setdefault(known, found)
    for name, found in inner:
        _gather(found, prefix + name, fields, depth - 1)


def _asked(fields: dict[str, Any]) -> tuple[str, str] | None:
    """Method and target: of the fields that hold one, the first with a query."""
    texts = (fields.get(name) for name in TARGETS)
    asked = [request_line(text) for text in texts if isinstance(text, str) and urls.ADDRESS.match(text)]
    return next((each for each in asked if "?" in each[1]), asked[0] if asked else None)


def _with_query(target: str, fields: dict[str, Any]) -> str:
    """Some logs keep the query apart, as text or in pieces."""
    if "?" in target:
        return target
    for name in QUERIES:
        value = fields.get(name)
        if isinstance(value, str) and "=" in value:
            return f"{target}?{value.removeprefix('?')}"
        if isinstance(value, dict) and value:
            return f"{target}?{urlencode(value, doseq=True, errors='replace')}"
    return target


def _agent(fields: dict[str, Any]) -> str | None:
    """The program that asked, named beside the request or among its headers."""
    headers = fields.get("headers")
    gathered = dict(fields)
    if isinstance(headers, dict):
        first = {name: value[0] if isinstance(value, list) and value else value for name, value in headers.items()}
        _gather(first, "", gathered, 0)
    return _first(gathered, AGENTS)


def _first(fields: dict[str, Any], names: tuple[str, ...]) -> str | None:
    """Text, half characters in it as question marks."""
    found = next((value for name in names if isinstance(value := fields.get(name), str) and value), None)
    return None if found is None else found.encode("utf-8", "replace").decode()
