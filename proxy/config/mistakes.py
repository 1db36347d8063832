"""Messages for mistakes in settings: the value found, and what is accepted.

Pure. Values are shown to help, except those of apikeys and credentials.
"""

import difflib
from typing import Any, get_args, get_type_hints

import msgspec

from proxy.config import settings
from proxy.kit import located_yaml

# Names of keys in earlier versions, and the current ones, by block.
RENAMED: dict[type[settings.Settings], dict[str, str]] = {
    settings.Config: {"answers": "cache", "sharing": "coalescing"},
    settings.BreakerSettings: {"pause_seconds": "cooldown_seconds"},
    settings.ApplicationShadowSettings: {"answer": "response"},
    settings.ListenSettings: {"wrong_keys": "failed_auth_per_minute"},
    settings.ShadowSettings: {"old_url": "baseline_url"},
}

_NO_WAIT = "queries are batched without waiting; delete this line"
# Keys of earlier versions that have no successor, and what replaces them, by block.
REMOVED: dict[type[settings.Settings], dict[str, str]] = {
    settings.CoalescingSettings: {"wait_seconds": _NO_WAIT, "batch_wait_seconds": _NO_WAIT},
}

_HIDDEN = {"apikeys", "client_id", "client_secret", "key", "token", "proxy", "store_key"}


def dotted(at: located_yaml.Trail) -> str:
    """Return a path as in `applications.demo.apikeys[0]`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in at).removeprefix(".")


def accepted(kind: type[settings.Settings], key: str) -> str:
    """Return the description of a setting: the values that it accepts."""
    hint = get_type_hints(kind, include_extras=True)[key]
    return next(str(meta.description) for meta in get_args(hint)[1:] if isinstance(meta, msgspec.Meta))


def unknown_key(key: Any, kind: type[settings.Settings]) -> str:
    """Return the message for a key that does not exist, or has been renamed or removed."""
    if new := RENAMED.get(kind, {}).get(str(key)):
        return f"{str(key)!r} is now called {new!r}"
    if reason := REMOVED.get(kind, {}).get(str(key)):
        return f"there is no {str(key)!r} any more: {reason}"
    similar = difflib.get_close_matches(str(key), kind.__struct_fields__, 1)
    guess = f"did you mean {similar[0]}? " if similar else ""
    return f"unknown key; {guess}Known here: {', '.join(kind.__struct_fields__)}"


def explain(
    error: msgspec.ValidationError, kind: type[settings.Settings], raw: dict[str, Any], at: located_yaml.Trail
) -> tuple[located_yaml.Trail, str]:
    """Return place and message of the mistake in a block `raw` at `at` that cannot be converted to `kind`."""
    message, path = located_yaml.explain(error, at)
    if path == at:
        # msgspec reports a missing key at the block; its name is in the message: Object missing required field `key`.
        key = message.split("`")[1]
        return (*at, key), f"is missing; it accepts {accepted(kind, key)}"
    key = str(path[len(at)])
    # Raised by a type of this service, whose messages say what is accepted; msgspec adds only the place.
    if isinstance(error.__cause__, ValueError | TypeError):
        return path, f"{error.__cause__}"
    return (
        path,
        f"{_shown(key, _value(raw, path[len(at) :]))} is not accepted; it accepts {accepted(kind, key)}",
    )


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
