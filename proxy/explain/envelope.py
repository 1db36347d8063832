"""Fields of a response around its v3 objects: what the proxy makes them of, by envelope.yaml."""

import functools
import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

from proxy.explain.explanation import ExplainedField, ExplainedOperation
from proxy.kit import located_yaml
from proxy.v3.endpoints import Action, Endpoint

ITEMS: dict[Action, str] = {
    "match": "results[].items[]",
    "search": "results[].item",
    "get_multi": "<uid>",
    "get": "",
}
"""Path of the objects in a response; empty: the response is the object."""

_NAME = re.compile(r"\w+")


def envelope_fields(endpoint: Endpoint, operations: Iterable[ExplainedOperation]) -> tuple[ExplainedField, ...]:
    """Return the fields around the objects of a response, with those of their upstream paths that the operations
    select; none for an endpoint that returns objects only."""
    response: str = endpoint.action
    if response == "search":
        response = "search of parts" if endpoint.object == "Part" else "search of a list"
    names = {name for each in operations for name in _NAME.findall(each.document)} | {"errors", "message"}
    return tuple(
        msgspec.structs.replace(
            field, upstream=tuple(path for path in field.upstream if names.issuperset(_NAME.findall(path)))
        )
        for field in _fields().get(response, ())
    )


@functools.cache
def _fields() -> dict[str, tuple[ExplainedField, ...]]:
    texts = located_yaml.load(Path(__file__).with_name("envelope.yaml")).data
    return msgspec.convert(texts, dict[str, tuple[ExplainedField, ...]])
