"""Mapping rules as frozen values, made by the loader; and which fields a projection shows.

A field rule states the source of one v3 field, by exactly one of `from`, `always`, `none`. A projection (include[],
show[], hide[], slice[]; contract v3-rest.md §2.3, §2.4) is looked up by path. Below a keyed object a path has one of
its keys, or `*`: in a projection it stands for every key, in an argument of the compiler for those that the projection
does not name.
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import msgspec

from proxy.model import Path, Projection

ANY = "*"


class ComputedValue(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Value computed in addition to the field itself, by which a list is filtered, ordered or keyed."""

    paths: list[str] | str = msgspec.field(name="from")
    through: str | None = None


class FieldRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rule of one v3 field; docs/reference/mappings.md describes every key with an example.

    `from`     one path into the service's type, or several (then `through` takes them all); `^` starts at the
               object around (its type is the object's `under`), `.` is the value itself, `$name` the request's context
    `is`       map the value with this object · `each` map every element · `keyed` the same, as a dict by `key`
    `through`  a function of transforms.py; before `each` it makes the list
    `only`     keep elements for which this is true · `order` sort elements by this, smallest first
    `or_else`  a path whose one object stands in for an empty list
    `empty`    what a client sees where the service has null or the plan lacks the `feature`
    `include`  hidden unless requested with include[]
    `derived`  how the value comes about where it is not the service's own; `why` explains `always`
    """

    paths: list[str] | str | None = msgspec.field(name="from", default=None)
    is_: str | None = msgspec.field(name="is", default=None)
    each: str | None = None
    keyed: str | None = None
    key: ComputedValue | None = None
    through: str | None = None
    only: ComputedValue | None = None
    order: ComputedValue | None = None
    or_else: str | None = None
    empty: Any = None
    always: Any = msgspec.UNSET
    none: str | None = None
    include: bool = False
    feature: str | None = None
    derived: str | None = None
    why: str | None = None

    @property
    def target(self) -> str | None:
        """Name of the object that maps the value, None for a scalar."""
        return self.is_ or self.each or self.keyed

    @property
    def blank(self) -> Any:
        """v3's empty value of this field (contract v3-rest.md §3, third column)."""
        if self.empty is None and self.each:
            return []
        return {} if self.empty is None and self.keyed else self.empty

    @property
    def constant(self) -> bool:
        """Whether the value is a constant: nothing is read from upstream for it."""
        return self.paths is None


class ObjectRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rules of one v3 object, mapped from the upstream type `reads` and listed under the type `under`.

    `class` is its `__class__` on the wire: the object's own name unless given, "" for none. `fetched` are paths that no
    rule reads, by the feature of a plan that they need, or `always`: they are fetched for other programs.
    """

    reads: str
    fields: dict[str, FieldRule | str]
    source: str
    under: str | None = None
    class_: str | None = msgspec.field(name="class", default=None)
    fetched: dict[str, tuple[str, ...]] = {}

    def rule(self, field: str) -> FieldRule:
        """Return the rule of a field; a bare path is short for `from`."""
        rule = self.fields[field]
        return FieldRule(paths=rule) if isinstance(rule, str) else rule


class ProjectedKeys(NamedTuple):
    """Keys of a keyed object in a projection: the `picked` ones (None: all) and the `dropped` ones, those whose
    objects have another projection (`separate`), and the key that stands for all others (`representative`)."""

    picked: frozenset[str] | None
    dropped: frozenset[str]
    separate: tuple[str, ...]
    representative: str


def shows(projection: Projection, rule: FieldRule, at: Path) -> bool:
    """Return whether a response in this projection has the field."""
    if rule.include and at[-1] not in projection.include:
        return False
    if _names(projection.hide, at):
        return False
    # The field itself, an object around a shown field, or a field below a shown object.
    return not projection.show or _names(_beginnings(projection.show), at) or _is_below(projection.show, at)


def shows_class(projection: Projection, at: Path) -> bool:
    """Return whether the object at this path has its `__class__`: not if show[] selects single fields of it."""
    return not projection.show or _is_below(projection.show, at)


def keys(projection: Projection, at: Path) -> ProjectedKeys:
    """Return the keys of the keyed object at this path."""
    level = len(at)
    picked = _keys(projection.show, at, level + 1)
    whole = _is_below(projection.show, at)
    dropped = frozenset(path[level] for path in projection.hide if len(path) == level + 1 and path[:level] == at)
    separate = _keys(projection.show | projection.hide | projection.cut | projection.emptied, at, level + 2)
    # `*` is shown beside single keys: those may have paths of their own, so they are mapped apart.
    if ANY in picked:
        separate |= picked
    separate -= {ANY}
    same_projection = sorted(picked - separate - {ANY})
    # Every key is hidden, whatever show[] picks.
    if ANY in dropped:
        return ProjectedKeys(frozenset(), frozenset(), (), ANY)
    everything = not projection.show or whole or ANY in picked
    return ProjectedKeys(
        None if everything else picked, dropped, tuple(sorted(separate)), same_projection[0] if same_projection else ANY
    )


def cut(projection: Projection, at: Path) -> Path | None:
    """Return the path under which a list field is cut, None if it is not. The bounds of the cut are not part of the
    projection."""
    return max((path for path in _spellings(at) if path in projection.cut), default=None)


def emptied(projection: Projection, at: Path) -> bool:
    """Return whether a cut leaves nothing of the field, so that it need not be selected."""
    return _names(projection.emptied, at)


def _keys(paths: frozenset[Path], at: Path, steps_min: int) -> frozenset[str]:
    """Return the next steps below `at` of all paths that have at least `steps_min` steps."""
    return frozenset(path[len(at)] for path in paths if len(path) >= steps_min and path[: len(at)] == at)


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


# The same set is looked up for every field of a projection, and few projections compile at once.
@lru_cache(maxsize=8)
def _beginnings(paths: frozenset[Path]) -> frozenset[Path]:
    """Return all prefixes of these paths, including the paths themselves."""
    return frozenset(path[:length] for path in paths for length in range(len(path) + 1))
