"""Exchanges that others have made, as passive checks see them: read from files, with the request where it is known.

Recordings of v3bridge are read here line by line: what translates must not read for what checks it.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import graphql as language
import msgspec

from proxy import errors
from proxy.kit.wording import rfc3339
from proxy.tools.conform import expressions
from proxy.traffic.recording.line_files import ZSTD, WholeLines

_ROOTS = ("supMultiMatch", "supSearch", "supSearchMpn", "supParts", "supSellers", "supManufacturers")
_SUFFIXES = (".json", ".jsonl", ".zst")
_RECORDING = b'{"v3bridge-recording"'
_KEPT_SECONDS = 86_400.0  # of the vendor's data, by its terms


class UpstreamExchange(msgspec.Struct, frozen=True):
    """One exchange. `query`, `variables`, `operation` and `host` are those of the request, where it is known;
    `authorized`: it had an Authorization header. `at` is RFC 3339. The names of `headers`, those of the response, are
    in lower case.
    """

    body: Any
    status: int | None = None
    headers: dict[str, str] = {}
    query: str = ""
    variables: dict[str, Any] = {}
    operation: str | None = None
    authorized: bool = False
    host: str = ""
    at: str = ""


def read(paths: Iterable[Path], now: float) -> Iterator[UpstreamExchange]:
    """Read files, and those in directories that have exchanges; of recordings what is not older than a day. Raises
    ConfigError for a file that has none."""
    for path in paths:
        found = sorted(each for each in path.rglob("*") if each.suffix in _SUFFIXES) if path.is_dir() else [path]
        if not found:
            raise errors.ConfigError(f"{path}: has no file named *.json, *.jsonl or *.zst")
        for file in found:
            if _is_recording(file):
                yield from _recorded(file, now)
            elif not file.name.endswith(".request.json"):
                yield from _exchanges(file, is_chosen=file == path)


def _exchanges(file: Path, *, is_chosen: bool) -> Iterator[UpstreamExchange]:
    try:
        text = file.read_text(encoding="utf-8")
        bodies = [json.loads(line) for line in text.splitlines() if line.strip()] if file.suffix == ".jsonl" else None
        bodies = [json.loads(text)] if bodies is None else bodies
        beside = file.with_name(file.name.removesuffix(".response.json") + ".request.json")
        request = json.loads(beside.read_text(encoding="utf-8")) if beside.exists() else {}
    except OSError as error:
        raise errors.ConfigError(f"{file}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise errors.ConfigError(f"{file}: is not JSON: {error}") from error
    for body in bodies:
        try:
            yield _exchange(body, request)
        except ValueError:
            if is_chosen:
                raise errors.ConfigError(
                    f"{file}: is no exchange: expected a body with data, errors or access_token, or an object with "
                    "query, variables, status, headers and body"
                ) from None


def _is_recording(file: Path) -> bool:
    try:
        with file.open("rb") as content:
            return content.read(len(_RECORDING)).startswith((ZSTD, _RECORDING))
    except OSError:
        return False  # said where it is read


def _recorded(file: Path, now: float) -> Iterator[UpstreamExchange]:
    """Read the responses of the GraphQL API in a recording. Raises ConfigError."""
    documents: dict[str, str] = {}
    for number, text in enumerate(WholeLines(file).with_last(), 1):
        try:
            line = json.loads(text)
            if "v3bridge-recording" in line:
                continue
            at = line.get("at", 0.0)
            if document := line.get("document"):
                documents[document["id"]] = document["text"]
            if 0 < at <= now - _KEPT_SECONDS:
                continue
            for each in (*line.get("upstream", ()), *([line["shared"]] if "shared" in line else [])):
                yield UpstreamExchange(
                    decoded(each["body"]),
                    status=each.get("status", 200),
                    query=documents[each["document"]],
                    variables=each["variables"],
                    operation=each["operation"],
                    host="" if at else "sandbox",  # whose data does not end
                    at=rfc3339(at) if at else "",
                )
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise errors.ConfigError(f"{file}: line {number} is not of a recording of v3bridge") from error


def decoded(body: str | bytes) -> Any:
    """Return the JSON that a body is, else its text."""
    try:
        return json.loads(body)
    except ValueError:
        return body if isinstance(body, str) else body.decode("utf-8", "replace")


def _exchange(value: Any, request: Any) -> UpstreamExchange:
    if isinstance(value, dict) and "body" in value:
        return msgspec.convert(value, UpstreamExchange)
    if not isinstance(value, dict) or value.keys().isdisjoint(("data", "errors", "access_token", "error")):
        raise ValueError("no body of the services")
    query, variables = request.get("query", ""), request.get("variables") or {}
    return UpstreamExchange(value, query=query, variables=variables, operation=request.get("operationName"))


def view(exchange: UpstreamExchange) -> dict[str, Any]:
    """Return what expressions of passive checks observe.

    `ok`: data without errors. `errors`, with the `status` of the response. `token`: the body of a token response.
    `nodes`: all fields with sub-fields by their names, as `args` (null: not known), `root` (the arguments of the root
    field), `value` with the names of fields in place of aliases. Of them: `searches`; `matches`, a query with its
    result each; `parts`.
    """
    body = exchange.body if isinstance(exchange.body, dict) else {}
    listed = body.get("errors")
    shown: dict[str, Any] = {
        "status": exchange.status,
        "headers": exchange.headers,
        "ok": isinstance(body.get("data"), dict) and not listed and exchange.status in (None, 200),
        "authorized": exchange.authorized,
        "operation": exchange.operation,
        "errors": [
            {**each, "message": str(each.get("message", "")), "status": exchange.status, "data": "data" in body}
            for each in (listed if isinstance(listed, list) else ())
            if isinstance(each, dict)
        ],
        "token": {**body, "claims": expressions.decoded_part(str(body["access_token"]), 1)}
        if "access_token" in body
        else None,
        "refusal": body.get("error") if isinstance(body.get("error"), str) else None,
        "request_id": body["extensions"].get("requestId") if isinstance(body.get("extensions"), dict) else None,
        "nodes": {},
    }
    if shown["ok"]:
        walk = _Walk(shown["nodes"], exchange.variables)
        shown["keys"], shown["operations"], shown["expected"] = sorted(body["data"]), 0, None
        document = _parsed(exchange.query)
        chosen = document and language.get_operation_ast(document, exchange.operation)
        if document is not None and chosen:
            walk.fragments = {each.name.value: each for each in _of(document, language.FragmentDefinitionNode)}
            walk.variables = _defaults(chosen) | exchange.variables
            walk.object(body["data"], walk.fields(chosen.selection_set), None)
            shown["operations"] = len(list(_of(document, language.OperationDefinitionNode)))
            shown["expected"] = sorted(key for key, _ in walk.fields(chosen.selection_set))
        elif not exchange.query:
            walk.object({_root_name(key, value): value for key, value in body["data"].items()}, None, None)
    _derive(shown)
    return shown


def _derive(shown: dict[str, Any]) -> None:
    """Add the lists that most checks are about."""
    nodes: dict[str, list[dict[str, Any]]] = shown["nodes"]
    shown["searches"] = [
        each for name in ("supSearch", "supSearchMpn") for each in nodes.get(name, ()) if each["value"]
    ]
    shown["matches"] = [
        {"query": query, "queries": node["args"] and node["args"].get("queries"), "args": node["args"]}
        | {"index": index, "result": result, "fields": sorted(result), "places": _places(node["args"], result)}
        for node in nodes.get("supMultiMatch", ())
        for index, (query, result) in enumerate(_with_queries(node))
        if isinstance(result, dict)
    ]
    for match in shown["matches"]:
        asked = _bare((match["query"] or {}).get("mpn"))
        match["numbers"] = [
            {"asked": asked, "own": _bare(part.get("mpn")), "others": _bare_all(part.get("akaMpns"))}
            for part in match["result"].get("parts") or ()
        ]
    for node in nodes.get("supParts", ()):
        node["places"] = _part_places((node["args"] or {}).get("ids") or [], node["value"])
    shown["parts"] = [
        part
        for name in ("parts", "part", "supParts")
        for node in nodes.get(name, ())
        for part in (node["value"] if isinstance(node["value"], list) else [node["value"]])
        if isinstance(part, dict)
    ]


def _places(args: Any, result: Mapping[str, Any]) -> list[int]:
    """Return the places of the queries that ask for the number of the first part of a result."""
    part = (result.get("parts") or [{}])[0]
    numbers = {_bare(each) for each in (part.get("mpn"), *(part.get("akaMpns") or ()))} - {""}
    queries = (args or {}).get("queries")
    listed = queries if isinstance(queries, list) else []
    return [place for place, each in enumerate(listed) if _bare(each.get("mpn")) in numbers]


def _part_places(ids: list[str], parts: list[Any]) -> list[dict[str, Any]]:
    """Return for each part that was asked for by its id or uid its `place`, and those that it was `asked` at."""
    found = []
    for place, part in enumerate(parts):
        known = {part.get("id"), part.get("v3uid")} if isinstance(part, dict) else set()
        if asked := [at for at, each in enumerate(ids) if each in known]:
            found.append({"asked": asked, "place": place})
    return found


def _bare_all(numbers: Any) -> list[str] | None:
    return [_bare(each) for each in numbers] if isinstance(numbers, list) else None


def _bare(number: Any) -> str:
    return expressions.bare(number) if isinstance(number, str) else ""


def _with_queries(node: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    results = node["value"] if isinstance(node["value"], list) else []
    queries = node["args"].get("queries") if node["args"] else None
    if not isinstance(queries, list) or len(queries) != len(results):
        queries = [None] * len(results)
    return zip(queries, results, strict=True)


class _Walk:
    """Walks data and document together, and adds the fields with sub-fields to `nodes`."""

    def __init__(self, nodes: dict[str, list[dict[str, Any]]], variables: Mapping[str, Any]) -> None:
        self.nodes, self.variables = nodes, variables
        self.fragments: Mapping[str, Any] = {}

    def fields(self, selected: Any) -> list[tuple[str, Any]]:
        """Return response key and node of each field that is selected, those of fragments too."""
        found: dict[str, Any] = {}
        for each in selected.selections if selected else ():
            if isinstance(each, language.FieldNode):
                found.setdefault((each.alias or each.name).value, each)
                continue
            inner = self.fragments.get(each.name.value) if isinstance(each, language.FragmentSpreadNode) else each
            found = dict(self.fields(inner.selection_set if inner else None)) | found
        return list(found.items())

    def object(self, value: dict[str, Any], fields: list[tuple[str, Any]] | None, root: Any) -> dict[str, Any]:
        """Return an object with the names of its fields; `fields` is None where they are not known."""
        named: dict[str, Any] = {}
        for key, node in [(key, None) for key in value] if fields is None else fields:
            if key in value:
                name = node.name.value if node else key
                args = self._arguments(node) if node else None
                inner = self.fields(node.selection_set) if node else None
                below = self._value(value[key], inner, args if root is None else root)
                named[key if name in named else name] = below
                if isinstance(below, dict | list):
                    self.nodes.setdefault(name, []).append(
                        {"name": name, "args": args, "root": args if root is None else root, "value": below}
                    )
        return named

    def _value(self, value: Any, fields: list[tuple[str, Any]] | None, root: Any) -> Any:
        if isinstance(value, list):
            return [self._value(each, fields, root) for each in value]
        # An object without selection is a scalar of the schema, such as counts.
        return self.object(value, fields, root) if isinstance(value, dict) and fields != [] else value

    def _arguments(self, node: Any) -> dict[str, Any]:
        given = {
            each.name.value: language.value_from_ast_untyped(each.value, dict(self.variables))
            for each in node.arguments or ()
        }
        return {name: value for name, value in given.items() if value is not language.Undefined}


@lru_cache(maxsize=256)
def _parsed(query: str) -> language.DocumentNode | None:
    try:
        return language.parse(query, no_location=True) if query else None
    except language.GraphQLError:
        return None


def _of(document: language.DocumentNode, kind: type) -> Iterator[Any]:
    return (each for each in document.definitions if isinstance(each, kind))


def _defaults(operation: Any) -> dict[str, Any]:
    return {
        each.variable.name.value: language.value_from_ast_untyped(each.default_value)
        for each in operation.variable_definitions or ()
        if each.default_value
    }


def _root_name(key: str, value: Any) -> str:
    """Return the name of a root field; that of an alias follows from the shape of the value."""
    first = value[0] if isinstance(value, list) and value else value
    if key in _ROOTS or not isinstance(first, dict):
        return key
    if "hits" in first:
        return "supMultiMatch" if isinstance(value, list) else "supSearch"
    return "supParts" if "mpn" in first else key
