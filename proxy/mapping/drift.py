"""Schema drift: what the upstream's schema lacks of the part that the mappings read, and the v3 fields that it feeds.

Pure. The upstream's types come from introspection (doctor/introspection.py). Only what the mappings need is compared:
further types, fields and optional arguments of the upstream are no drift.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import graphql
import msgspec

from proxy.mapping import loader, paths
from proxy.mapping.rules import FieldRule
from proxy.mapping.schema import SCALARS, Schema

# What reads a field that feeds no single v3 field. Fields of types that are only reached through one of these have the
# same use.
USES: Mapping[str, tuple[str, ...]] = {
    "Query.supSearch": ("/parts/search", "q of /parts/match"),
    "Query.supSearchMpn": ("/parts/match with one query",),
    "Query.supMultiMatch": ("/parts/match", "mpn filters of /parts/search"),
    "Query.supParts": ("/parts/<uid>", "/parts/get_multi"),
    "Query.supManufacturers": ("/brands/…", "brand filters of /parts/search"),
    "Query.supSellers": ("/sellers/…", "seller filters of /parts/search"),
    "Query.supCategories": ("/categories/…", "category_uids filters of /parts/search"),
    "Query.supAttributes": ("keys of specs that v3bridge does not list",),
    "SupPartResultSet.specAggs": ("facets and statistics of specs",),
    "SupPartResultSet.manufacturerAgg": ("facets of brands",),
    "SupPartResultSet.distributorAgg": ("facets of sellers",),
    "SupPartResultSet.categoryAgg": ("facets of category_uids",),
    "SupPartResultSet.inStockAgg": ("the facet of avg_avail",),
    "SupPartResult.description": ("snippets of /parts/search",),
    "SupPartResult.akaMpn": ("alternate part numbers of /parts/match",),
}


class RemoteTypeReference(msgspec.Struct, frozen=True, rename="camel"):
    """Reference to a type, as introspection gives it: `[SupPart!]!` is NON_NULL of LIST of NON_NULL of SupPart."""

    kind: str
    name: str | None = None
    of_type: "RemoteTypeReference | None" = None

    def __str__(self) -> str:
        if self.of_type is None:
            return self.name or "…"
        return f"{self.of_type}!" if self.kind == "NON_NULL" else f"[{self.of_type}]"


class RemoteArgument(msgspec.Struct, frozen=True, rename="camel"):
    """Argument of a field, or field of an input type."""

    name: str
    type: RemoteTypeReference
    default_value: str | None = None

    @property
    def is_required(self) -> bool:
        """Whether an operation that leaves it out is invalid."""
        return self.type.kind == "NON_NULL" and self.default_value is None


class RemoteField(msgspec.Struct, frozen=True):
    """Field of an object type."""

    name: str
    type: RemoteTypeReference
    args: list[RemoteArgument] = []


class RemoteEnumValue(msgspec.Struct, frozen=True):
    """Value of an enum."""

    name: str


class RemoteType(msgspec.Struct, frozen=True, rename="camel"):
    """Type of the upstream's schema; the lists that its kind does not have are null."""

    name: str
    fields: list[RemoteField] | None = None
    input_fields: list[RemoteArgument] | None = None
    enum_values: list[RemoteEnumValue] | None = None


class Drift(msgspec.Struct, frozen=True):
    """One difference. `place` is `Type`, `Type.field` or `Type.field(argument)`, `problem` follows it in a sentence.

    `breaks`: operations that use it are refused, or their responses cannot be read; otherwise only some responses may
    be affected. `affected`: the v3 fields that lose their source, as paths from a v3 object (`Part.offers.moq`), or
    the endpoints and parameters that need it.
    """

    place: str
    problem: str
    breaks: bool
    affected: tuple[str, ...] = ()


def compare(mappings: loader.Mappings, remote: Mapping[str, RemoteType]) -> list[Drift]:
    """Return every difference that matters to the mappings, in the order of their schema. `remote` are the upstream's
    types by name; its query type is `Query`."""
    return _Comparison(mappings, remote).drifts()


