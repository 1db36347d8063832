"""Messages for mistakes in settings: the value found, and what is accepted.

Pure. Values are shown to help, except those of apikeys and credentials.
"""

import difflib
import re
from typing import Any, get_args, get_type_hints

import msgspec

from proxy.config import base, secret
from proxy.kit import located_yaml

_HIDDEN = {"apikeys", "client_id", "client_secret", "key", "token", "proxy", "url", "secret"}
_GROUPED = re.compile(r"[0-9]{1,3}([,.' _]?[0-9]{3}){0,4}")  # 1000, 1,000 or 1_000


def dotted(at: located_yaml.Trail) -> str:
    """Return a path as in `applications.demo.apikeys[0]`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in at).removeprefix(".")


def accepted(kind: type[base.Settings], key: str) -> str:
    """Return the description of a setting: the values that it accepts."""
    hint = get_type_hints(kind, include_extras=True)[key]
    return next(str(meta.description) for meta in get_args(hint)[1:] if isinstance(meta, msgspec.Meta))


def unknown_key(key: Any, kind: type[base.Settings]) -> tuple[str, str, str | None]:
    """Return code and message for a key that does not exist, and the key that was probably meant."""
    similar = next(iter(difflib.get_close_matches(str(key), kind.__struct_fields__, 1)), None)
    listed = f"did you mean {similar}? Known here" if similar else "known here"
    return "unknown_key", f"unknown key; {listed}: {', '.join(kind.__struct_fields__)}", similar


def missing(kind: type[base.Settings], key: str) -> str:
    return f"is missing; it accepts {accepted(kind, key)}"


def explain(
    error: msgspec.ValidationError, kind: type[base.Settings], key: str, raw: Any
) -> tuple[located_yaml.Trail, str, str]:
    """Return place within the value `raw` of setting `key`, code and message of the mistake that msgspec reports."""
    _, path = located_yaml.explain(error)
    # Raised by a type of this service, whose messages say what is accepted; msgspec adds only the place.
    if isinstance(error.__cause__, ValueError | TypeError):
        return path, code(error.__cause__), str(error.__cause__)
    value = _value(raw, path)
    message = f"{_shown(key, value)} is not accepted; it accepts {accepted(kind, key)}"
    number = None if path else _number(kind, key, value)
    return path, "value_not_accepted", message if number is None else f"{message}; write {number}"


def _number(kind: type[base.Settings], key: str, value: Any) -> int | None:
    """Return the number that was written in quotes or with separators, if the setting accepts it."""
    if not isinstance(value, str) or not _GROUPED.fullmatch(value):
        return None
    number = int(re.sub(r"\D", "", value))
    try:
        msgspec.convert(number, get_type_hints(kind, include_extras=True)[key])
    except msgspec.ValidationError:
        return None
    return number


def code(error: Exception) -> str:
    """Return the code of a mistake that a type of this service has found in a value."""
    return error.code if isinstance(error, secret.UnresolvedError) else "value_not_accepted"


def _value(raw: Any, path: located_yaml.Trail) -> Any:
    for step in path:
        raw = raw[step]
    return raw


def _shown(key: str, value: Any) -> str:
    # An @ may be part of an address with a password, whatever the setting.
    if key in _HIDDEN or "@" in str(value):
        return "this value"
    if value is None:
        return "nothing"
    return repr(value) if isinstance(value, str | int | float) else f"a {type(value).__name__}"
