"""Fields of a v3 response. Those of its objects in one projection have the upstream paths, transform and plan feature
of each, or the reason why it is empty, from the mapping rules that the mapping function is compiled from; those around
the objects are in envelope.yaml."""

import functools
import pathlib
import re
from collections.abc import Iterable, Iterator

import msgspec

from proxy.explain.explanation import ExplainedField, ExplainedOperation
from proxy.kit import located_yaml
from proxy.mapping import coverage, paths, rules, selection
from proxy.mapping.loader import Mappings
from proxy.mapping.reading import Cursor, PathReader, Scope
from proxy.mapping.rules import ComputedValue, FieldRule
from proxy.mapping.schema import FieldType
from proxy.model import Path, Projection
from proxy.v3.endpoints import Action, Endpoint

ANY_KEY = "<key>"
ITEMS: dict[Action, str] = {
    "match": "results[].items[]",
    "search": "results[].item",
    "get_multi": "<uid>",
    "get": "",
}
"""Path of the objects in a response; empty: the response is the object."""

_NAME = re.compile(r"\w+")


class _ShownPaths(PathReader):
    """Shows paths of rules as paths from the upstream record."""

    def _below(self, expression: str, step: paths.Step, kind: FieldType) -> str:
        around = f"{expression}." if expression else ""
        return f"{around}{step.name}{step.arguments}{'[]' if kind.is_list else ''}{_braces(step)}"


def object_fields(mappings: Mappings, name: str, projection: Projection) -> tuple[ExplainedField, ...]:
    """Return every field that a v3 object has in this projection, nested ones included, in the order of the rules."""
    walk = _Walk(mappings, projection)
    record = Cursor("", selection.Node(mappings.rules[name].reads))
    return tuple(walk.fields(name, Scope(record, None), (), ""))


