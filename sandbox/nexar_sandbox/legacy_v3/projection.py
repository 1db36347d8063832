"""Projection of objects by include[], show[], hide[] and slice[] (contract v3-rest.md §2.3, §2.4).

Objects are built with the fields of include[] and reduced here. Unknown names are ignored.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from nexar_sandbox.legacy_v3 import errors, fields, query_string

_SLICE = re.compile(r"slice\[(.+?)\]")
_RANGE = re.compile(r"\[?(-?[0-9]{1,9})?:(-?[0-9]{1,9})?\]?")

Paths = frozenset[fields.FieldPath]
Cuts = dict[fields.FieldPath, slice]
ShownAs = Callable[[str], Iterable[str]]
_WHOLE: Paths = frozenset({()})


@dataclass(frozen=True, slots=True)
class LegacyProjection:
    """A projection: `include` adds fields, `show` (None: everything) and `hide` are paths, `cuts` slices
    of lists by path."""

    include: frozenset[str] = frozenset()
    show: Paths | None = None
    hide: Paths = frozenset()
    cuts: tuple[tuple[fields.FieldPath, slice], ...] = ()

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
        frozenset(parameters.all("include")) & fields.INCLUDED.get(name, frozenset()),
        _paths(show, name, shown_as) if show else None,
        _paths(hide, name, shown_as),
        tuple((path, cut) for text, cut in cuts for path in _paths([text], name, shown_as)),
    )


def _paths(texts: Iterable[str], name: str, shown_as: ShownAs) -> Paths:
    paths = (path for text in texts for path in _as_shown(tuple(text.split(".")), shown_as))
    return frozenset(path for path in paths if fields.is_known(name, path))


def _as_shown(path: fields.FieldPath, shown_as: ShownAs) -> list[fields.FieldPath]:
    if path[0] != fields.KEYED or len(path) == 1:
        return [path]
    return [(path[0], key, *path[2:]) for key in shown_as(path[1])]


def _cut(name: str, text: str) -> slice:
    range_match = _RANGE.fullmatch(text.strip())
    if range_match is None:
        raise errors.bad_request(f"{name[:60]} is not a range such as [0:5]: {text[:40]}")
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
            projected[key] = _project(each, shown_paths, hidden, _cuts_below(cuts, key))
    return projected


def _below(paths: Paths, key: str) -> Paths:
    return frozenset(path[1:] for path in paths if path and path[0] in (key, fields.ANY))


def _cuts_below(cuts: Cuts, key: str) -> Cuts:
    return {path[1:]: cut for path, cut in cuts.items() if path and path[0] in (key, fields.ANY)}