class _Comparison:
    """Comparison of the schema of the mappings with the upstream's types."""

    def __init__(self, mappings: loader.Mappings, remote: Mapping[str, RemoteType]) -> None:
        self._remote = remote
        self._types = mappings.schema.named_types()
        self._uses = _Uses(mappings)

    def drifts(self) -> list[Drift]:
        differences = [difference for name in self._types for difference in self._of_type(name)]
        named = {difference.place for difference in differences}
        # Where the field that leads to a missing type is gone or has another type, that says it already.
        missing = [
            name for name in self._types if name not in self._remote and named.isdisjoint(self._uses.parents[name])
        ]
        return differences + [self._drift(name, "is gone", breaks=True) for name in missing]

    def _of_type(self, name: str) -> Iterator[Drift]:
        expected, actual = self._types[name], self._remote.get(name)
        if actual is not None:
            if isinstance(expected, graphql.GraphQLObjectType):
                yield from self._object(expected, actual)
            elif isinstance(expected, graphql.GraphQLInputObjectType):
                yield from self._arguments(name, expected.fields, actual.input_fields or [])
            elif isinstance(expected, graphql.GraphQLEnumType):
                values = {value.name for value in actual.enum_values or []}
                for value in expected.values:
                    if value not in values:
                        yield self._drift(f"{name}.{value}", "is gone", breaks=True)

    def _object(self, expected: graphql.GraphQLObjectType, actual: RemoteType) -> Iterator[Drift]:
        remote_fields = {field.name: field for field in actual.fields or []}
        for name, field in expected.fields.items():
            place = f"{expected.name}.{name}"
            remote_field = remote_fields.get(name)
            if remote_field is None:
                yield self._drift(place, "is gone", breaks=True)
                continue
            form = _compared(field.type, remote_field.type)
            if form != "same":
                problem = f"is {remote_field.type} instead of {field.type}"
                yield self._drift(place, problem, breaks=form == "different")
            elif _may_be_null(field.type, remote_field.type):
                yield self._drift(place, f"may be null now: {remote_field.type} instead of {field.type}", breaks=False)
            yield from self._arguments(place, field.args, remote_field.args)

    def _arguments(self, place: str, expected: Mapping[str, Any], actual: list[RemoteArgument]) -> Iterator[Drift]:
        """Compare the arguments of a field, or the fields of an input type."""
        remote_arguments = {argument.name: argument for argument in actual}
        for name, argument in expected.items():
            remote_argument = remote_arguments.get(name)
            if remote_argument is None:
                yield self._drift(_below(place, name), "is gone", breaks=True)
            elif not _accepts(argument.type, remote_argument):
                problem = f"takes {remote_argument.type} instead of {argument.type}"
                yield self._drift(_below(place, name), problem, breaks=True)
        for argument in actual:
            if argument.is_required and argument.name not in expected:
                yield self._drift(_below(place, argument.name), "is required now", breaks=True)

    def _drift(self, place: str, problem: str, *, breaks: bool) -> Drift:
        return Drift(place, problem, breaks, self._uses.of(place))


def _below(place: str, name: str) -> str:
    """Return the place of an argument, or of a field of an input type."""
    return f"{place}({name})" if "." in place else f"{place}.{name}"


def _compared(expected: Any, actual: RemoteTypeReference) -> Literal["same", "unknown", "different"]:
    """Compare the values of two types as JSON, but for nulls; "unknown" for a scalar that the mappings do not have."""
    bare, remote = graphql.get_nullable_type(expected), _nullable(actual)
    if isinstance(bare, graphql.GraphQLList):
        if remote.kind != "LIST" or remote.of_type is None:
            return "different"
        return _compared(bare.of_type, remote.of_type)
    if bare.name in SCALARS and remote.kind in ("SCALAR", "ENUM"):
        if remote.name not in SCALARS:
            return "unknown"
        # Scalars of one Python type are the same in JSON: ID and String, Time and DateTime.
        return "same" if SCALARS[bare.name] is SCALARS[remote.name] else "different"
    return "same" if bare.name == remote.name else "different"


def _may_be_null(expected: Any, actual: RemoteTypeReference) -> bool:
    """Return whether a null can come where the mappings expect none. The forms of both types are the same."""
    if graphql.is_non_null_type(expected) and actual.kind != "NON_NULL":
        return True
    bare, remote = graphql.get_nullable_type(expected), _nullable(actual)
    return bool(
        isinstance(bare, graphql.GraphQLList)
        and remote.of_type is not None
        and _may_be_null(bare.of_type, remote.of_type)
    )


