"""Coverage of v3 fields, read from the mapping rules: exact, derived, constant, or without a source."""

from typing import Literal

from proxy.mapping.loader import Mappings
from proxy.mapping.rules import FieldRule

Kind = Literal["exact", "derived", "constant", "no source"]


def missing_source(mappings: Mappings, name: str, field: str, features: frozenset[str]) -> str | None:
    """Return why a field of an object, such as `offers.on_order_eta`, has no source under a plan with `features`; None
    if it has one."""
    steps = iter(field.split("."))
    target: str | None = name
    for step in steps:
        if target is None or step not in mappings.rules[target].fields:
            return "v3 has no such field"
        rule = mappings.rules[target].rule(step)
        if rule.none is not None:
            return rule.none
        if rule.feature and rule.feature not in features:
            return f"the plan lacks {rule.feature}"
        if rule.keyed:
            next(steps, None)  # a key is data, such as that of a spec
        target = rule.target
    return None


def kind_of(rule: FieldRule) -> Kind:
    """Return whether a field is exact, derived, constant, or has no source."""
    if rule.none is not None:
        return "no source"
    if rule.constant:
        return "constant"
    return "derived" if rule.derived else "exact"
