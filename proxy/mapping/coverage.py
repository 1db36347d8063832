"""Coverage of v3 fields, read from the mapping rules: exact, derived, constant, or without a source.

The documentation shows these rows.
"""

import json
from dataclasses import dataclass
from typing import Literal

from proxy.mapping.loader import Mappings
from proxy.mapping.rules import FieldRule

Kind = Literal["exact", "derived", "constant", "no source"]


@dataclass(frozen=True, slots=True)
class FieldCoverage:
    """Coverage of one field. `upstream` is the path that it is read from; `note` says how it is derived, or why it
    has no source and which value a client sees instead."""

    object: str
    field: str
    kind: Kind
    upstream: str
    note: str
    include: bool
    feature: str | None
    source: str


def of_mappings(mappings: Mappings) -> list[FieldCoverage]:
    """Return the coverage of every field of every object, in the order of the files."""
    return [_row(mappings, name, field) for name, rules in mappings.rules.items() for field in rules.fields]


def _row(mappings: Mappings, name: str, field: str) -> FieldCoverage:
    rules = mappings.rules[name]
    rule = rules.rule(field)
    return FieldCoverage(
        name,
        field,
        kind_of(rule),
        _upstream(rules.reads, rule),
        note_of(rule),
        rule.include,
        rule.feature,
        rules.source,
    )


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


def _upstream(reads: str, rule: FieldRule) -> str:
    texts = [rule.paths] if isinstance(rule.paths, str) else rule.paths or []
    # `^` begins a path of its own, which the dot would make a field of the type before.
    return ", ".join(reads if text == "." else f"{reads}.{text}".replace(".^", " ^") for text in texts)


def note_of(rule: FieldRule) -> str:
    """Return how a value is derived, or why it has no source and which value a client sees instead."""
    if rule.none is not None:
        return f"{rule.none}; a client sees {json.dumps(rule.blank)}"
    if rule.constant:
        return f"{json.dumps(rule.always)}: {rule.why}"
    return "; ".join(text for text in (rule.derived, rule.why) if text)
