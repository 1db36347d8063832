"""Texts in JSON values."""

from collections.abc import Callable
from typing import Any


def changed(value: Any, change: Callable[[str], Any], *, names: bool = False) -> Any:
    """Return a JSON value with each text in it changed, at any depth; with `names`, the keys of objects, too."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key) if names else key: changed(below, change, names=names) for key, below in value.items()}
    return [changed(each, change, names=names) for each in value] if isinstance(value, list | tuple) else value
