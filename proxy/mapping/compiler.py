"""Declarations to code: from rules and schema, for one projection, the selection set, the types and the mapping
function.

Runs at start and once for every new projection, never per part. The function is one Python expression, written out from
the rules and evaluated by the interpreter: as quick as one written by hand. It is made of names and constants of
mapping files only; what a client sends never becomes part of it.
"""

import types
from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, get_origin, get_type_hints

import msgspec

from proxy import errors, model
from proxy.mapping import loader, paths, projections, selection
from proxy.mapping.reading import Cursor, PathReader, ReadExpression, Scope
from proxy.mapping.rules import ComputedValue, FieldRule

MappingFunction = Callable[[Any, model.MappingContext], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class CompiledObject:
    """What one object needs in one projection: GraphQL fields, the type of one record of the answer, record → v3
    object.

    `fields` are the paths that are asked for, `decode` reads a list of records from JSON that has at least these.
    `source` is the mapping function as text, for people.
    """

    selection: str
    fields: frozenset[str]
    record: Any
    decode: Callable[[bytes], list[Any]]
    map: MappingFunction
    source: str


def compile_object(
    mappings: loader.Mappings, name: str, projection: model.Projection, needs: tuple[str, ...] = ()
) -> CompiledObject:
    """Compile object `name` for a projection; `needs` are paths to select whatever the projection hides.

    Raises MappingError, naming file and line, where a rule does not fit the schema.
    """
    return _Writer(mappings, projection).compile(name, needs)


class _Writer:
    """Writes one mapping function and grows its selection on the way."""

    def __init__(self, mappings: loader.Mappings, projection: model.Projection) -> None:
        self._mappings = mappings
        self._projection = projection
        self._paths = PathReader(mappings.schema)
        self._names = 0
        self._constants: dict[str, Any] = {}

    def compile(self, name: str, needs: tuple[str, ...]) -> CompiledObject:
        start = Scope(Cursor("it", selection.Node(self._mappings.rules[name].reads)), None)
        body = self._object(name, start, ())
        self._need(needs, start)
        source = f"lambda it, context: {body}"
        names = {
            **self._mappings.transforms,
            **self._constants,
            "sorted": sorted,
            "rank": itemgetter(0),
            "__builtins__": {},
        }
        function = eval(compile(source, f"<mapping of {name}>", "eval"), names)  # noqa: S307 - our own text
        node = start.here.node
        record = node.record()
        decode = msgspec.json.Decoder(types.GenericAlias(list, (record,))).decode
        return CompiledObject(node.text() or selection.NOTHING, node.paths(), record, decode, function, source)

    def _need(self, needs: tuple[str, ...], start: Scope) -> None:
        try:
            for need in needs:
                self._paths.read(need, start)
        except LookupError as error:
            raise errors.MappingError(f"schema.graphql: {error.args[0]}; what reads the answers needs it") from error

    def _object(self, name: str, scope: Scope, at: model.Path, hoists: list[str] | None = None) -> str:
        """The dict of one object. Where `hoists` is given, objects made from their surroundings go there as clauses."""
        rules = self._mappings.rules[name]
        class_name = name if rules.class_ is None else rules.class_
        entries = (
            [f"'__class__': {class_name!r}"] if class_name and projections.shows_class(self._projection, at) else []
        )
        for field in rules.fields:
            rule = rules.rule(field)
            if not projections.shows(self._projection, rule, (*at, field)):
                continue
            try:
                value = self._field(rule, scope, (*at, field))
            except (paths.PathError, LookupError) as error:
                place = self._mappings.place(name, field)
                raise errors.MappingError(f"{place}: {name}.{field}: {error.args[0]}") from error
            if hoists is not None and rule.is_ and str(rule.paths).startswith("^"):
                hoists.append(f"for {self._name('h')} in ({value},)")
                value = f"h{self._names}"
            entries.append(f"{field!r}: {value}")
        return "{" + ", ".join(entries) + "}"

    def _field(self, rule: FieldRule, scope: Scope, at: model.Path) -> str:
        if rule.constant:
            return repr(rule.blank if rule.none is not None else rule.always)
        if rule.feature and rule.feature not in self._projection.features:
            return repr(rule.blank)
        if projections.emptied(self._projection, at) and self._is_list(rule):
            return "[]"
        cut = self._cut(at) if self._projection.cut and self._is_list(rule) else ""
        if rule.each or rule.keyed:
            return self._list(rule, scope, at) + cut
        return self._one(rule, scope, at) if rule.is_ else self._value(rule, scope, repr(rule.blank), cut)

    def _cut(self, at: model.Path) -> str:
        """The cut of a list, as text; the path can hold a client's words, so it is a value."""
        path = projections.cut(self._projection, at)
        if path is None:
            return ""
        return f"[context.cuts[{self._constant(path)}]]"

    def _is_list(self, rule: FieldRule) -> bool:
        """Whether there is something to cut: a list of objects, or one that a transform makes."""
        transform = self._mappings.transforms.get(rule.through or "")
        if rule.target or transform is None:
            return rule.each is not None
        return get_origin(get_type_hints(transform).get("return")) is list

    def _value(self, rule: FieldRule | ComputedValue, scope: Scope, blank: str = "None", cut: str = "") -> str:
        """A plain value, through its transform."""
        if isinstance(rule.paths, str):
            read = self._paths.read(rule.paths, scope)
            return read.guarded(self._through(rule.through, read.expression) + cut, blank)
        reads = [self._paths.read(text, scope) for text in rule.paths or []]
        return self._through(rule.through, ", ".join(read.guarded(read.expression, "None") for read in reads)) + cut

    def _one(self, rule: FieldRule, scope: Scope, at: model.Path) -> str:
        """One nested object."""
        read = self._paths.read(_single(rule), scope)
        target = self._target(rule.is_, read.node)
        above = scope.above if rule.paths == "." else scope.here
        inner = self._object(target, Scope(Cursor(read.expression, read.node), above), at)
        if rule.only:
            inner = f"({inner} if {self._value(rule.only, scope)} else {rule.blank!r})"
        return read.guarded(inner, repr(rule.blank))

    def _list(self, rule: FieldRule, scope: Scope, at: model.Path) -> str:
        """A list of objects, or a dict of them: a comprehension over every list on the path."""
        loops, item = self._loops(rule, scope)
        hoists: list[str] = []
        target = self._target(rule.target, item.here.node)
        if rule.only:
            loops.append(f"if {self._value(rule.only, item)}")
        if rule.key:
            return self._keyed(rule.key, loops, item, target, at)
        entry = self._object(target, item, at, hoists)
        loops[1:1] = hoists
        clauses = " ".join(loops)
        listed = self._ordered(rule.order, entry, clauses, item) if rule.order else f"[{entry} {clauses}]"
        if rule.or_else:
            listed = f"({listed} or {self._stand_in(rule.or_else, target, scope, at)})"
        return listed

    def _keyed(self, key: ComputedValue, loops: list[str], item: Scope, target: str, at: model.Path) -> str:
        """A dict of objects. Keys that show[] or hide[] name are a client's words: values, not text."""
        keys = projections.keys(self._projection, at)
        name = self._name("n")
        loops.append(f"for {name} in ({self._value(key, item)},)")
        if keys.picked is not None:
            loops.append(f"if {name} in {self._constant(keys.picked)}")
        if keys.dropped:
            loops.append(f"if {name} not in {self._constant(keys.dropped)}")
        others = self._object(target, item, (*at, keys.others))
        apart = (f"{self._object(target, item, (*at, k))} if {name} == {self._constant(k)} else " for k in keys.apart)
        return f"{{{name}: {''.join(apart)}{others} {' '.join(loops)}}}"

    def _constant(self, value: Any) -> str:
        name = self._name("k")
        self._constants[name] = value
        return name

    def _stand_in(self, text: str, target: str, scope: Scope, at: model.Path) -> str:
        """A list of the one object a path leads to; empty where it leads to null."""
        read = self._paths.read(text, scope)
        inner = self._object(target, Scope(Cursor(read.expression, read.node), scope.here), at)
        return read.guarded(f"[{inner}]", "[]")

    def _loops(self, rule: FieldRule, scope: Scope) -> tuple[list[str], Scope]:
        """The `for` clauses over a path, and what the elements' own paths start from."""
        route = paths.parse(_single(rule))
        loops: list[str] = []
        here, above = scope.origin(route), scope.above
        for steps in self._paths.up_to_lists(route.steps, here.node):
            read = self._paths.follow(here, steps)
            values = read.expression if self._paths.is_list(steps, here.node) else f"({read.expression},)"
            if rule.through:
                values = self._through(rule.through, read.expression)
                read = ReadExpression(read.expression, read.nulls, selection.Node("String"))
            loops.append(f"for {self._name('v')} in {read.guarded(values, '()')}")
            here, above = Cursor(f"v{self._names}", read.node), here
        return loops, Scope(here, above)

    def _ordered(self, order: ComputedValue, entry: str, clauses: str, item: Scope) -> str:
        """A list sorted by what its elements hold, whether or not a reply shows it: a projection changes no order."""
        texts = [order.paths] if isinstance(order.paths, str) else order.paths
        reads = [self._paths.read(text, item) for text in texts]
        values = ", ".join(read.guarded(read.expression, "None") for read in reads)
        return f"[e for _, e in sorted([({self._through(order.through, values)}, {entry}) {clauses}], key=rank)]"

    def _target(self, name: str | None, node: selection.Node) -> str:
        target = self._mappings.rules.get(name or "")
        if name is None or target is None:
            raise LookupError(f"no mapping file describes an object {name!r}")
        if target.reads != node.type_name:
            raise LookupError(f"{name} reads {target.reads}, but the path leads to {node.type_name}")
        return name

    def _through(self, transform: str | None, arguments: str) -> str:
        if transform is None:
            return arguments
        if transform not in self._mappings.transforms:
            known = ", ".join(sorted(self._mappings.transforms))
            raise LookupError(f"no transform is called {transform!r}; there are {known}")
        return f"{transform}({arguments})"

    def _name(self, letter: str) -> str:
        self._names += 1
        return f"{letter}{self._names}"


def _single(rule: FieldRule) -> str:
    if not isinstance(rule.paths, str):
        raise LookupError("an object is mapped from one path")
    return rule.paths
