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
    """What a projection says of a keyed object's keys: those it keeps (None: all) and drops, those whose objects differ
    from the others', and the key that stands for the others."""

    picked: frozenset[str] | None
    dropped: frozenset[str]
    apart: tuple[str, ...]
    others: str


def shows(projection: Projection, rule: FieldRule, at: Path) -> bool:
    """Whether a reply in this projection holds the field at all."""
    if rule.include and at[-1] not in projection.include:
        return False
    if _names(projection.hide, at):
        return False
    return not projection.show or _names(_beginnings(projection.show), at) or _is_below(projection.show, at)


def shows_class(projection: Projection, at: Path) -> bool:
    """Whether the object at this path keeps its `__class__`: not where show[] picks fields of it."""
    return not projection.show or _is_below(projection.show, at)


def keys(projection: Projection, at: Path) -> Keys:
    """Of the keyed object at this path."""
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
    """The path under which a list field is cut, None where it is not. How far it is cut is the request's business."""
    return max((path for path in _spellings(at) if path in projection.cut), default=None)


def emptied(projection: Projection, at: Path) -> bool:
    """Whether a cut leaves nothing of the field, so that it need not be asked for."""
    return _names(projection.emptied, at)


def _keys(paths: frozenset[Path], at: Path, least: int) -> frozenset[str]:
    """The keys that paths of at least so many steps have below this one."""
    return frozenset(path[len(at)] for path in paths if len(path) >= least and path[: len(at)] == at)


def _is_below(paths: frozenset[Path], at: Path) -> bool:
    """Whether this path, or one that it begins with, is among a projection's."""
    return bool(paths) and any(_names(paths, at[:length]) for length in range(len(at) + 1))


def _names(paths: frozenset[Path], at: Path) -> bool:
    """Whether this path is among a projection's."""
    return bool(paths) and any(path in paths for path in _spellings(at))


def _spellings(at: Path) -> Iterator[Path]:
    """What a projection can write for a path: few, as no object is deep. So what is asked does not grow with the
    projection."""
    return product(*((step, ANY) for step in at))


@lru_cache(maxsize=8)
def _beginnings(paths: frozenset[Path]) -> frozenset[Path]:
    """What these paths begin with, themselves included."""
    return frozenset(path[:length] for path in paths for length in range(len(path) + 1))
