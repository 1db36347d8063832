"""Credentials for prices of the caller's own: what of a request is hidden in errors and logs. Pure."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

# The argument in the names of both APIs. Names in GraphQL have one spelling, so that no document with it is missed.
_ARGUMENT = re.compile(r"custom_?pricing_?credentials", re.IGNORECASE)
_STRINGS = re.compile(r'"""(.*?)"""|"((?:[^"\\\n]|\\.)*)"', re.DOTALL)


def secrets(document: str, variables: Mapping[str, Any] | None) -> set[str]:
    """Return all strings of a request that has such credentials, valid or not; none of another one."""
    if not _ARGUMENT.search(document):
        return set()
    literals = {string for pair in _STRINGS.findall(document) for string in pair}
    return (literals | set(_strings(variables))) - {""}


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)