def _accepts(expected: Any, actual: RemoteArgument) -> bool:
    """Return whether an argument takes the values that operations send: the same type, and no stricter."""
    if actual.is_required and not graphql.is_non_null_type(expected):
        return False
    sent, taken = str(graphql.get_nullable_type(expected)), str(_nullable(actual.type))
    # A list of nullable elements takes a list without nulls as well.
    return sent.replace("!", "") == taken.replace("!", "") and not ("!" in taken and "!" not in sent)


def _nullable(reference: RemoteTypeReference) -> RemoteTypeReference:
    return reference.of_type if reference.kind == "NON_NULL" and reference.of_type else reference


@dataclass(frozen=True, slots=True)
class _Place:
    """Type that a path starts from or leads to, and the type around it, where `^` starts."""

    type: str
    above: str | None


class _Uses:
    """The v3 fields that read each field of the schema, and what else needs it."""

    def __init__(self, mappings: loader.Mappings) -> None:
        self._mappings = mappings
        self._schema: Schema = mappings.schema
        self._readers: dict[str, dict[str, None]] = defaultdict(dict)  # ordered sets
        for root in loader.ROOTS:
            if root in mappings.rules:
                self._walk(root, root, _Place(mappings.rules[root].reads, None), frozenset())
        self.parents = self._parents_of_types()

    def of(self, place: str) -> tuple[str, ...]:
        """Return the uses of a type, a field or an argument."""
        return tuple(self._readers.get(place) or self._of(place.partition("(")[0], set()))

    def _of(self, place: str, visited: set[str]) -> dict[str, None]:
        if readers := self._readers.get(place):
            return readers
        if place in USES:
            return dict.fromkeys(USES[place])
        visited.add(place)
        type_name = place.partition(".")[0]
        parents = (parent for parent in self.parents[type_name] if parent not in visited)
        return {use: None for parent in parents for use in self._of(parent, visited)}

    def _parents_of_types(self) -> dict[str, list[str]]:
        """Return the fields that lead to each type, or that have an argument of it."""
        parents: dict[str, list[str]] = defaultdict(list)
        for owner in self._schema.named_types().values():
            for name, field in getattr(owner, "fields", {}).items():
                taken = [argument.type for argument in getattr(field, "args", {}).values()]
                for kind in (field.type, *taken):
                    parents[str(graphql.get_named_type(kind))].append(f"{owner.name}.{name}")
        return parents

    def _walk(self, name: str, label: str, start: _Place, walked: frozenset[str]) -> None:
        """Note what each field of a v3 object reads, and go on with nested objects; `walked` ends recursions."""
        rules = self._mappings.rules[name]
        place = _Place(start.type, rules.under or start.above)
        for field in rules.fields:
            rule = rules.rule(field)
            if rule.constant:
                continue
            field_label = f"{label}.{field}"
            item = place
            for text in _texts(rule.paths):
                item = self._read(text, place, field_label)
            for text in _secondary(rule):
                self._read(text, item, field_label)
            if rule.or_else:
                self._read(rule.or_else, place, field_label)
            if rule.target and rule.target not in walked:
                self._walk(rule.target, field_label, item, walked | {name})

    def _read(self, text: str, start: _Place, label: str) -> _Place:
        """Note the fields of a path for a v3 field, and return where the path leads."""
        route = paths.parse(text)
        if route.origin == "context":
            return start
        here = start.above if route.origin == "above" else start.type
        return self._steps(route.steps, here or "", start.above, label) if here else start

    def _steps(self, steps: tuple[paths.Step, ...], here: str, above: str | None, label: str) -> _Place:
        for step in steps:
            kind = self._schema.field(here, step.name)
            if kind is None:
                return _Place(here, above)
            field = f"{here}.{step.name}"
            for read in (field, *(f"{field}({argument})" for argument in re.findall(r"(\w+):", step.arguments))):
                self._readers[read][label] = None
            above, here = here, kind.name
            for child in step.below:
                self._steps((child,), here, above, label)
        return _Place(here, above)


def _texts(written: list[str] | str | None) -> list[str]:
    return [written] if isinstance(written, str) else written or []


def _secondary(rule: FieldRule) -> Iterator[str]:
    """Yield the paths by which elements are filtered, ordered and keyed."""
    for value in (rule.key, rule.only, rule.order):
        if value is not None:
            yield from _texts(value.paths)
