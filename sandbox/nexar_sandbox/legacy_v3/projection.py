"""Projection of objects by include[], show[], hide[] and slice[] (contract v3-rest.md §2.3, §2.4), and the classes of
v3 with the fields that these may name (§3.1-3.5).

Objects are built with the fields of include[] and reduced here. Unknown names are ignored.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nexar_sandbox.legacy_v3 import query_string

FieldPath = tuple[str, ...]

# The field whose objects are in an object with keys that are data.
KEYED = "specs"
ANY = "*"

# The class of the objects in each field, "" for scalars.
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


_SLICE = re.compile(r"slice\[(.+?)\]")
_RANGE = re.compile(r"\[?(-?[0-9]{1,9})?:(-?[0-9]{1,9})?\]?")

Paths = frozenset[FieldPath]
Cuts = dict[FieldPath, slice]
ShownAs = Callable[[str], Iterable[str]]
_WHOLE: Paths = frozenset({()})


@dataclass(frozen=True, slots=True)
class LegacyProjection:
    """A projection: `include` adds fields, `show` (None: everything) and `hide` are paths, `cuts` slices
    of lists by path."""

    include: frozenset[str] = frozenset()
    show: Paths | None = None
    hide: Paths = frozenset()
    cuts: tuple[tuple[FieldPath, slice], ...] = ()

    def of(self, full_object: dict[str, Any]) -> dict[str, Any]:
        if self.show is None and not self.hide and not self.cuts:
            return full_object
        projected: dict[str, Any] = _project(full_object, self.show or _WHOLE, self.hide, dict(self.cuts))
        return projected if self.show is None or self.show else {}


def read(parameters: query_string.QueryString, name: str, shown_as: ShownAs) -> LegacyProjection:
    """Parse the projection of a class. `shown_as` returns the keys under which parts have a spec."""
    show, hide = parameters.all("show"), parameters.all("hide")
    cuts = [(match[1], _cut(match[0], text)) for match, text in parameters.like(_SLICE)]
    return LegacyProjection(
        frozenset(parameters.all("include")) & INCLUDED.get(name, frozenset()),
        _paths(show, name, shown_as) if show else None,
        _paths(hide, name, shown_as),
        tuple((path, cut) for text, cut in cuts for path in _paths([text], name, shown_as)),
    )


def _paths(texts: Iterable[str], name: str, shown_as: ShownAs) -> Paths:
    paths = (path for text in texts for path in _as_shown(tuple(text.split(".")), shown_as))
    return frozenset(path for path in paths if is_known(name, path))


def _as_shown(path: FieldPath, shown_as: ShownAs) -> list[FieldPath]:
    if path[0] != KEYED or len(path) == 1:
        return [path]
    return [(path[0], key, *path[2:]) for key in shown_as(path[1])]


def _cut(name: str, text: str) -> slice:
    range_match = _RANGE.fullmatch(text.strip())
    if range_match is None:
        raise query_string.bad_request(f"{name[:60]} is not a range such as [0:5]: {text[:40]}")
    return slice(*(None if end is None else int(end) for end in range_match.groups()))


def _project(value: Any, show: Paths, hide: Paths, cuts: Cuts) -> Any:
    """Apply paths to a value; objects of a list have the path of the list."""
    if isinstance(value, list):
        cut = cuts.get(())
        return [_project(each, show, hide, cuts) for each in (value if cut is None else value[cut])]
    if not isinstance(value, dict):
        return value
    shows_all = () in show
    projected = {}
    for key, each in value.items():
        shown_paths, hidden = _WHOLE if shows_all else _below(show, key), _below(hide, key)
        # hide[] prevails over show[].
        if shown_paths and () not in hidden:
            below = {path[1:]: cut for path, cut in cuts.items() if path and path[0] in (key, ANY)}
            projected[key] = _project(each, shown_paths, hidden, below)
    return projected


def _below(paths: Paths, key: str) -> Paths:
    return frozenset(path[1:] for path in paths if path and path[0] in (key, ANY))
