"""Mapping rules as frozen values: made by the loader, read by the compiler and the coverage.

A field rule states the source of one v3 field, by exactly one of `from`, `always`, `none`.
"""

from typing import Any

import msgspec


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

    `class` is its `__class__` on the wire: the object's own name unless given, "" for none.
    """

    reads: str
    fields: dict[str, FieldRule | str]
    source: str
    under: str | None = None
    class_: str | None = msgspec.field(name="class", default=None)

    def rule(self, field: str) -> FieldRule:
        """Return the rule of a field; a bare path is short for `from`."""
        rule = self.fields[field]
        return FieldRule(paths=rule) if isinstance(rule, str) else rule
