"""Effective settings with their origins: a line of the file, a variable, another file, or a default.

Places are read from the file when they are shown: settings are loaded once, and shown rarely. Secrets are never shown,
only where they come from.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from proxy import config
from proxy.config import base, secret
from proxy.kit import located_yaml
from proxy.kit.located_yaml import LocatedYaml, Trail

DEFAULT = "default"


class EffectiveSetting(msgspec.Struct, frozen=True):
    """A setting as it is in effect. `value` is "hidden" for a secret; `source` is `config.yaml:12`, with `env:NAME` or
    `file:PATH` where the value is read from there, or "default"."""

    name: str
    value: str
    source: str


def effective_settings(settings: config.Config, file: Path) -> list[EffectiveSetting]:
    """Return all settings, in the order of their definition. Raises YamlError where the file cannot be read."""
    located = located_yaml.load(file)
    return [
        EffectiveSetting(".".join(map(str, name)), _shown(value), _source(located, at))
        for name, at, value in _settings(settings, (), ())
    ]


def _settings(value: Any, name: Trail, at: Trail) -> Iterator[tuple[Trail, Trail, Any]]:
    """Yield the name, the place in the file and the value of each setting."""
    inner: list[tuple[Any, Any, Any]]
    if isinstance(value, base.Settings):
        inner = [(field, field, getattr(value, field)) for field in value.__struct_fields__]
    elif isinstance(value, dict):
        inner = [(key, key, each) for key, each in value.items()]
    elif isinstance(value, tuple) and value and isinstance(value[0], config.ApiKeySettings):
        inner = [(key.name or index + 1, index, key) for index, key in enumerate(value)]
    else:
        yield name, at, value
        return
    for label, step, each in inner:
        yield from _settings(each, (*name, label), (*at, step))


def _source(located: LocatedYaml, at: Trail) -> str:
    raw, parent = _raw(located.data, at), _raw(located.data, at[:-1])
    if isinstance(parent, str) and at[-1] == "key":  # an API key that is no block
        raw = parent
    elif isinstance(parent, dict) and at[-1] not in parent:
        if at[-1] not in config.PLANS.get(str(parent.get("plan")), {}):
            return DEFAULT
        at = (*at[:-1], "plan")
    elif not isinstance(parent, dict):
        return DEFAULT
    references = [raw] if isinstance(raw, str) and raw.startswith(("env:", "file:")) else []
    return ", ".join((*references, located.place(at).rpartition(":")[0]))


def _raw(data: Any, at: Trail) -> Any:
    """Return what is written at a place; None for nothing, also where a block is written as one value."""
    for step in at:
        is_there = step in data if isinstance(data, dict) else isinstance(data, list) and isinstance(step, int)
        data = data[step] if is_there else None
    return data


def _shown(value: Any) -> str:
    """Return a value as text: as the file would have it."""
    if isinstance(value, secret.StoreUrl):
        return value.shown
    if isinstance(value, secret.Secret | secret.Digest | secret.ClientId):
        return "hidden"
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
