"""Changes to the API keys of a configuration, as new settings and as a new text of its file.

Pure. Only what changes is written: everything else of the text, comments included, stays byte for byte. A text that has
no plain list of API keys, such as one made of anchors, is refused.
"""

import json
import re
import secrets
from collections.abc import Mapping
from datetime import date
from typing import Any, NamedTuple

import msgspec
import yaml

from proxy import errors
from proxy.config.secret import Digest
from proxy.config.settings import ApiKeySettings, ApplicationSettings, Config, SunsetSettings
from proxy.kit import located_yaml
from proxy.kit.wording import counted

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")  # text that YAML reads as such, except for WORDS
_WORDS = ("null", "true", "false")
_LINE_END = re.compile(r"[^\r\n]*")


KEY_BYTES = 24  # of an API key that is made
GRACE_DAYS = 30  # that a rotated key goes on working


class NotEditableError(ValueError):
    """The text has no place for the change."""


class KeyEnd(NamedTuple):
    """Last day of service of a key, or none."""

    name: str
    last_day: date | None


class KeyChange(NamedTuple):
    """Change to the API keys of an application: one is added, or gets an end, or both."""

    application: str
    added: ApiKeySettings | None = None
    ended: KeyEnd | None = None

    def applied(self, settings: Config) -> Config:
        """Return the settings after the change."""
        application = settings.applications[self.application]
        keys = [
            msgspec.structs.replace(key, expires=self.ended.last_day)
            if self.ended is not None and name == self.ended.name
            else key
            for name, key in application.clients.items()
        ]
        keys += [] if self.added is None else [self.added]
        changed = msgspec.structs.replace(application, apikeys=tuple(keys))
        return msgspec.structs.replace(settings, applications={**settings.applications, self.application: changed})

    def edited(self, text: str, settings: Config) -> str:
        """Return the text of a configuration file after the change; `settings` are those of the text. Raises
        NotEditableError."""
        keys = _api_keys(text, self.application)
        # From the end, so that the places before stay.
        if self.added is not None:
            text = _with_entry(text, keys, _fields(self.added))
        if self.ended is not None:
            place = list(settings.applications[self.application].clients).index(self.ended.name)
            text = _with_last_day(text, keys.value[place], _day(self.ended.last_day))
        return text

    @property
    def note(self) -> str:
        """What a rotated key may cost; empty if nothing is to be said."""
        if self.added is None or self.ended is None or self.added.parts == "unlimited":
            return ""
        parts = self.added.parts
        limit = counted(parts, "part") if isinstance(parts, int) else f"{parts} of the application's parts"
        return f"Each of both keys may use {limit} in this period; the limit of the application counts both."

    def lines(self, settings: Config) -> str:
        """Return what to paste into the file, for people."""
        pieces = []
        if self.added is not None:
            pieces.append(f"# below applications.{self.application}.apikeys:\n{_block_item(_fields(self.added), 6)}")
        if self.ended is not None:
            place = list(settings.applications[self.application].clients).index(self.ended.name)
            at = f"applications.{self.application}.apikeys[{place}], the key {self.ended.name}"
            pieces.append(f"# in {at}:\n        expires: {_day(self.ended.last_day)}")
        return "\n".join(pieces)


def new_key() -> str:
    """Return a new API key. Of it the file has the digest only."""
    return secrets.token_urlsafe(KEY_BYTES)


def adding(settings: Config, application: str, key: ApiKeySettings) -> KeyChange:
    """Return the change that adds a key. Raises BadRequest for a name or a key that is given already."""
    _application(settings, application)
    _check_new(settings, application, key)
    return KeyChange(application, added=key)


def rotating(
    settings: Config, application: str, name: str, *, digest: Digest, new_name: str, last_day: date
) -> KeyChange:
    """Return the change that adds a key with the limits of another one, which ends. Raises BadRequest."""
    old = _key(settings, application, name)
    new = msgspec.structs.replace(
        old, key=digest, name=new_name or _next_name(settings, application, name), expires=None
    )
    _check_new(settings, application, new)
    # An end that the old key has already is not put off.
    ends = last_day if old.expires is None else min(last_day, old.expires)
    return KeyChange(application, new, KeyEnd(name, ends))


def ending(settings: Config, application: str, name: str, last_day: date | None) -> KeyChange:
    """Return the change that gives a key an end, or takes it away. Raises BadRequest."""
    _key(settings, application, name)
    return KeyChange(application, ended=KeyEnd(name, last_day))


def _application(settings: Config, name: str) -> ApplicationSettings:
    try:
        return settings.applications[name]
    except KeyError:
        known = ", ".join(settings.applications)
        raise errors.BadRequest(f"there is no application {name!r}; the configuration has {known}") from None


def _key(settings: Config, application: str, name: str) -> ApiKeySettings:
    clients = _application(settings, application).clients
    try:
        return clients[name]
    except KeyError:
        raise errors.BadRequest(f"{application} has no API key {name!r}; it has {', '.join(clients)}") from None


