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
    raw = located.data
    for step in at:
        if isinstance(raw, str) and step == "key":  # an API key that is no block
            break
        if isinstance(raw, dict) and step in config.PLANS.get(str(raw.get("plan")), {}) and step not in raw:
            return _place(located, (*at[:-1], "plan"))
        if not (step in raw if isinstance(raw, dict) else isinstance(raw, list)):
            return DEFAULT
        raw = raw[step]
    references = [raw] if isinstance(raw, str) and raw.startswith(("env:", "file:")) else []
    return ", ".join((*references, _place(located, at)))


def _place(located: LocatedYaml, at: Trail) -> str:
    return located.place(at).rpartition(":")[0]


def _shown(value: Any) -> str:
    """Return a value as text: as the file would have it."""
    if isinstance(value, secret.StoreUrl):
        return value.shown
    if isinstance(value, secret.Secret | secret.Digest | secret.ClientId):
        return "hidden"
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
