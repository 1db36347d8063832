"""Reference of the settings: of each its name, default, accepted values and meaning (meanings.yaml)."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_type_hints

import msgspec

from proxy.config import mistakes, secret
from proxy.config.base import Settings
from proxy.config.settings import Config
from proxy.kit import located_yaml

ACCEPTED = {
    "upstream": "sandbox, nexar, or a block",
    "applications": "names of your own, each with the keys below",
}
"""What is accepted by settings that have no type of their own."""

_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_AFTER = re.compile(r" \(\[[^\]]*\]\([^)]*\)\)")  # a reference in parentheses


class ReferenceRow(NamedTuple):
    """A setting by its dotted name, in which `NAME` is that of an application. `default` is "required" or "none" where
    there is no value; `meaning` is Markdown with links from the documentation's page."""

    name: str
    default: str
    accepts: str
    meaning: str
    is_common: bool

    @property
    def plain_meaning(self) -> str:
        return _LINK.sub(r"\1", _AFTER.sub("", self.meaning)).replace("`", "")


def rows() -> list[ReferenceRow]:
    """Return all settings, in the order of their definition."""
    meanings = located_yaml.read(Path(__file__).with_name("meanings.yaml"), ValueError).data
    common, others = meanings["common"], meanings["others"]
    return [
        ReferenceRow(
            name,
            _default(field),
            ACCEPTED.get(name) or mistakes.accepted(kind, field.name),
            (common | others)[name],
            name in common,
        )
        for name, field, kind in _settings(Config, "")
    ]


def documented_name(name: str) -> str:
    """Return the name in the reference of an effective setting, such as `applications.demo.apikeys.1.parts`."""
    steps = name.split(".")
    if steps[0] == "applications" and len(steps) > 1:
        steps[1] = "NAME"
    if len(steps) > 3 and steps[2] == "apikeys":
        del steps[3]
    return ".".join(steps)


def _settings(kind: type[Settings], prefix: str) -> Iterator[tuple[str, Any, type[Settings]]]:
    for field in msgspec.structs.fields(kind):
        name = f"{prefix}{field.name}"
        block = _block(kind, field.name)
        # A block by itself says nothing, but where it may be missing, or has another form.
        if block is None or not isinstance(field.default, Settings):
            yield name, field, kind
        if block is not None:
            yield from _settings(block, f"{name}.NAME." if field.name == "applications" else f"{name}.")


def _block(kind: type[Settings], name: str) -> type[Settings] | None:
    """Return the block of settings that a setting is, or a list of, or may be."""
    hint = get_type_hints(kind)[name]
    choices = [hint, *get_args(hint), *(inner for each in get_args(hint) for inner in get_args(each))]
    return next((each for each in choices if isinstance(each, type) and issubclass(each, Settings)), None)


def _default(field: Any) -> str:
    match field.default:
        case msgspec.NODEFAULT:
            return "required" if field.default_factory is msgspec.NODEFAULT else str(field.default_factory())
        case None:
            return "none"
        case bool():
            return str(field.default).lower()
        case tuple():
            return str(list(field.default))
        case secret.StoreUrl():
            return field.default.shown
        case _:
            return str(field.default)