class _Walk:
    """Visits the fields of an object as the mapping compiler does."""

    def __init__(self, mappings: Mappings, projection: Projection) -> None:
        self._mappings = mappings
        self._projection = projection
        self._paths = _ShownPaths(mappings.schema)

    def fields(self, name: str, scope: Scope, at: Path, prefix: str) -> Iterator[ExplainedField]:
        """Yield the fields of one object; `prefix` is its path in the response."""
        object_rules = self._mappings.rules[name]
        for field in object_rules.fields:
            rule = object_rules.rule(field)
            if rules.shows(self._projection, rule, (*at, field)):
                yield from self._field(rule, scope, (*at, field), f"{prefix}{field}")

    def _field(self, rule: FieldRule, scope: Scope, at: Path, path: str) -> Iterator[ExplainedField]:
        if (empty := self._empty(rule, at, path)) is not None:
            yield empty
            return
        texts = [rule.paths] if isinstance(rule.paths, str) else rule.paths or []
        item = self._item(rule, scope)
        yield ExplainedField(
            path=path,
            kind=coverage.kind_of(rule),
            upstream=tuple(self._shown(text, scope) for text in texts),
            transform=rule.through,
            feature=rule.feature,
            note="; ".join(filter(None, (coverage.note_of(rule), *self._conditions(rule, scope, item)))),
            blank=rule.always if rule.constant and rule.none is None else rule.blank,
            object=rule.target,
        )
        if rule.target is not None and item is not None:
            yield from self._below(rule, rule.target, item, at, path)

    def _empty(self, rule: FieldRule, at: Path, path: str) -> ExplainedField | None:
        """Return the field if it is not read from upstream because of the plan, or of slice[]; else None."""
        if rule.constant:
            return None
        if rule.feature and rule.feature not in self._projection.features:
            note = f"the application's features lack {rule.feature}: it is not selected, the upstream would refuse it"
            return ExplainedField(path=path, kind="no feature", feature=rule.feature, note=note, blank=rule.blank)
        if any(path == at and 0 <= (stop or 0) <= (start or 0) for path, (start, stop) in self._projection.slices):
            return ExplainedField(path=path, kind="emptied", note="slice[] leaves nothing of the list", blank=[])
        return None

    def _below(self, rule: FieldRule, target: str, item: Scope, at: Path, path: str) -> Iterator[ExplainedField]:
        """Yield the fields of a nested object, of the elements of a list, or of each key of a keyed object."""
        if not rule.keyed:
            yield from self.fields(target, item, at, f"{path}[]." if rule.each else f"{path}.")
            return
        named = self._projection.show | self._projection.hide
        keys = {each[len(at)] for each in named if each[: len(at)] == at and len(each) > len(at)}
        shown = [key for key in sorted(keys | {rules.ANY}) if rules.shows(self._projection, FieldRule(), (*at, key))]
        for key in shown:
            yield from self.fields(target, item, (*at, key), f"{path}.{ANY_KEY if key == rules.ANY else key}.")

    def _item(self, rule: FieldRule, scope: Scope) -> Scope | None:
        """Return the scope of the objects that a field holds; None for a scalar."""
        if rule.target is None or not isinstance(rule.paths, str):
            return None
        route = paths.parse(rule.paths)
        if route.origin == "context":
            return None
        here, above = scope.origin(route), scope.above
        if rule.is_:
            return Scope(self._at(here, route.steps), above if rule.paths == "." else scope.here)
        for steps in self._paths.up_to_lists(route.steps, here.node):
            here, above = self._at(here, steps), here
        if rule.through:
            # A transform makes the list: its elements are texts.
            here = Cursor(f"{here.expression} → {rule.through}", selection.Node("String"))
        return Scope(here, above)

    def _at(self, start: Cursor, steps: tuple[paths.Step, ...]) -> Cursor:
        read = self._paths.follow(start, steps)
        return Cursor(read.expression, read.node)

    def _conditions(self, rule: FieldRule, scope: Scope, item: Scope | None) -> Iterator[str]:
        """Yield what filters, orders, keys or replaces the elements of a list, in words."""
        for words, value in (("only where", rule.only), ("sorted by", rule.order), ("keys are", rule.key)):
            if value is not None and item is not None:
                yield f"{words} {self._computed(value, item if not rule.is_ else scope)}"
        if rule.or_else:
            yield f"{self._shown(rule.or_else, scope)} if the list is empty"

    def _computed(self, value: ComputedValue, scope: Scope) -> str:
        texts = [value.paths] if isinstance(value.paths, str) else value.paths
        shown = ", ".join(self._shown(text, scope) for text in texts)
        return f"{value.through}({shown})" if value.through else shown

    def _shown(self, text: str, scope: Scope) -> str:
        """Return a path of a rule as a path from the upstream record."""
        is_context = paths.parse(text).origin == "context"
        return text if is_context else self._paths.read(text, scope).expression or "."


def _braces(step: paths.Step) -> str:
    """Return the selection in braces of a path's last step, which a transform reads."""
    return f"{{{' '.join(child.name + _braces(child) for child in step.below)}}}" if step.below else ""


def envelope_fields(endpoint: Endpoint, operations: Iterable[ExplainedOperation]) -> tuple[ExplainedField, ...]:
    """Return the fields around the objects of a response, with those of their upstream paths that the operations
    select; none for an endpoint that returns objects only."""
    response: str = endpoint.action
    if response == "search":
        response = "search of parts" if endpoint.object == "Part" else "search of a list"
    names = {name for each in operations for name in _NAME.findall(each.document)} | {"errors", "message"}
    return tuple(
        msgspec.structs.replace(
            field, upstream=tuple(path for path in field.upstream if names.issuperset(_NAME.findall(path)))
        )
        for field in _fields_around().get(response, ())
    )


@functools.cache
def _fields_around() -> dict[str, tuple[ExplainedField, ...]]:
    texts = located_yaml.load(pathlib.Path(__file__).with_name("envelope.yaml")).data
    return msgspec.convert(texts, dict[str, tuple[ExplainedField, ...]])
