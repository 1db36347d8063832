"""Effective settings with their origins: a line of the file, a variable, another file, or a default.

Places are read from the file when they are shown: settings are loaded once, and shown rarely. Secrets are never shown,
only where they come from.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from proxy.config import secret
from proxy.config.base import Settings
from proxy.config.settings import PLANS, ApiKeySettings, Config
from proxy.kit import located_yaml
from proxy.kit.located_yaml import LocatedYaml, Trail

DEFAULT = "default"
HIDDEN = "hidden"
_MISSING: Any = object()
_SECRETS = (secret.Secret, secret.Digest, secret.ClientId)


class EffectiveSetting(msgspec.Struct, frozen=True):
    """A setting as it is in effect. `value` is "hidden" for a secret; `source` is `config.yaml:12`, with `env:NAME` or
    `file:PATH` where the value is read from there, or "default"."""

    name: str
    value: str
    source: str
    is_secret: bool

    @property
    def block(self) -> str:
        """Block of settings that it belongs to; each application is one."""
        first, *inner = self.name.split(".")
        if not inner:
            return "general"
        return f"{first}.{inner[0]}" if first == "applications" else first


def effective_settings(settings: Config, file: Path) -> list[EffectiveSetting]:
    """Return all settings, in the order of their definition. Raises YamlError where the file cannot be read."""
    return list(_Walk(located_yaml.load(file)).block(settings, "", (), Config))


class _Walk:
    """Visits all settings, each with its name and its place in the file."""

    def __init__(self, located: LocatedYaml) -> None:
        self._located = located

    def block(self, block: Settings, name: str, at: Trail, kind: type[Settings]) -> Iterator[EffectiveSetting]:
        for field in msgspec.structs.fields(kind):
            value = getattr(block, field.name)
            inner = f"{name}.{field.name}" if name else field.name
            yield from self._setting(value, inner, (*at, field.name), field.default)

    def _setting(self, value: Any, name: str, at: Trail, default: Any) -> Iterator[EffectiveSetting]:
        if isinstance(value, Settings):
            yield from self.block(value, name, at, type(value))
        elif isinstance(value, dict):
            for key, each in value.items():
                yield from self._setting(each, f"{name}.{key}", (*at, key), _MISSING)
        elif isinstance(value, tuple) and value and isinstance(value[0], Settings):
            for position, each in enumerate(value):
                label = each.name if isinstance(each, ApiKeySettings) and each.name else position + 1
                yield from self._setting(each, f"{name}.{label}", (*at, position), _MISSING)
        else:
            is_secret = _is_secret(value)
            yield EffectiveSetting(
                name, HIDDEN if is_secret else _shown(value), self._source(value, at, default), is_secret
            )

    def _source(self, value: Any, at: Trail, default: Any) -> str:
        raw, place = self._raw(at), self._place(at)
        if raw is _MISSING:
            if value == default:
                return DEFAULT
            # A block may be written as one value: a date for `sunset`, a key for the block of an API key.
            parent = self._raw(at[:-1])
            if isinstance(parent, dict) and at[-1] in PLANS.get(str(parent.get("plan")), {}):
                return self._place((*at[:-1], "plan"))
            return place
        given = raw if isinstance(raw, list) else [raw]
        references = [each for each in given if isinstance(each, str) and each.startswith(("env:", "file:"))]
        return ", ".join((*references, place))

    def _place(self, at: Trail) -> str:
        position = self._located.position(at)
        return self._located.name if position is None else f"{self._located.name}:{position.line}"

    def _raw(self, at: Trail) -> Any:
        data = self._located.data
        try:
            for step in at:
                data = data[step]
        except (KeyError, IndexError, TypeError):  # the last one: a block may be written as one value
            return _MISSING
        return data


def _is_secret(value: Any) -> bool:
    values = value if isinstance(value, tuple) else (value,)
    return any(isinstance(each, _SECRETS) and not isinstance(each, secret.StoreUrl) for each in values)


def _shown(value: Any) -> str:
    """Return a value as text: as the file would have it."""
    match value:
        case secret.StoreUrl():
            return value.shown
        case bool():
            return str(value).lower()
        case float():
            return f"{value:g}"
        case tuple() if value:
            return ", ".join(map(str, value))
        case None | ():
            return "none"
        case _:
            return str(value)
