"""From what a person writes to faults: `5xx share=0.05 status=503` on the command line, JSON at the admin endpoint.

Every mistake is a ValueError that names the word and the value. Whether a field is in the schema is not known here.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from proxy.sandbox import faults


def parse(text: str) -> tuple[faults.Fault, ...]:
    """The faults of a text: a kind, then figures as name=value. `mixed` gives several, all others one."""
    kind, *words = text.split() or [""]
    figures: dict[str, str] = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not sign:
            raise ValueError(f"fault {text!r}: {word!r} is not name=value")
        if name in figures:
            raise ValueError(f"fault {text!r}: {name} is given twice")
        figures[name] = value
    return _faults(kind, figures, text, strict=False)


def read(declared: object) -> tuple[faults.Fault, ...]:
    """The faults of a JSON list, whose items are texts as above or objects with a `kind`."""
    if not isinstance(declared, Sequence) or isinstance(declared, str):
        raise ValueError(f"faults must be a list, not {_shown(declared)}")
    return tuple(fault for one in declared for fault in _read(one))


def _read(one: object) -> tuple[faults.Fault, ...]:
    if isinstance(one, str):
        return parse(one)
    if not isinstance(one, Mapping):
        raise ValueError(f"a fault must be a text or an object, not {_shown(one)}")
    figures = {str(name): value for name, value in one.items() if name != "kind"}
    return _faults(one.get("kind"), figures, _shown(one), strict=True)


def _faults(kind: object, figures: Mapping[str, Any], source: str, *, strict: bool) -> tuple[faults.Fault, ...]:
    declaration = faults.KINDS.get(kind) if isinstance(kind, str) else None
    if declaration is None:
        raise ValueError(f"fault {source!r}: no kind {kind!r}; there are {', '.join(faults.KINDS)}")
    made = _made(declaration, figures, f"fault {source!r}", strict=strict)
    return tuple(made.faults()) if isinstance(made, faults.Mixed) else (made,)


def _made(
    declaration: faults.Declaration, figures: Mapping[str, Any], source: str, *, strict: bool
) -> faults.Fault | faults.Mixed:
    known = declaration.__struct_fields__
    for name in figures:
        if name not in known:
            raise ValueError(f"{source}: it has no {name!r}; it has {', '.join(known)}")
    for field in msgspec.structs.fields(declaration):
        if field.required and field.name not in figures:
            raise ValueError(f"{source}: it needs {field.name}, {faults.accepted(declaration, field.name)}")
    values = {
        field.name: _value(declaration, field, figures[field.name], source, strict=strict)
        for field in msgspec.structs.fields(declaration)
        if field.name in figures
    }
    return declaration(**values)


def _value(
    declaration: faults.Declaration, field: msgspec.structs.FieldInfo, value: Any, source: str, *, strict: bool
) -> Any:
    try:
        return msgspec.convert(value, field.type, strict=strict)
    except msgspec.ValidationError:
        accepted = faults.accepted(declaration, field.name)
        raise ValueError(f"{source}: {field.name} must be {accepted}; it is {value!r}") from None


def _shown(value: object) -> str:
    return msgspec.json.encode(value).decode()