def _check_new(settings: Config, application: str, key: ApiKeySettings) -> None:
    if not key.name or not re.fullmatch(r"[A-Za-z0-9_.-]+", key.name):
        raise errors.BadRequest(f"{key.name or ''!r} is not a name of an API key: letters, digits, - _ and .")
    for holder, each in settings.applications.items():
        if holder == application and key.name in each.clients:
            raise errors.BadRequest(f"{application} has an API key {key.name!r} already; choose another name")
        if name := next((name for name, other in each.clients.items() if other.key == key.key), None):
            raise errors.BadRequest(f"this API key is that of {holder}/{name} already")


def _next_name(settings: Config, application: str, name: str) -> str:
    """Return `erp-2` for `erp`, `erp-3` for `erp-2`; the first that is free."""
    stem, number = name, 2
    if counted := re.fullmatch(r"(.+)-([0-9]{1,3})", name):
        stem, number = counted[1], int(counted[2]) + 1
    clients = settings.applications[application].clients
    while f"{stem}-{number}" in clients:
        number += 1
    return f"{stem}-{number}"


def _fields(key: ApiKeySettings) -> dict[str, str]:
    """Return the settings of a key that are not at their defaults, as they are written."""
    fields = {"key": f'"sha256:{key.key.reveal()}"'}
    for field in msgspec.structs.fields(ApiKeySettings):
        value = getattr(key, field.name)
        if field.name != "key" and value != field.default:
            fields[field.name] = _written(value)
    return fields


def _written(value: Any) -> str:
    if isinstance(value, date):
        return str(value)
    if isinstance(value, SunsetSettings):
        given = {name: each for name in value.__struct_fields__ if (each := getattr(value, name)) is not None}
        return _flow({name: _written(each) for name, each in given.items()})
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value not in _WORDS:
        return value
    return json.dumps(value)  # what JSON is, is YAML


def _day(day: date | None) -> str:
    return "null" if day is None else str(day)


def _flow(fields: Mapping[str, str]) -> str:
    return f"{{{', '.join(f'{name}: {value}' for name, value in fields.items())}}}"


def _block_item(fields: Mapping[str, str], indent: int, line_end: str = "\n") -> str:
    lines = [f"{name}: {value}" for name, value in fields.items()]
    return line_end.join(" " * indent + ("  " if place else "- ") + line for place, line in enumerate(lines))


def _api_keys(text: str, application: str) -> yaml.SequenceNode:
    node: yaml.Node | None = located_yaml.nodes(text)
    for step in ("applications", application, "apikeys"):
        pairs = node.value if isinstance(node, yaml.MappingNode) else []
        node = next((value for name, value in pairs if name.value == step), None)
    if not isinstance(node, yaml.SequenceNode) or not node.value:
        raise NotEditableError(f"applications.{application} has no list `apikeys` of its own, as one with an alias has")
    return node


def _with_entry(text: str, keys: yaml.SequenceNode, fields: Mapping[str, str]) -> str:
    end = _end(text, keys.value[-1])
    if keys.flow_style:
        return f"{text[:end]}, {_flow(fields)}{text[end:]}"
    return _with_line(text, end, _block_item(fields, keys.start_mark.column, _line_end(text)))


def _with_last_day(text: str, key: yaml.Node, day: str) -> str:
    if isinstance(key, yaml.ScalarNode):
        begin, end = key.start_mark.index, key.end_mark.index
        # Plain text may have characters that end it within braces.
        written = text[begin:end] if key.style in ("'", '"') else json.dumps(key.value, ensure_ascii=False)
        return f"{text[:begin]}{_flow({'key': written, 'expires': day})}{text[end:]}"
    if not isinstance(key, yaml.MappingNode):
        raise NotEditableError("the entry is neither a key nor a block")
    for name, value in key.value:
        if name.value == "expires":
            begin, end = value.start_mark.index, value.end_mark.index
            return f"{text[:begin]}{' ' if begin == end else ''}{day}{text[end:]}"
    end = _end(text, key.value[-1][1])
    if key.flow_style:
        return f"{text[:end]}, expires: {day}{text[end:]}"
    return _with_line(text, end, f"{' ' * key.start_mark.column}expires: {day}")


def _with_line(text: str, end: int, lines: str) -> str:
    """Insert lines after the one in which something ends, with the comment behind it."""
    rest = _LINE_END.match(text, end)
    place = rest.end() if rest else end
    return f"{text[:place]}{_line_end(text)}{lines}{text[place:]}"


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _end(text: str, node: yaml.Node) -> int:
    """Return where a value ends: that of a block, whose own end is the next token's begin, is its last value's."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(text, last[1] if isinstance(last, tuple) else last)
    end = node.end_mark.index
    while text[end - 1 : end] in ("\r", "\n"):  # of a block scalar
        end -= 1
    return end
