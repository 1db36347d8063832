"""Compares the explanation of a request with its real response and the operations that were really sent."""

import functools
import json
import re
from collections.abc import Iterator
from typing import Any

import graphql

from proxy import config
from proxy.explain.explainer import Explainer
from proxy.explain.explanation import Explanation
from proxy.traffic import estimate
from proxy.traffic.v3_request import V3Request, parse_target

LISTS = {
    "supManufacturers": "Brand",
    "supSellers": "Seller",
    "supCategories": "Category",
    "supAttributes": "Attribute",
}


def explain(
    settings: config.Config, method: str, target: str, sent: list[dict[str, Any]], answers: list[Any]
) -> Explanation | None:
    """Explain a request with the lists that the proxy has fetched; None for a path that v3 never had. `answers` are
    those of the upstream to what it was `sent`."""
    explainer = Explainer(settings)
    for operation, answer in zip(sent, answers, strict=False):
        name = LISTS.get(operation["operationName"])
        if name is not None and answer.get("data"):
            explainer.supply_list(name, json.dumps(answer).encode())
    try:
        path, query, apikey = parse_target(target)
    except ValueError:
        return None
    request = V3Request(path, query)
    explanation = explainer.explain(request, apikey=apikey, method=method)
    # The estimate of `compare` knows neither mappings nor lists: it may be higher, never lower.
    assert explanation.cost is None or explanation.cost.parts_max <= estimate.worst_case_parts(request)
    return explanation


def differences_of_operations(explanation: Explanation, sent: list[dict[str, Any]]) -> list[str]:
    """Return what was sent and is not explained, and what is explained without condition and was not sent."""
    real = {_operation(each["query"], each["variables"]): each["operationName"] for each in sent}
    explained = {_operation(each.document, each.variables): each for each in explanation.operations}
    # The operation of a list that has been supplied is not explained again.
    missing = [name for key, name in real.items() if key not in explained and name not in LISTS]
    never = [each.name for key, each in explained.items() if key not in real and each.condition is None]
    return [f"{name} was sent, but is not explained" for name in missing] + [f"{name} was not sent" for name in never]


def unexplained_fields(explanation: Explanation, body: Any) -> list[str]:
    """Return the fields of a response that its explanation does not have."""
    objects = {each.path for each in explanation.fields}
    around = {each.path for each in explanation.envelope}
    return sorted(_objects(explanation, body, objects) | (set() if not around else _around(body, around)))


def _objects(explanation: Explanation, body: Any, explained: set[str]) -> set[str]:
    if explanation.action == "match":
        found = [item for result in body["results"] for item in result["items"]]
    elif explanation.action == "search":
        found = [result["item"] for result in body["results"]]
    else:
        found = list(body.values()) if explanation.action == "get_multi" else [body]
    return {path for each in found for path in _paths(each, "", explained) if path not in explained}


def _around(body: Any, explained: set[str]) -> set[str]:
    results = {f"results[].{name}" for result in body["results"] for name in result if name != "__class__"}
    names = {name for name in body if name not in ("results", "__class__")}
    return (results | names) - explained


def _paths(value: Any, path: str, explained: set[str]) -> Iterator[str]:
    """Yield the paths of all fields. What stands in a field that is explained as a whole is not visited."""
    if isinstance(value, list):
        for each in value:
            yield from _paths(each, f"{path}[]", explained)
    elif isinstance(value, dict):
        for name, below in value.items():
            if name == "__class__":
                continue
            inner = f"{path}.{name}" if path else name
            keyed = f"{path}.<key>"
            if path and inner not in explained and any(each.startswith(f"{keyed}.") for each in explained):
                inner = keyed
            elif inner in explained or not path:
                yield inner
            elif any(each.startswith(f"{path}.") or each.startswith(f"{path}[]") for each in explained):
                if not any(each.startswith(f"{inner}.") for each in explained):
                    yield inner
            else:
                continue
            yield from _paths(below, inner, explained)


def _operation(document: str, variables: Any) -> tuple[str, str]:
    return _printed(document), json.dumps(variables, sort_keys=True)


@functools.cache
def _printed(document: str) -> str:
    """Return a document in one form of it; many cases have the same."""
    return re.sub(r"\s+", " ", graphql.print_ast(graphql.parse(document, no_location=True)))
