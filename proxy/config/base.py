"""Base class of all blocks of settings, and the reader of those in a YAML file.

Used for the configuration and for the rules of a comparison, each of which has types of its own to decode.
"""

import difflib
from abc import ABC, abstractmethod
from collections import Counter
from typing import Any, TypeVar, get_args, get_type_hints

import msgspec

from proxy import errors
from proxy.kit import located_yaml, wording
from proxy.kit.located_yaml import Trail


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base class of all blocks of settings. Descriptions of their fields complete the words "it accepts"."""


S = TypeVar("S", bound=Settings)
SECRET = {"apikeys", "client_id", "client_secret", "key", "token", "proxy", "keys"}  # their values are not shown


class Blocks(ABC):
    """Reader of the blocks in one file. It collects mistakes and goes on, so that one run shows all of them: `checked`
    raises them, each as `config.yaml:12:5: listen.port: …`."""

    def __init__(self, located: located_yaml.LocatedYaml) -> None:
        self.located = located
        self._mistakes: list[tuple[located_yaml.Position | None, str]] = []
        self._wrong: set[Trail] = set()

    @abstractmethod
    def decode(self, kind: type[Any], raw: Any) -> Any:
        """Convert a value to a type that msgspec does not know. Raises TypeError or ValueError, whose message never
        has the value."""

    def checked(self, settings: S | None) -> S:
        """Return the settings. Raises ConfigError with all mistakes, in the order of the file."""
        for position, message in self.located.duplicates:
            self._mistakes.append((position, f"{self.located.name}:{position.line}:{position.column}: {message}"))
        if self._mistakes or settings is None:
            ordered = sorted(self._mistakes, key=lambda mistake: mistake[0] or (0, 0))
            raise errors.ConfigError("\n".join(text for _, text in ordered))
        return settings

    def report(self, at: Trail, message: str, named: Trail | None = None) -> None:
        """Record a mistake, unless it is the consequence of one at the same place or around it. `named` is shown for
        its place."""
        if any(at[:length] in self._wrong for length in range(len(at) + 1)):
            return
        self._wrong.add(at)
        named = at if named is None else named
        text = f"{self.located.place(at)}: {dotted(named)}{': ' if named else ''}{message}"
        # A key may hold a line break, too.
        self._mistakes.append((self.located.position(at), wording.printable(text).replace("\n", "\\n")))

    def block(self, kind: type[S], raw: Any, at: Trail = ()) -> S | None:
        """Convert a block; None where nothing is left of it. What is wrong is reported and left out, and the rest is
        converted again, so that no mistake hides another."""
        content, left_out = _copied(raw), Counter[Trail]()
        while True:
            try:
                return msgspec.convert(content, kind, dec_hook=self.decode)
            except msgspec.ValidationError as error:
                message, trail = located_yaml.explain(error)
                written: Trail = ()
                for depth, step in enumerate(trail):
                    written += (step + left_out[trail[:depth]],) if isinstance(step, int) else (step,)
                if "unknown field" in message:
                    self._report_unknown(kind, (*at, *written), written, _value(content, trail[:-1]))
                elif "missing required" in message:
                    self.report((*at, *written), f"is missing; it accepts {accepted(kind, written)}")
                    trail = trail[:-1]
                elif isinstance(error.__cause__, ValueError | TypeError):  # of a type of this service
                    self.report((*at, *written), str(error.__cause__))
                else:
                    shown = _shown((*at, *trail), _value(content, trail))
                    self.report((*at, *written), f"{shown} is not accepted; it accepts {accepted(kind, written)}")
                if not trail:
                    return None
                del _value(content, trail[:-1])[trail[-1]]
                left_out[trail[:-1]] += isinstance(trail[-1], int)

    def _report_unknown(self, kind: type[Settings], at: Trail, within: Trail, given: dict[str, Any]) -> None:
        """Report a key that does not exist. Among API keys it may be one itself, and is not shown."""
        block = kind
        for step in within[:-1]:
            block = block if isinstance(step, int) else block_of(_hint(block, step)) or block
        known = block.__struct_fields__
        similar = next(iter(difflib.get_close_matches(str(at[-1]), known, 1)), None)
        listed = f"did you mean {similar}? Known here" if similar else "known here"
        message = f"unknown key; {listed}: {', '.join(known)}"
        is_safe = similar or SECRET.isdisjoint(at[:-1])
        self.report(at, message, at if is_safe else at[:-1])
        if similar and similar not in given:
            self._wrong.add((*at[:-1], similar))  # it would else be reported as missing, too


def dotted(at: Trail) -> str:
    """Return a path as in `applications.demo.apikeys[0]`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in at).removeprefix(".")


def accepted(kind: type[Settings], at: Trail) -> str:
    """Return what the setting at a path accepts: its description, or the settings of a block."""
    text, block = "", kind
    for step in at:
        if isinstance(step, str):
            hint = _hint(block, step)
            text = _description(hint)
            block = block_of(hint) or block
    return text or f"a block of {', '.join(block.__struct_fields__)}"


def block_of(hint: Any) -> type[Settings] | None:
    """Return the block of settings that a type is, or a list of, or may be."""
    if isinstance(hint, type) and not get_args(hint):
        return hint if issubclass(hint, Settings) else None
    return next(filter(None, map(block_of, get_args(hint))), None)


def _description(hint: Any) -> str:
    own = [each.description for each in get_args(hint) if isinstance(each, msgspec.Meta) and each.description]
    return own[0] if own else next(filter(None, map(_description, get_args(hint))), "")


def _hint(kind: type[Settings], name: str) -> Any:
    return get_type_hints(kind, include_extras=True)[name]


def _copied(raw: Any) -> Any:
    """Copy dicts and lists, but not what has been converted before. A key that YAML reads as a number becomes text."""
    if isinstance(raw, dict):
        return {str(name): _copied(each) for name, each in raw.items()}
    return [_copied(each) for each in raw] if isinstance(raw, list) else raw


def _value(raw: Any, trail: Trail) -> Any:
    for step in trail:
        raw = raw[step]
    return raw


def _shown(at: Trail, value: Any) -> str:
    # An @ may be part of an address with a password, whatever the setting.
    name = next((step for step in reversed(at) if isinstance(step, str)), "")
    if name in SECRET or "@" in str(value):
        return "this value"
    if value is None:
        return "nothing"
    return repr(value) if isinstance(value, str | int | float) else f"a {type(value).__name__}"
