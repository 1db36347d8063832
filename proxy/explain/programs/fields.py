"""Fields that a program needs: paths as in show[], or those of a v3 response or of recorded responses.

A path leads from the object of the response, such as `offers.seller.name`. A request for these fields is the v3
request with show[] and include[] in place of its own.
"""

import difflib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from proxy import errors
from proxy.explain import inputs
from proxy.kit import clock
from proxy.mapping.loader import Mappings
from proxy.traffic.recording.recorded import Recording
from proxy.traffic.v3_request import V3Request, parse_target
from proxy.v3 import bounds, endpoints

KEYS_MAX = 40  # keys of a keyed object, such as specs; beyond them all are meant
OK = 200
CHOOSING = ("show", "hide", "include")  # parameters that fields take the place of


class FieldTree(dict[str, "FieldTree"]):
    """Fields of an object, each with those below it; empty for a value, or for an object that was never there."""


def read(text: str, request: V3Request, mappings: Mappings) -> tuple[str, ...]:
    """Return the fields that a text names, or those in the file that it names. Raises SourceError."""
    name = _object(request)
    if inputs.is_file(text):
        file = Path(text)
        paths = sorted(set(_fields_in_file(file, request, mappings)))
        if not paths:
            raise errors.SourceError(f"{file}: no response of {request.endpoint} with fields of v3 is in this file")
        return tuple(paths)
    paths = [path.strip() for path in text.split(",") if path.strip()]
    if not paths:
        raise errors.SourceError(
            "--fields is empty; give fields such as mpn,offers.prices, or a file with a v3 response"
        )
    for path in paths:
        if not mappings.knows(name, tuple(path.split("."))):
            raise errors.SourceError(f"--fields: {name} has no field {path!r}{_similar(path, name, mappings)}")
    return tuple(paths)


def restricted(request: V3Request, fields: Iterable[str], mappings: Mappings) -> V3Request:
    """Return the request for these fields only. Raises SourceError for more than a request may have."""
    paths = list(dict.fromkeys(fields))
    firsts = dict.fromkeys(path.partition(".")[0] for path in paths)
    included = [name for name in firsts if name in mappings.includable(_object(request))]
    if len(paths) + len(included) > bounds.PROJECTION.maximum:
        raise errors.SourceError(f"--fields: at most {bounds.PROJECTION.maximum} fields, not {len(paths)}")
    kept = [(name, value) for name, value in request.query if name.partition("[")[0] not in CHOOSING]
    chosen = [*(("show[]", path) for path in paths), *(("include[]", name) for name in included)]
    return V3Request(request.path, (*kept, *chosen))


def _object(request: V3Request) -> str:
    endpoint = endpoints.of(request.path)
    assert endpoint is not None  # noqa: S101 - the request has been explained
    return endpoint.object


def _fields_in_file(file: Path, request: V3Request, mappings: Mappings) -> Iterator[str]:
    """Yield the paths of the fields in a file: one response as JSON, recorded responses, or a HAR file."""
    name, seen = _object(request), FieldTree()
    for response in _responses(file, request):
        for each in _objects(response):
            _collect(each, name, mappings, seen)
    yield from _paths(seen, name, mappings)


def _responses(file: Path, request: V3Request) -> Iterator[Any]:
    try:
        document = json.loads(file.read_bytes())
    except OSError as error:
        raise errors.SourceError(f"{file}: {error.strerror}") from error
    except ValueError:
        yield from _recorded(file, request)  # a recording, which is compressed or has several lines
    else:
        log = document.get("log") if isinstance(document, dict) else None
        if isinstance(log, dict) and "entries" in log:
            yield from _har_bodies(log["entries"], request)
        else:
            yield document


def _recorded(file: Path, request: V3Request) -> Iterator[Any]:
    recording = Recording(file, clock.SystemClock().now())
    try:
        for recorded in recording.requests():
            line = recording.line(recorded)
            response = line and (line.baseline or line.candidate)
            if response and not response.digest and response.status == OK and recorded.endpoint == request.endpoint:
                yield json.loads(response.response().body)
    finally:
        recording.close()


def _har_bodies(entries: Any, request: V3Request) -> Iterator[Any]:
    """Yield the responses of the request's endpoint in a HAR file."""
    for entry in entries:
        try:
            path, _, _ = parse_target(entry["request"]["url"])
            response = json.loads(entry["response"]["content"]["text"])
        except (LookupError, TypeError, ValueError):
            continue  # a request that is not v3's, or a response that was not recorded
        if V3Request(path).endpoint == request.endpoint:
            yield response


def _objects(response: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects of a response of any endpoint, or of a list of such objects."""
    match response:
        case {"results": list(results)}:
            for result in results:
                yield from _objects(result)
        case {"items": list(items)}:
            yield from (each for each in items if isinstance(each, dict))
        case {"item": dict(item)}:
            yield item
        case list():
            for each in response:
                yield from _objects(each)
        case dict() if response and all(isinstance(each, dict) and "uid" in each for each in response.values()):
            yield from response.values()
        case dict():
            yield response


def _collect(value: Any, name: str, mappings: Mappings, tree: FieldTree) -> None:
    """Add the fields of one object to a tree, without those that v3 never had."""
    for field, content in value.items() if isinstance(value, dict) else ():
        if field not in mappings.rules[name].fields:
            continue
        rule = mappings.rules[name].rule(field)
        below = tree.setdefault(field, FieldTree())
        if rule.keyed and isinstance(content, dict):
            below.update((key, FieldTree()) for key in content)
        elif rule.target:
            for each in content if isinstance(content, list) else [content]:
                _collect(each, rule.target, mappings, below)


def _paths(tree: FieldTree, name: str, mappings: Mappings) -> Iterator[str]:
    """Yield the paths of a tree. An object that has all of its fields is one path: a request has room for few."""
    for field, below in tree.items():
        rule = mappings.rules[name].rule(field)
        if rule.keyed:
            yield from [f"{field}.{key}" for key in below] if 0 < len(below) <= KEYS_MAX else [field]
        elif rule.target is None or _is_whole(below, rule.target, mappings):
            yield field
        else:
            yield from (f"{field}.{path}" for path in _paths(below, rule.target, mappings))


def _is_whole(tree: FieldTree, name: str, mappings: Mappings) -> bool:
    """Return whether a tree has nothing at all of an object, which says nothing, or everything."""
    rules = mappings.rules[name]
    targets = ((field, rules.rule(field)) for field in rules.fields)
    return not tree or all(
        field in tree and (not rule.target or _is_whole(tree[field], rule.target, mappings)) for field, rule in targets
    )


def _similar(path: str, name: str, mappings: Mappings) -> str:
    """Return what the first mistaken step of a path may mean, as the end of a message."""
    target: str | None = name
    before: list[str] = []
    for step in path.split("."):
        fields = mappings.rules[target].fields if target else {}
        if step not in fields:
            close = difflib.get_close_matches(step, fields, 1)
            shown = ".".join(before)
            if close:
                return f"; did you mean {'.'.join([*before, close[0]])}?"
            return f"; {shown or name} has {', '.join(fields)}" if fields else f"; {shown} has no fields of its own"
        before.append(step)
        target = mappings.rules[target].rule(step).target if target else None
    return ""
