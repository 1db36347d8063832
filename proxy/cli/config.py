"""`v3bridge config`: the settings in effect, and where each comes from."""

import os
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from proxy import config as settings
from proxy.cli import option_fields, shown
from proxy.config import loader, secret
from proxy.kit import located_yaml, shipped
from proxy.kit.located_yaml import Trail

DEFAULT = "default"  # the source of a setting that the file does not have


def config(
    config_file: option_fields.ConfigFile = None,
    everything: Annotated[bool, typer.Option("--all", help="Also print the settings at their defaults.")] = False,
    as_json: option_fields.AsJson = False,
) -> None:
    """Print the settings of a configuration and where each comes from; with --all every setting."""
    file = config_file or shipped.path("config.yaml")
    loaded, located = loader.load(file, os.environ, upstream=False), located_yaml.load(file)
    listed = [
        {"name": ".".join(map(str, name)), "value": _shown(value), "source": source}
        for name, at, value in _settings(loaded, (), ())
        if (source := _source(located, at)) != DEFAULT or everything
    ]
    shown.print_result(listed, [shown.table(listed, {"setting": "name", "value": "value", "from": "source"})], as_json)


def _settings(value: Any, name: Trail, at: Trail) -> Iterator[tuple[Trail, Trail, Any]]:
    """Yield the name, the place in the file and the value of each setting."""
    inner: list[tuple[Any, Any, Any]]
    if isinstance(value, settings.Settings):
        inner = [(field, field, getattr(value, field)) for field in value.__struct_fields__]
    elif isinstance(value, dict):
        inner = [(key, key, each) for key, each in value.items()]
    elif isinstance(value, tuple) and value and isinstance(value[0], settings.ApiKeySettings):
        inner = [(key.name or index + 1, index, key) for index, key in enumerate(value)]
    else:
        yield name, at, value
        return
    for label, step, each in inner:
        yield from _settings(each, (*name, label), (*at, step))


def _source(located: located_yaml.LocatedYaml, at: Trail) -> str:
    """Return `config.yaml:12`, with `env:NAME` or `file:PATH` where the value is read from there."""
    raw = located.data
    for step in at:
        if isinstance(raw, str) and step == "key":  # an API key that is no block
            break
        if isinstance(raw, dict) and step in settings.PLANS.get(str(raw.get("plan")), {}) and step not in raw:
            at = (*at[:-1], "plan")
            break
        if not (step in raw if isinstance(raw, dict) else isinstance(raw, list)):
            return DEFAULT
        raw = raw[step]
    line = located.place(at).rpartition(":")[0]
    return f"{raw}, {line}" if isinstance(raw, str) and raw.startswith(("env:", "file:")) else line


def _shown(value: Any) -> str:
    """Return a value as text: as the file would have it."""
    if isinstance(value, secret.StoreUrl):
        return value.shown
    if isinstance(value, secret.Secret | secret.Digest | secret.ClientId):
        return "hidden"
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
