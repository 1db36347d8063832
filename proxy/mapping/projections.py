"""Effect of a projection (include[], show[], hide[], slice[]) on a field at a path (contract v3-rest.md §2.3, §2.4).

Pure functions, used by the compiler. Below a keyed object a path has one of its keys, or `*`: in a
projection it stands for every key, in an argument of the compiler for those that the projection does not name.
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from typing import NamedTuple

from proxy.mapping.rules import FieldRule
from proxy.model import Path, Projection

ANY = "*"


class Keys(NamedTuple):
    """Keys of a keyed object in a projection: the `picked` ones (None: all) and the `dropped` ones, those whose
    objects have another projection (`apart`), and the key that represents all `others`."""

    picked: frozenset[str] | None
    dropped: frozenset[str]
    apart: tuple[str, ...]
    others: str


def shows(projection: Projection, rule: FieldRule, at: Path) -> bool:
    """Return whether a response in this projection has the field."""
    if rule.include and at[-1] not in projection.include:
        return False
    if _names(projection.hide, at):
        return False
    return not projection.show or _names(_beginnings(projection.show), at) or _is_below(projection.show, at)


def shows_class(projection: Projection, at: Path) -> bool:
    """Return whether the object at this path has its `__class__`: not if show[] selects single fields of it."""
    return not projection.show or _is_below(projection.show, at)


def keys(projection: Projection, at: Path) -> Keys:
    """Return the keys of the keyed object at this path."""
    level = len(at)
    picked = _keys(projection.show, at, level + 1)
    whole = _is_below(projection.show, at)
    dropped = frozenset(gone[level] for gone in projection.hide if len(gone) == level + 1 and gone[:level] == at)
    apart = _keys(projection.show | projection.hide | projection.cut | projection.emptied, at, level + 2)
    if ANY in picked:
        apart |= picked
    apart -= {ANY}
    alike = sorted(picked - apart - {ANY})
    if ANY in dropped:
        return Keys(frozenset(), frozenset(), (), ANY)
    everything = not projection.show or whole or ANY in picked
    return Keys(None if everything else picked, dropped, tuple(sorted(apart)), alike[0] if alike else ANY)


def cut(projection: Projection, at: Path) -> Path | None:
    """Return the path under which a list field is cut, None if it is not. The bounds of the cut are not part of the
    projection."""
    return max((path for path in _spellings(at) if path in projection.cut), default=None)


def emptied(projection: Projection, at: Path) -> bool:
    """Return whether a cut leaves nothing of the field, so that it need not be selected."""
    return _names(projection.emptied, at)


def _keys(paths: frozenset[Path], at: Path, least: int) -> frozenset[str]:
    """Return the next steps below `at` of all paths that have at least `least` steps."""
    return frozenset(path[len(at)] for path in paths if len(path) >= least and path[: len(at)] == at)


def _is_below(paths: frozenset[Path], at: Path) -> bool:
    """Return whether `paths` has this path or a prefix of it."""
    return bool(paths) and any(_names(paths, at[:length]) for length in range(len(at) + 1))


def _names(paths: frozenset[Path], at: Path) -> bool:
    """Return whether `paths` has this path."""
    return bool(paths) and any(path in paths for path in _spellings(at))


def _spellings(at: Path) -> Iterator[Path]:
    """Yield the spellings of a path in a projection: each step as it is, or `*`. They are few, because no object is
    deep, so that the time of a lookup does not depend on the size of the projection."""
    return product(*((step, ANY) for step in at))


@lru_cache(maxsize=8)
def _beginnings(paths: frozenset[Path]) -> frozenset[Path]:
    """Return all prefixes of these paths, including the paths themselves."""
    return frozenset(path[:length] for path in paths for length in range(len(path) + 1))
