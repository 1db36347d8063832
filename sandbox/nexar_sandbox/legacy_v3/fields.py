"""The classes of v3 with their fields, as the contract's tables have them (contract v3-rest.md §3.1-3.5).

A field's value is the class of its objects, "" for scalars. Used by show[], hide[], slice[] and to validate names.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path

FieldPath = tuple[str, ...]

# The field whose objects are in an object with keys that are data.
KEYED = "specs"
ANY = "*"

_CLASSES = tomllib.loads((Path(__file__).parent / "data/classes.toml").read_text("utf-8"))
CLASSES: Mapping[str, Mapping[str, str]] = {
    name: {**dict.fromkeys(fields.get("plain", "").split(), ""), **fields.get("objects", {})}
    for name, fields in _CLASSES.items()
}
INCLUDED: Mapping[str, frozenset[str]] = {
    name: frozenset(fields["included"].split()) for name, fields in _CLASSES.items() if "included" in fields
}
"""Fields that are only in the response if include[] names them (contract v3-rest.md §2.3)."""


def is_known(name: str, path: FieldPath) -> bool:
    """Return true if objects of the class have a field at this path; below `specs` a path has a key, or `*`."""
    if not path or path[0] not in CLASSES.get(name, {}):
        return False
    below, remaining_path = CLASSES[name][path[0]], path[1:]
    if path[0] == KEYED and remaining_path:
        remaining_path = remaining_path[1:]
    return not remaining_path or is_known(below, remaining_path)
