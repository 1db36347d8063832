"""From what a person writes to faults: `5xx share=0.05 status=503` on the command line, JSON at the admin endpoint.

Every mistake is a ValueError that names the word and the value. Whether a field is in the schema is not known here.
"""

import msgspec

from proxy.sandbox import declared, faults

_KINDS: declared.Kinds[faults.Fault | faults.Mixed] = declared.Kinds("fault", tuple(faults.KINDS.values()))


def parse(text: str) -> tuple[faults.Fault, ...]:
    """The faults of a text: a kind, then figures as name=value. `mixed` gives several, all others one."""
    return _faults(_KINDS.parse(text))


def read(given: object) -> tuple[faults.Fault, ...]:
    """The faults of a JSON list, whose items are texts as above or objects with a `kind`."""
    return tuple(fault for one in _KINDS.read(given) for fault in _faults(one))


def text(fault: faults.Fault) -> str:
    """A fault as `parse` reads it, without the figures that have their defaults."""
    given = {
        field.name: getattr(fault, field.name)
        for field in msgspec.structs.fields(fault)
        if field.required or getattr(fault, field.name) != field.default
    }
    return " ".join((declared.word(type(fault)), *(f"{name}={value}" for name, value in given.items())))


def _faults(one: faults.Fault | faults.Mixed) -> tuple[faults.Fault, ...]:
    return tuple(one.faults()) if isinstance(one, faults.Mixed) else (one,)
