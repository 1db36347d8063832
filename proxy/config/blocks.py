"""Reader of blocks of settings in a YAML file. Every error names file, line and key.

Used for the configuration and for the rules of a comparison, each of which has types of its own to decode.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar, get_type_hints

import msgspec

from proxy import errors
from proxy.config import mistakes, settings
from proxy.kit import located_yaml

S = TypeVar("S", bound=settings.Settings)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Blocks(ABC):
    """Reader of the blocks in one file. Every mistake is a ConfigError of the form `config.yaml:12:5: listen.port:
    …`."""

    located: located_yaml.LocatedYaml

    @abstractmethod
    def decode(self, kind: type[Any], raw: Any) -> Any:
        """Convert a value to a type that msgspec does not know. Raises TypeError or ValueError, whose message never
        has the value."""

    def block(self, kind: type[S], raw: Any, at: located_yaml.Trail) -> S:
        """Convert a block, including nested blocks; a missing one has its defaults."""
        raw = self.known(kind, raw, at)
        # Inner blocks first, so that a mistake in one has its own place in the file.
        inner = {name: self.block(block, raw[name], (*at, name)) for name, block in _inner_blocks(kind) if name in raw}
        try:
            return msgspec.convert(raw | inner, kind, dec_hook=self.decode)
        except msgspec.ValidationError as error:
            path, message = mistakes.explain(error, kind, raw, at)
            self.fail(path, message)

    def known(self, kind: type[settings.Settings], raw: Any, at: located_yaml.Trail) -> dict[str, Any]:
        """Return the block as a dict, empty if missing. Raises ConfigError for unknown keys."""
        if raw is None:
            return {}
        if not isinstance(raw, dict):
            self.fail(at, f"is a block of settings: {', '.join(kind.__struct_fields__)}")
        for key in raw:
            # msgspec would stop at the first error of any kind; this names the key, its place and the most similar one.
            if key not in kind.__struct_fields__:
                self.fail((*at, key), mistakes.unknown_key(key, kind))
        return raw

    def value(self, kind: type[T], raw: Any, at: located_yaml.Trail) -> T:
        """Convert a single value."""
        try:
            value: T = self.decode(kind, raw)
        except (TypeError, ValueError) as error:
            self.fail(at, str(error))
        return value

    def fail(self, at: located_yaml.Trail, message: str) -> NoReturn:
        """Raise ConfigError for the value at a place."""
        name = f"{mistakes.dotted(at)}: " if at else ""
        raise errors.ConfigError(f"{self.located.place(at)}: {name}{message}")


def _inner_blocks(kind: type[settings.Settings]) -> Iterator[tuple[str, type[settings.Settings]]]:
    """Yield the settings that are nested blocks."""
    for name, hint in get_type_hints(kind).items():
        if isinstance(hint, type) and issubclass(hint, settings.Settings):
            yield name, hint
