"""Mapping compiler: from mapping rules and schema, for one projection, to selection set, record types and function.

Runs at start and once for every new projection, never per part. The mapping function is ordinary Python source
(source.py), which is as fast as one written by hand: no rule is interpreted while a part is mapped.
"""

import dataclasses
import itertools
import keyword
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, get_origin, get_type_hints

import msgspec

from proxy import errors, model
from proxy.mapping import loader, paths, rules, selection
from proxy.mapping.reading import Cursor, PathReader, ReadExpression, Scope
from proxy.mapping.rules import ComputedValue, FieldRule
from proxy.mapping.source import CLAUSE, CONTEXT, END, ObjectSource, Source, functions_of, snake_case

PARENT = "parent"  # in a mapping function, the object that lists the one being mapped
NO_FIELDS: Mapping[str, str] = {}

MappingFunction = Callable[[Any, model.MappingContext], msgspec.Struct]


@dataclasses.dataclass(frozen=True, slots=True)
class CompiledObject:
    """Compiled mapping of one object in one projection: selection set, record type, and function from record to v3
    object.

    `fields` are the selected paths; `decode` reads a record of the type `record` from JSON that has at least these.
    `source` is the text of the mapping function, for documentation.
    """

    selection: str
    fields: frozenset[str]
    record: Any
    map: MappingFunction
    source: str
    decode: Callable[[bytes], Any] = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "decode", msgspec.json.Decoder(self.record).decode)


def compile_object(
    mappings: loader.Mappings,
    name: str,
    projection: model.Projection,
    needs: tuple[str, ...] = (),
    source: Callable[[str], Source] = Source,
) -> CompiledObject:
    """Compile object `name` for a projection; `needs` are paths to select whatever the projection hides, `source` makes
    what the functions are written to.

    Raises MappingError, naming file and line, where a rule does not fit the schema.
    """
    return _Writer(mappings, projection, source(name)).compile(name, needs)


def source_of(mappings: loader.Mappings, features: Iterable[str], name: str | None = None) -> str:
    """Return the source of the functions that map all objects, or one, with every field shown that a plan with
    `features` has."""
    include = frozenset().union(*map(mappings.includable, mappings.rules))
    everything = model.Projection(include, features=frozenset(features))
    sources = [compile_object(mappings, root, everything).source for root in loader.ROOTS if root in mappings.rules]
    texts = [functions_of(source, name) if name else source for source in sources]
    # A company of a part and one of a list are mapped by equal functions.
    return "\n\n".join(dict.fromkeys(text for text in texts if text))


