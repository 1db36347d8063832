"""Search fields `specs.<key>.value`, `.min_value` and `.max_value`, and the upstream attributes that they refer to,
by mappings/spec_names.yaml.

A v3 key can mean several attributes, or one attribute of some parts only. Filters are rewritten here so that each names
one attribute, which is what search_filters.py can translate.
"""

import math
import re
from collections.abc import Iterable

from proxy import errors
from proxy.mapping.specs import SpecSource
from proxy.mapping.tables import Tables
from proxy.planning.lucene import OPEN, Condition

SPEC = re.compile(r"specs\.([^.]+)\.(value|min_value|max_value)")


def spec_key(field: str) -> str | None:
    """Return the key in a spec field: `resistance` for `specs.resistance.value`; None for other fields."""
    match = SPEC.fullmatch(field)
    return match[1] if match else None


def source(tables: Tables, field: str) -> SpecSource | None:
    """Return the attributes behind a field; None for other fields, for keys that the tables do not have, and for the
    ends of a spec that is not a range."""
    match = SPEC.fullmatch(field)
    spec = tables.specs.source(match[1]) if match else None
    if match is None or spec is None or match[2] == "value":
        return spec
    end = spec.low if match[2] == "min_value" else spec.high
    return tables.specs.source(end) if end else None


def canonical(tables: Tables, field: str) -> str:
    """Return the canonical spelling of a spec field; other fields unchanged."""
    spec = source(tables, field)
    return f"specs.{spec.key}.value" if spec else field


def shortnames(tables: Tables, fields: Iterable[str]) -> list[str]:
    """Return the shortnames of the attributes that some fields refer to."""
    return [name for field in fields if (spec := source(tables, field)) for name in spec.shortnames]


def expanded(tables: Tables, conditions: Iterable[Condition]) -> list[Condition]:
    """Rewrite conditions so that each names one attribute.

    A range such as operating_temperature matches if it overlaps the requested values, as range fields do in search
    engines. Raises BadRequest if upstream cannot filter by the field.
    """
    original = list(conditions)
    rewritten = [each for condition in original for each in _expand(tables, condition)]
    # After the rewriting: a filter on the quantity itself makes the added condition unnecessary.
    for condition in original:
        rewritten = limited(tables, rewritten, condition.field)
    return rewritten


def limited(tables: Tables, conditions: list[Condition], field: str) -> list[Condition]:
    """Add the condition that restricts a field to the parts that can have it: a tolerance is a resistance_tolerance
    only for parts with a resistance. Upstream cannot filter by existence, but by a value of 0 or more."""
    spec = source(tables, field)
    named = shortnames(tables, (condition.field for condition in conditions))
    if spec is None or spec.beside is None or spec.beside in named:
        return conditions
    return [*conditions, Condition(_field(tables, spec.beside), (), "0", None)]


def is_limited(tables: Tables, conditions: Iterable[Condition], field: str) -> bool:
    """Return whether `limited` would add a condition."""
    unchanged = list(conditions)
    # `limited` returns the same list where it adds nothing.
    return limited(tables, unchanged, field) is not unchanged


def sort_key(tables: Tables, field: str, direction: str) -> str | None:
    """Return the attribute to sort a range by: its lower end ascending, its upper end descending. None for other
    fields."""
    spec = source(tables, field)
    if spec is None or not spec.is_range:
        return None
    return spec.high if direction == "desc" else spec.low


def _expand(tables: Tables, condition: Condition) -> list[Condition]:
    spec = source(tables, condition.field)
    if spec is None:
        return [condition]
    if spec.low is None or spec.high is None:
        field, entry = canonical(tables, condition.field), tables.specs.entry(spec.key)
        return [_without_sign(condition, field) if entry and entry.plus_minus else condition._replace(field=field)]
    # A filter on either the value or the ends would need an OR of filters, which the upstream lacks.
    if spec.value is not None:
        fields = ", ".join(_field(tables, name) for name in spec.shortnames)
        raise errors.BadRequest(f"{condition.field}: the service has it as several specs; filter by one of {fields}")
    low, high = _ends(condition)
    # Ranges overlap if the part's upper end is above the requested low, and its lower end below the requested high.
    floor = Condition(_field(tables, spec.high), (), low, None)
    ceiling = Condition(_field(tables, spec.low), (), None, high)
    return [each for each, end in ((floor, low), (ceiling, high)) if end is not None] or [floor]


def _without_sign(condition: Condition, field: str) -> Condition:
    """Return a condition on tolerances with plain numbers, as upstream has them: 5 for ±5%, 5% and 5.0."""
    low, high = (None if end is None else _percentage(end) for end in (condition.low, condition.high))
    return Condition(field, tuple(dict.fromkeys(map(_percentage, condition.values))), low, high)


def _percentage(text: str) -> str:
    bare = text.strip().removeprefix("±").removesuffix("%").strip()
    try:
        number = float(bare)
    except ValueError:
        return text
    return f"{number:g}" if math.isfinite(number) else text


def _ends(condition: Condition) -> tuple[str | None, str | None]:
    """Return the ends of the requested range; a single value is both ends."""
    if condition.is_range:
        return condition.low, condition.high
    if len(condition.values) > 1 or OPEN in condition.values[0]:
        raise errors.BadRequest(f"{condition.field} is a range: give one number, or a range like [-40 TO 85]")
    # Overlap with a single number: the range contains it.
    return condition.values[0], condition.values[0]


def _field(tables: Tables, shortname: str) -> str:
    """Return the field that refers to one attribute."""
    return canonical(tables, f"specs.{shortname}.value")
