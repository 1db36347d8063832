"""Reader of blocks of settings in a YAML file. Every mistake names file, line and key.

Used for the configuration and for the rules of a comparison, each of which has types of its own to decode.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from proxy import errors
from proxy.config import base, mistakes
from proxy.kit import located_yaml, wording

S = TypeVar("S", bound=base.Settings)

WRONG: Any = object()
"""Stands for a value with a mistake. The settings that contain it are never returned; it is no None, which a check
across settings would take for a missing value."""


@dataclass(frozen=True, slots=True)
class Blocks(ABC):
    """Reader of the blocks in one file. It collects mistakes and goes on, so that one run shows all of them: `checked`
    raises them, each as `config.yaml:12:5: listen.port: …`."""

    located: located_yaml.LocatedYaml
    _mistakes: list[tuple[located_yaml.Position | None, errors.ConfigMistake]] = field(default_factory=list, init=False)
    _wrong: set[located_yaml.Trail] = field(default_factory=set, init=False)

    @abstractmethod
    def decode(self, kind: type[Any], raw: Any) -> Any:
        """Convert a value to a type that msgspec does not know. Raises TypeError or ValueError, whose message never
        has the value."""

    def checked(self, settings: S) -> S:
        """Return the settings. Raises ConfigError with all mistakes, in the order of the file."""
        for position, message in self.located.duplicates:
            self._record(position, "duplicate_key", f"{self.located.name}:{position.line}:{position.column}: {message}")
        if self._mistakes:
            ordered = sorted(self._mistakes, key=lambda mistake: mistake[0] or (0, 0))
            raise errors.ConfigError(mistakes=[mistake for _, mistake in ordered])
        return settings

    def report(self, at: located_yaml.Trail, message: str, code: str = "value_not_accepted") -> None:
        """Record a mistake, unless it is the consequence of one at the same place or around it."""
        if any(at[:length] in self._wrong for length in range(len(at) + 1)):
            return
        self._wrong.add(at)
        name = f"{mistakes.dotted(at)}: " if at else ""
        self._record(self.located.position(at), code, f"{self.located.place(at)}: {name}{message}")

    def _record(self, position: located_yaml.Position | None, code: str, text: str) -> None:
        # A key may hold a line break, too.
        mistake = errors.ConfigMistake(code, wording.printable(text).replace("\n", "\\n"))
        self._mistakes.append((position, mistake))

    def block(self, kind: type[S], raw: Any, at: located_yaml.Trail) -> S:
        """Convert a block, including nested blocks; a missing one has its defaults."""
        raw = self.known(kind, raw, at)
        values: dict[str, Any] = {}
        for setting in msgspec.structs.fields(kind):
            name, inner = setting.name, (*at, setting.name)
            nested = getattr(setting.type, "__origin__", setting.type)  # without its description
            if name not in raw:
                if setting.required:
                    self.report(inner, mistakes.missing(kind, name), "setting_missing")
                    values[name] = WRONG
            elif isinstance(nested, type) and issubclass(nested, base.Settings):
                values[name] = self.block(nested, raw[name], inner)
            else:
                values[name] = self._setting(kind, name, setting.type, raw[name], inner)
        return kind(**values)

    def known(self, kind: type[base.Settings], raw: Any, at: located_yaml.Trail) -> dict[str, Any]:
        """Return the block as a dict of its known keys, empty if it is missing or no block; report the others."""
        if raw is None:
            return {}
        if not isinstance(raw, dict):
            self.report(at, f"must be a block of settings: {', '.join(kind.__struct_fields__)}")
            return {}
        known = {key: value for key, value in raw.items() if key in kind.__struct_fields__}
        for key in raw.keys() - known.keys():
            code, message, meant = mistakes.unknown_key(key, kind)
            self.report((*at, key), message, code)
            if meant is not None and meant not in known:  # it would else be reported as missing, too
                known[meant] = WRONG
                self._wrong.add((*at, meant))
        return known

    def value(self, kind: type[Any], raw: Any, at: located_yaml.Trail) -> Any:
        """Convert a single value; WRONG after a mistake."""
        try:
            return self.decode(kind, raw)
        except (TypeError, ValueError) as error:
            self.report(at, str(error), mistakes.code(error))
            return WRONG

    def _setting(self, kind: type[base.Settings], name: str, hint: Any, raw: Any, at: located_yaml.Trail) -> Any:
        """Convert the value of one setting; WRONG after a mistake."""
        first = 0
        while True:
            try:
                value = msgspec.convert(raw, hint, dec_hook=self.decode)
            except msgspec.ValidationError as error:
                path, code, message = mistakes.explain(error, kind, name, raw)
            except UnicodeEncodeError:  # half of a surrogate pair, which only an escape can write
                self.report(at, f"this value is not accepted; it accepts {mistakes.accepted(kind, name)}")
                return WRONG
            else:
                return WRONG if first else value
            if not isinstance(raw, list) or not path or not isinstance(path[0], int):
                self.report((*at, *path), message, code)
                return WRONG
            self.report((*at, first + path[0], *path[1:]), message, code)
            # msgspec stops at the first wrong entry of a list: go on with those after it.
            first, raw = first + path[0] + 1, raw[path[0] + 1 :]
            if not raw:
                return WRONG