class _Writer:
    """Writes one mapping function and grows its selection set on the way."""

    def __init__(self, mappings: loader.Mappings, projection: model.Projection, source: Source) -> None:
        self._mappings = mappings
        self._projection = projection
        self._source = source
        self._paths = PathReader(mappings.schema)
        self._variables: set[str] = set()  # of the function that is being written

    def compile(self, name: str, needs: tuple[str, ...]) -> CompiledObject:
        self._variables = {CONTEXT}
        record = self._variable(name)
        start = Scope(Cursor(record, selection.Node(self._mappings.rules[name].reads)), None)
        self._source.entry_point(name, record, self._fields(name, start, ()))
        # After the fields, so that needed paths only add to the selection.
        _read_needs(self._paths, needs, start)
        function = self._source.function(self._mappings.transforms)
        node = start.here.node
        text = node.text() or selection.NOTHING
        return CompiledObject(text, node.paths(), node.record(), function, self._source.text())

    def _object(self, name: str, scope: Scope, at: model.Path, clauses: list[str] | None = None) -> str:
        """Return the call of the function that maps one object.

        Where `clauses` is given, the object is an element of a list. What it takes from the object around the list is
        the same for all elements: it is made in a clause of the comprehension, once, and passed as an argument.
        """
        caller = self._variables
        self._variables = {PARENT, CONTEXT}
        record = self._variable(name)
        arguments = {record: scope.here.expression}
        parent = None
        if scope.above is not None:
            arguments[PARENT], parent = scope.above.expression, Cursor(PARENT, scope.above.node)
        shared: dict[str, str] = {}
        bindings = [] if clauses is None else clauses

        # A shared field belongs to the caller's scope: its variable is named there, its parameter in the callee.
        for field in () if clauses is None else self._shared_fields(name, at):
            callee, self._variables = self._variables, caller
            value, variable = self._mapped(name, field, scope, at), self._variable(f"mapped_{field}")
            self._variables = callee
            bindings.append(f"for {variable} in ({value},)")
            shared[field] = self._variable(field)
            arguments[shared[field]] = variable
        fields = self._fields(name, Scope(Cursor(record, scope.here.node), parent), at, shared)
        self._variables = caller
        return self._source.call(name, {**arguments, CONTEXT: CONTEXT}, fields)

    def _fields(self, name: str, scope: Scope, at: model.Path, shared: Mapping[str, str] = NO_FIELDS) -> ObjectSource:
        """Return the source of an object's fields; `shared` are fields whose values are arguments."""
        object_rules = self._mappings.rules[name]
        class_name = name if object_rules.class_ is None else object_rules.class_
        fields = {}
        for field in object_rules.fields:
            if rules.shows(self._projection, object_rules.rule(field), (*at, field)):
                fields[field] = shared.get(field) or self._mapped(name, field, scope, at)
        shows_class = class_name and rules.shows_class(self._projection, at)
        return ObjectSource(class_name if shows_class else None, fields)

    def _shared_fields(self, name: str, at: model.Path) -> Iterator[str]:
        """Yield the fields of a list's elements that are objects mapped from the object around the list."""
        object_rules = self._mappings.rules[name]
        for field in object_rules.fields:
            rule = object_rules.rule(field)
            shown = rules.shows(self._projection, rule, (*at, field))
            if shown and rule.is_ and str(rule.paths).startswith("^"):
                yield field

    def _mapped(self, name: str, field: str, scope: Scope, at: model.Path) -> str:
        """Return the expression of one field. Raises MappingError, naming the rule's file and line."""
        try:
            return self._field(self._mappings.rules[name].rule(field), scope, (*at, field))
        except (paths.PathError, LookupError) as error:
            place = self._mappings.place(name, field)
            raise errors.MappingError(f"{place}: {name}.{field}: {error.args[0]}") from error

    def _field(self, rule: FieldRule, scope: Scope, at: model.Path) -> str:
        if rule.constant:
            return self._source.literal(rule.blank if rule.none is not None else rule.always)
        # Not selected: a field that the plan does not include makes the upstream answer with errors (graphql.md §3.2).
        if rule.feature and rule.feature not in self._projection.features:
            return self._source.literal(rule.blank)
        if rules.emptied(self._projection, at) and _is_list(self._mappings, rule):
            return "[]"
        cut = self._cut(at) if self._projection.cut and _is_list(self._mappings, rule) else ""
        if rule.each or rule.keyed:
            outside = set(self._variables)
            listed = self._list(rule, scope, at)
            self._variables = outside  # those of a comprehension end with it
            return listed + cut
        if rule.is_:
            return self._nested(rule, scope, at)
        return self._value(rule, scope, self._source.literal(rule.blank), cut)

    def _cut(self, at: model.Path) -> str:
        """Return the subscript that cuts a list; "" for none. The path may be client text: it is a constant."""
        # Read from the context at run time: requests that differ only in the bounds of slice[] share a function.
        path = rules.cut(self._projection, at)
        return "" if path is None else self._source.cut(path)

    def _value(self, rule: FieldRule | ComputedValue, scope: Scope, blank: str = "None", cut: str = "") -> str:
        """Return the expression of a scalar, passed through its transform."""
        if isinstance(rule.paths, str):
            read = self._paths.read(rule.paths, scope)
            return read.guarded(_through(self._mappings, rule.through, read.expression) + cut, blank)
        reads = [self._paths.read(text, scope) for text in rule.paths or []]
        arguments = ", ".join(read.guarded(read.expression, "None") for read in reads)
        return _through(self._mappings, rule.through, arguments) + cut

    def _nested(self, rule: FieldRule, scope: Scope, at: model.Path) -> str:
        """Return the expression of one nested object."""
        read = self._paths.read(_single(rule), scope)
        target = _target(self._mappings, rule.is_, read.node)
        above = scope.above if rule.paths == "." else scope.here
        inner = self._object(target, Scope(Cursor(read.expression, read.node), above), at)
        if rule.only:
            inner = f"({inner} if {self._value(rule.only, scope)} else {self._source.literal(rule.blank)})"
        return read.guarded(inner, self._source.literal(rule.blank))

    def _list(self, rule: FieldRule, scope: Scope, at: model.Path) -> str:
        """Return the expression of a list or dict of objects: a comprehension over every list on the path."""
        loops, item = self._loops(rule, scope)
        shared: list[str] = []
        target = _target(self._mappings, rule.target, item.here.node)
        if rule.only:
            loops.append(f"if {self._value(rule.only, item)}")
        if rule.key:
            return self._keyed(rule.key, loops, item, target, at)
        entry = self._object(target, item, at, shared)
        loops[1:1] = shared  # behind the first `for`, which may bind the object that they are mapped from
        clauses = CLAUSE + CLAUSE.join(loops) + END
        listed = self._ordered(rule.order, entry, clauses, item) if rule.order else f"[{CLAUSE}{entry}{clauses}]"
        if rule.or_else:
            listed = f"({listed} or {self._fallback(rule.or_else, target, scope, at)})"
        return listed

    def _keyed(self, key: ComputedValue, loops: list[str], item: Scope, target: str, at: model.Path) -> str:
        """Return the expression of a dict. Keys in show[] or hide[] are text from the client: constants, not source."""
        keys = rules.keys(self._projection, at)
        name = self._variable("key")
        # A clause over a tuple of one binds the key for the clauses behind it.
        loops.append(f"for {name} in ({self._value(key, item)},)")
        if keys.picked is not None:
            loops.append(f"if {name} in {self._source.constant(keys.picked)}")
        if keys.dropped:
            loops.append(f"if {name} not in {self._source.constant(keys.dropped)}")
        default = self._object(target, item, (*at, keys.representative))
        # Keys with a projection of their own: conditional expressions in front of the mapping of all others.
        exceptions = "".join(
            f"{self._object(target, item, (*at, key))} if {name} == {self._source.constant(key)} else "
            for key in keys.separate
        )
        return f"{{{CLAUSE}{name}: {exceptions}{default}{CLAUSE}{CLAUSE.join(loops)}{END}}}"

    def _fallback(self, text: str, target: str, scope: Scope, at: model.Path) -> str:
        """Return a list of the one object that a path leads to; an empty one where it leads to null."""
        read = self._paths.read(text, scope)
        inner = self._object(target, Scope(Cursor(read.expression, read.node), scope.here), at)
        return read.guarded(f"[{inner}]", "[]")

    def _loops(self, rule: FieldRule, scope: Scope) -> tuple[list[str], Scope]:
        """Return the `for` clauses over a path, and the scope of the elements' own paths."""
        route = paths.parse(_single(rule))
        loops: list[str] = []
        here, above = scope.origin(route), scope.above
        for steps in self._paths.up_to_lists(route.steps, here.node):
            read = self._paths.follow(here, steps)
            values = read.expression if self._paths.is_list(steps, here.node) else f"({read.expression},)"
            if rule.through:
                values = _through(self._mappings, rule.through, read.expression)
                read = ReadExpression(read.expression, read.nulls, selection.Node("String"))
            variable = self._variable(_singular(steps[-1].name) if steps else read.node.type_name)
            loops.append(f"for {variable} in {read.guarded(values, '()')}")
            here, above = Cursor(variable, read.node), here
        return loops, Scope(here, above)

    def _ordered(self, order: ComputedValue, entry: str, clauses: str, item: Scope) -> str:
        """Return a list sorted by values of its elements, hidden ones included: a projection changes no order."""
        texts = [order.paths] if isinstance(order.paths, str) else order.paths
        reads = [self._paths.read(text, item) for text in texts]
        values = ", ".join(read.guarded(read.expression, "None") for read in reads)
        ranked = f"[{CLAUSE}({_through(self._mappings, order.through, values)}, {entry}){clauses}]"
        return self._source.in_order(ranked)

    def _variable(self, name: str) -> str:
        """Return a name that neither the function being written nor its globals have."""
        plain = snake_case(name)
        numbered = (f"{plain}_{number}" for number in itertools.count(2))
        taken = {*self._variables, *self._mappings.transforms, *keyword.kwlist, "sorted", "rank"}
        # A transform or keyword of the same name would be shadowed in the function, or not compile.
        variable = next(each for each in itertools.chain((plain,), numbered) if each not in taken)
        self._variables.add(variable)
        return variable


