"""The result as JSON, for programs. docs/reference/compare.schema.json describes it."""

from typing import Any

import msgspec

from proxy.compare.reports import visible
from proxy.compare.result import Result


def render(result: Result) -> str:
    """The whole result, indented. Text that UTF-8 cannot carry is written out as JSON writes it."""
    encoded = msgspec.json.encode(_encodable(msgspec.to_builtins(result)))
    return msgspec.json.format(encoded, indent=2).decode() + "\n"


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return visible.encodable(value)
    if isinstance(value, dict):
        return {name: _encodable(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_encodable(each) for each in value]
    return value
