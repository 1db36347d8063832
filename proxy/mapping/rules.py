"""Mapping rules and tables as frozen values, made by the loader; and which fields a projection shows.

A field rule states the source of one v3 field, by exactly one of `from`, `always`, `none`. A projection (include[],
show[], hide[], slice[]; contract v3-rest.md §2.3, §2.4) is looked up by path. Below a keyed object a path has one of
its keys, or `*` for every key.
"""

from collections.abc import Mapping
from functools import lru_cache
from itertools import product
from typing import Any

import msgspec

from proxy.mapping.specs import SpecNames
from proxy.mapping.transforms import Uids
from proxy.model import Path, Projection

# v3 has two uids for each maker (as brand and as manufacturer), upstream has one list.
LISTS = {"Manufacturer": "Brand"}
ANY = "*"


class ComputedValue(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Value computed in addition to the field itself, by which a list is filtered, ordered or keyed."""

    paths: list[str] | str = msgspec.field(name="from")
    through: str | None = None


class FieldRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rule of one v3 field.

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


class ObjectRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rules of one v3 object, mapped from the upstream type `reads` and listed under the type `under`.

    `class` is its `__class__` on the wire: the object's own name unless given, "" for none. `fetched` are paths that no
    rule reads, by the feature of a plan that they need, or `always`: they are fetched for other programs.
    """

    reads: str
    fields: dict[str, FieldRule]
    source: str
    under: str | None = None
    class_: str | None = msgspec.field(name="class", default=None)
    fetched: dict[str, tuple[str, ...]] = {}

    @property
    def hidden(self) -> frozenset[str]:
        """The fields that are hidden unless include[] names them."""
        return frozenset(field for field, rule in self.fields.items() if rule.include)


class SearchField(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Entry of search.yaml: upstream support for a field of v3's searches. `path` leads from an upstream part to the
    value; `number` marks part numbers."""

    filter: str | None = None
    facet: str | None = None
    sort: str | None = None
    path: str | None = None
    number: bool = False
    uid: str | None = None
    name: str | None = None
    id: bool = False
    every: bool = False
    stock: bool = False
    instead: str | None = None


class UnlistedError(LookupError):
    """A name must be looked up in an upstream list that these tables do not contain: its only argument."""


class Tables(msgspec.Struct, frozen=True):
    """All tables of a mappings folder, and the name indexes of the upstream lists that have been fetched. `v3_specs`
    are v3's spec keys, with the similar upstream attribute, if any, that is not mapped to it. `v3_fields` are the
    fields that v3's part search had, whether or not upstream supports them."""

    uids: dict[str, Uids]
    specs: SpecNames
    search: dict[str, SearchField]
    v3_specs: dict[str, str | None] = {}
    listed: dict[str, Mapping[str, tuple[str, ...]]] = {}
    v3_fields: frozenset[str] = frozenset()


def projected(value: Any, projection: Projection, known: dict[Path, bool], at: Path = ()) -> Any:
    """Return what show[], hide[] and slice[] leave of a v3 object that is made of builtin values. `known` says of each
    path met before whether it is shown."""
    if isinstance(value, dict):
        shown: dict[str, Any] = {}
        for name, each in value.items():
            path = (*at, name)
            if path not in known:
                known[path] = shows(projection, None, path)
            if known[path]:
                shown[name] = projected(each, projection, known, path) if isinstance(each, dict | list) else each
        return shown
    if not isinstance(value, list):
        return value
    slices = dict(projection.slices)
    spellings = product(*((step, ANY) for step in at)) if slices else ()
    sliced = max((each for each in spellings if each in slices), default=None)
    elements = value if sliced is None else value[slice(*slices[sliced])]
    return [projected(each, projection, known, at) for each in elements]


def shows(projection: Projection, rule: FieldRule | None, at: Path) -> bool:
    """Return whether a response in this projection has a path; `rule` is that of its field, where it may be hidden."""
    if rule and rule.include and at[-1] not in projection.include:
        return False
    # Each step as it is, or `*`: few, because no object is deep. The size of the projection does not matter.
    show, spellings = projection.show, [*product(*((step, ANY) for step in at))]
    if not projection.hide.isdisjoint(spellings):
        return False
    # The field itself, an object around a shown field, or a field below a shown object.
    is_above = not show or not _beginnings(show).isdisjoint(spellings)
    return is_above or any(each[:end] in show for each in spellings for end in range(len(at)))


# The same set is looked up for every field of a projection.
@lru_cache(maxsize=8)
def _beginnings(paths: frozenset[Path]) -> frozenset[Path]:
    return frozenset(path[:length] for path in paths for length in range(len(path) + 1))
