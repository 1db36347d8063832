"""What a run exercised of v3: endpoints and parameters of requests that the baseline served, fields with a value."""

import re
from collections.abc import Iterator
from typing import Any

from proxy.tools.compare.generating.shrinking import match_queries
from proxy.tools.compare.judging import causes, v3_fields
from proxy.traffic import v3_response
from proxy.traffic.v3_request import V3Request
from proxy.traffic.v3_response import SideResponse
from proxy.v3 import endpoints, parameters
from proxy.v3.endpoints import Endpoint
from proxy.v3.parsing import v3_parameters
from proxy.v3.parsing.v3_parameters import FIELD, Parameter

QUERY = "queries[].{}"  # key of a query, as a parameter


class Exercised:
    """Adds up what each exchange exercised."""

    def __init__(self, objects: v3_fields.Objects) -> None:
        self._objects = objects
        self._parameters: dict[str, set[str]] = {}  # of each endpoint, by its path
        self._fields: set[tuple[str, str]] = set()

    def add(self, request: V3Request, baseline: SideResponse) -> None:
        """Add a request and the baseline's response to it. A refused request exercises nothing."""
        body = v3_response.read_body(request, baseline)
        endpoint = endpoints.of(request.path)
        if endpoint is None or body.refused or body.problem or baseline.failure:
            return
        used = self._parameters.setdefault(request.endpoint, set())
        unseen = [each for each in _accepted(endpoint) if each.name not in used]
        used |= {each.name for each in unseen for name, _ in request.query if _pattern(each).fullmatch(name)}
        used |= {QUERY.format(key) for query in match_queries(request) for key in query}
        for shown in _below(body.document.value, causes.ROOTS[endpoint.action]):
            self._add_fields(endpoint.object, shown)

    def _add_fields(self, name: str, value: Any) -> None:
        """Add the fields of an object that have a value, and those of the objects in it."""
        if not isinstance(value, dict):
            return
        for field, entry in self._objects[name].items():
            below = value.get(field)
            if below is None or below in ("", [], {}):
                continue
            self._fields.add((name, field))
            if entry.target:
                for each in below if entry.each else below.values() if entry.keyed else (below,):
                    self._add_fields(entry.target, each)

    def never(self) -> Iterator[str]:
        """Describe what was never exercised: endpoints, parameters of each other endpoint, fields."""
        known = [each for each in endpoints.ENDPOINTS if each.alias_of is None]
        if missing := [each.path for each in known if each.path not in self._parameters]:
            yield f"never exercised, endpoints: {', '.join(missing)}"
        for endpoint in known:
            names = [*(each.name for each in _accepted(endpoint)), *_keys(endpoint)]
            unused = [name for name in names if name not in self._parameters.get(endpoint.path, names)]
            if unused:
                yield f"never exercised, parameters of {endpoint.path}: {', '.join(unused)}"
        fields = [(name, field) for name, entries in self._objects.items() for field in entries]
        if empty := [".".join(each) for each in fields if each not in self._fields]:
            yield f"never exercised, fields without a value in any response of the baseline: {', '.join(empty)}"


def _accepted(endpoint: Endpoint) -> list[Parameter]:
    """Return the parameters of an endpoint's query."""
    own = (each for each in v3_parameters.of(endpoint) if f"{{{each.name}}}" not in endpoint.path)
    return [*own, *v3_parameters.GLOBALS]


def _keys(endpoint: Endpoint) -> list[str]:
    return [QUERY.format(each.name) for each in v3_parameters.QUERY] if endpoint.action == "match" else []


def _pattern(parameter: Parameter) -> re.Pattern[str]:
    """Return the pattern of names that the parameter is sent under."""
    name = re.escape(parameters.bare(parameter.name)).replace(re.escape(FIELD), r"[^\[\]]+")
    return re.compile(rf"{name}(\[\d*\])?")


def _below(value: Any, steps: tuple[str, ...]) -> list[Any]:
    """Return the values at steps such as `results`, `[*]`, where the elements of an object's values are meant, too."""
    values = [value]
    for step in steps:
        if step == "[*]":
            values = [
                inner
                for each in values
                for inner in (each.values() if isinstance(each, dict) else each if isinstance(each, list) else ())
            ]
        else:
            values = [each[step] for each in values if isinstance(each, dict) and step in each]
    return values
