"""How the parameters of a request are understood: their values with defaults, and what of them has no effect."""

import difflib
from collections.abc import Iterable, Iterator
from typing import Any

from proxy import errors
from proxy.explain.explanation import IgnoredParameter, ParameterValue, UnderstoodQuery
from proxy.mapping.loader import Mappings
from proxy.model import PartsMatchRequest
from proxy.v3.endpoints import Endpoint
from proxy.v3.parameters import Parameters, bare
from proxy.v3.parsing import match_queries, v3_parameters
from proxy.v3.parsing.v3_parameters import Parameter

# Shown elsewhere: the API key as the client, the queries one by one; `userkey` is never read.
_SHOWN_APART = {"apikey", "queries", "userkey", "uid"}


def parameter_values(endpoint: Endpoint, parameters: Parameters) -> tuple[ParameterValue, ...]:
    """Return every parameter that the endpoint reads, those at their default last."""
    described = [each for each in _described(endpoint) if each.name not in _SHOWN_APART]
    values = [value for each in described for value in _values(each, parameters)]
    return tuple(sorted(values, key=lambda value: value.is_default))


def queries(raws: list[Any], request: PartsMatchRequest) -> tuple[UnderstoodQuery, ...]:
    """Return the queries of parts/match with their defaults; of an invalid one only what was sent."""
    return tuple(
        UnderstoodQuery(
            position=position,
            keys={name: given.get(name, default) for name, default in match_queries.DEFAULTS.items()},
            given=tuple(given),
            error=query.error,
        )
        for position, (raw, query) in enumerate(zip(raws, request.queries, strict=True))
        for given in [match_queries.non_null(raw) if isinstance(raw, dict) else {}]
    )


def ignored(endpoint: Endpoint, parameters: Parameters, mappings: Mappings) -> Iterator[IgnoredParameter]:
    """Yield the parameters of a valid request without effect, and the fields that its projection does not find."""
    for name in parameters.names(""):
        if not is_read(endpoint, name):
            yield IgnoredParameter(name=name, reason=_unknown(name, [each.name for each in _described(endpoint)]))
    yield from _ignored_fields(endpoint.object, parameters, mappings)


def is_read(endpoint: Endpoint, name: str) -> bool:
    """Return whether the endpoint reads a parameter of this name, with or without its last brackets."""
    known = (each.name for each in _described(endpoint) if each.name != "userkey")
    return any(_is_spelling_of(bare(name), each) for each in known)


def _ignored_fields(name: str, parameters: Parameters, mappings: Mappings) -> Iterator[IgnoredParameter]:
    """Yield the values of include[], show[], hide[] and slice[] that name no field of the object."""
    hidden = mappings.includable(name)
    for field in parameters.texts("include"):
        if field not in hidden:
            is_shown = field in mappings.rules[name].fields
            reason = "is in every response" if is_shown else f"{name} has no hidden field of this name"
            yield IgnoredParameter(name=f"include[]={field}", reason=reason)
    paths = [(f"{kind}[]={text}", text) for kind in ("show", "hide") for text in parameters.texts(kind) if text]
    paths += [(each, each[6:-1]) for each in parameters.names("slice[")]
    for parameter, text in paths:
        if not mappings.knows(name, tuple(text.split("."))):
            yield IgnoredParameter(name=parameter, reason=f"{name} has no field {text}")


def _described(endpoint: Endpoint) -> tuple[Parameter, ...]:
    return (*v3_parameters.of(endpoint), *v3_parameters.GLOBALS)


def _values(described: Parameter, parameters: Parameters) -> Iterator[ParameterValue]:
    """Yield the value of a parameter, or one value for each field that the request has it for."""
    if described.head is None:
        name = bare(described.name)
        is_default = parameters.text(name) is None
        value = described.default if is_default else _value(described, parameters, name)
        if described.kind == "texts" and is_default:
            value = []
        yield ParameterValue(name=described.name, value=value, is_default=is_default, meaning=described.meaning)
        return
    for name in parameters.names(f"{described.head}["):
        if _is_spelling_of(name, described.name):
            value = _value(described, parameters, name)
            yield ParameterValue(name=name, value=value, is_default=False, meaning=described.meaning)


def _value(described: Parameter, parameters: Parameters, name: str) -> Any:
    """Return a value as the service reads it; as it was sent where that is invalid. The service has not complained, so
    it does not read it, such as an option of statistics that are not included."""
    try:
        if described.kind == "flag":
            return parameters.flag(name)
        if described.kind == "whole":
            return parameters.whole(name, described.default, described.maximum or 0)
    except errors.BadRequest:
        return parameters.text(name)
    return parameters.texts(name) if described.kind == "texts" else parameters.text(name) or described.default


def _is_spelling_of(name: str, described: str) -> bool:
    """Return whether a parameter's name, without its last brackets, is that of a described one."""
    head, marker, option = bare(described).partition(f"[{v3_parameters.FIELD}]")
    if not marker:
        return name == head
    field = name[len(head) + 1 : len(name) - len(option) - 1]
    # No brackets: other spellings of a filter or a facet are not read.
    return name == f"{head}[{field}]{option}" and bool(field) and not ("[" in field or "]" in field)


def _unknown(name: str, names: Iterable[str]) -> str:
    similar = difflib.get_close_matches(bare(name)[:40], [bare(each) for each in names], 1)
    hint = f"; did you mean {similar[0]}?" if similar and similar[0] != name else ""
    return f"this endpoint has no such parameter{hint}"
