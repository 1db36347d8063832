"""Parser of declarations: `5xx share=0.05 status=503` on the command line, JSON at /admin.

Used for faults and for disturbances of the legacy v3 service; their structs define kinds and parameters. Every mistake
is a ValueError that names the parameter and the value.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar, get_type_hints

import msgspec

K = TypeVar("K", bound=msgspec.Struct)


def kind_name(kind: type[msgspec.Struct]) -> str:
    return str(kind.__struct_config__.tag)


def accepted_values(kind: type[msgspec.Struct], figure: str) -> str:
    """Return the description of a parameter's accepted values, from its Meta."""
    hint = get_type_hints(kind, include_extras=True)[figure]
    metas = (meta for part in (hint, *getattr(hint, "__args__", ())) for meta in getattr(part, "__metadata__", ()))
    return next(str(meta.description) for meta in metas if meta.description)


class DeclarationParser(Generic[K]):
    """Parses declarations of several kinds; `noun` names them in error messages."""

    def __init__(self, noun: str, kinds: Sequence[type[K]]) -> None:
        self._noun = noun
        self.by_word = {kind_name(kind): kind for kind in kinds}

    def parse(self, text: str) -> K:
        """Parse a text: a kind, then parameters as name=value."""
        kind, *words = text.split() or [""]
        figures: dict[str, str] = {}
        for each in words:
            name, sign, value = each.partition("=")
            if not sign:
                raise ValueError(f"{self._noun} {text!r}: {each!r} is not name=value")
            if name in figures:
                raise ValueError(f"{self._noun} {text!r}: {name} is given twice")
            figures[name] = value
        return self._declared(kind, figures, text, strict=False)

    def read(self, declared: object) -> tuple[K, ...]:
        """Parse a JSON list of texts or of objects with a `kind`."""
        if not isinstance(declared, Sequence) or isinstance(declared, str):
            raise ValueError(f"{self._noun}s must be a list, not {_value_text(declared)}")
        return tuple(map(self._read, declared))

    def _read(self, declaration: object) -> K:
        if isinstance(declaration, str):
            return self.parse(declaration)
        if not isinstance(declaration, Mapping):
            raise ValueError(f"a {self._noun} must be a text or an object, not {_value_text(declaration)}")
        figures = {str(name): value for name, value in declaration.items() if name != "kind"}
        return self._declared(declaration.get("kind"), figures, _value_text(declaration), strict=True)

    def _declared(self, kind: object, figures: Mapping[str, Any], source: str, *, strict: bool) -> K:
        declaration = self.by_word.get(kind) if isinstance(kind, str) else None
        if declaration is None:
            raise ValueError(f"{self._noun} {source!r}: no kind {kind!r}; there are {', '.join(self.by_word)}")
        return _parse_declaration(declaration, figures, f"{self._noun} {source!r}", strict=strict)


def _parse_declaration(declaration: type[K], figures: Mapping[str, Any], source: str, *, strict: bool) -> K:
    field_names = declaration.__struct_fields__
    for name in figures:
        if name not in field_names:
            raise ValueError(f"{source}: it has no {name!r}; it has {', '.join(field_names)}")
    values = {}
    for field in msgspec.structs.fields(declaration):
        if field.name in figures:
            value = figures[field.name]
            try:
                values[field.name] = msgspec.convert(value, field.type, strict=strict)
            except msgspec.ValidationError:
                accepted = accepted_values(declaration, field.name)
                raise ValueError(f"{source}: {field.name} must be {accepted}; it is {value!r}") from None
        elif field.required:
            raise ValueError(f"{source}: it needs {field.name}, {accepted_values(declaration, field.name)}")
    return declaration(**values)


def _value_text(value: object) -> str:
    return msgspec.json.encode(value).decode()