def _is_list(mappings: loader.Mappings, rule: FieldRule) -> bool:
    """Return whether the field is a list that slice[] can cut: a list of objects, or one that a transform returns."""
    transform = mappings.transforms.get(rule.through or "")
    if rule.target or transform is None:
        return rule.each is not None
    return get_origin(get_type_hints(transform).get("return")) is list


def _target(mappings: loader.Mappings, name: str | None, node: selection.Node) -> str:
    """Return the name of the object that maps a value. Raises LookupError if it cannot."""
    target = mappings.rules.get(name or "")
    if name is None or target is None:
        raise LookupError(f"no mapping file describes an object {name!r}")
    if target.reads != node.type_name:
        raise LookupError(f"{name} reads {target.reads}, but the path leads to {node.type_name}")
    return name


def _through(mappings: loader.Mappings, transform: str | None, arguments: str) -> str:
    """Return the call of a transform, or the arguments themselves without one."""
    if transform is None:
        return arguments
    if transform not in mappings.transforms:
        available = ", ".join(sorted(mappings.transforms))
        raise LookupError(f"no transform is called {transform!r}; there are {available}")
    return f"{transform}({arguments})"


def _single(rule: FieldRule) -> str:
    if not isinstance(rule.paths, str):
        raise LookupError("an object is mapped from one path")
    return rule.paths


def _singular(name: str) -> str:
    """Return a variable name for one element of a list, such as `price` of `prices`."""
    name = snake_case(name)
    return f"{name[:-3]}y" if name.endswith("ies") else name.removesuffix("s")


def _read_needs(paths: PathReader, needs: tuple[str, ...], start: Scope) -> None:
    """Select the paths that other code needs of a result. Raises MappingError for one that the schema does not have."""
    try:
        for need in needs:
            paths.read(need, start)
    except LookupError as error:
        raise errors.MappingError(f"schema.graphql: {error.args[0]}; what reads the answers needs it") from error
