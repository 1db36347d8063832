"""Mapping compiler: from mapping rules and schema, for one projection, to selection set, record types and function.

Runs at start and once for every new projection, never per part. The mapping function is ordinary Python source
(source.py), which is as fast as one written by hand: no rule is interpreted while a part is mapped. What a client shows
or hides below the fields of the object itself, and slices, are taken from what the function returns.
"""

import dataclasses
import itertools
import keyword
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from proxy import errors, model
from proxy.mapping import loader, paths, rules, selection
from proxy.mapping.paths import Cursor, PathReader, ReadExpression, Scope
from proxy.mapping.rules import ComputedValue, FieldRule
from proxy.mapping.source import CLAUSE, CONTEXT, END, ObjectSource, Source, functions_of, snake_case

PARENT = "parent"  # in a mapping function, the object that lists the one being mapped


@dataclasses.dataclass(frozen=True, slots=True)
class CompiledObject:
    """Compiled mapping of one object in one projection: selection set, record type, and function from record to v3
    object, which msgspec encodes.

    `fields` are the selected paths; `decode` reads a record of the type `record` from JSON that has at least these.
    `source` is the text of the mapping function, for documentation; `reads_sellers` says that it reads the sellers of
    the context.
    """

    selection: str
    fields: frozenset[str]
    record: Any
    map: Callable[[Any, model.MappingContext], Any]
    source: str
    decode: Callable[[bytes], Any]
    reads_sellers: bool

    def shown_in(self, projection: model.Projection) -> "CompiledObject":
        """Return the mapping for a projection that differs below the fields of the object, or in its slices."""

        def map_shown(record: Any, context: model.MappingContext) -> Any:
            return rules.projected(msgspec.to_builtins(self.map(record, context)), projection)

        return dataclasses.replace(self, map=map_shown)


def compile_object(
    mappings: loader.Mappings, name: str, projection: model.Projection, needs: tuple[str, ...] = ()
) -> CompiledObject:
    """Compile object `name` for a projection, of which only the fields of this object itself are looked at; `needs` are
    paths to select whatever it hides.

    Raises ConfigError, naming file and line, where a rule does not fit the schema.
    """
    return _Writer(mappings, projection, name).compile(name, needs)


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

    def __init__(self, mappings: loader.Mappings, projection: model.Projection, name: str) -> None:
        self._mappings = mappings
        self._projection = projection
        self._source = Source(name)
        self._paths = PathReader(mappings.schema)
        self._variables: set[str] = set()  # of the function that is being written

    def compile(self, name: str, needs: tuple[str, ...]) -> CompiledObject:
        self._variables = {CONTEXT}
        record, of_name = self._variable(name), self._mappings.rules[name]
        start = Scope(Cursor(record, selection.Node(of_name.reads)), None)
        shown = [field for field in of_name.fields if rules.shows(self._projection, of_name.rule(field), (field,))]
        fields = self._fields(name, start, shown)
        if self._projection.show:  # single fields of the object
            fields = fields._replace(class_name=None)
        self._source.add(name, (record, CONTEXT), fields)
        try:  # after the fields, so that needed paths only add to the selection
            for need in needs:
                self._paths.read(need, start)
        except LookupError as error:
            message = f"schema.graphql: {error.args[0]}; what reads the answers needs it"
            raise errors.ConfigError(message) from error
        node, function = start.here.node, self._source.function(self._mappings.transforms)
        text, record_type, source = node.text() or selection.NOTHING, node.record(), self._source.text()
        decode: Callable[[bytes], Any] = msgspec.json.Decoder(record_type).decode
        reads_sellers = "context.sellers" in source
        return CompiledObject(text, node.paths(), record_type, function, source, decode, reads_sellers)

    def _object(self, name: str, scope: Scope) -> str:
        """Return the call of the function that maps one object."""
        caller = self._variables
        self._variables = {PARENT, CONTEXT}
        record = self._variable(name)
        arguments = {record: scope.here.expression, CONTEXT: CONTEXT}
        above = None
        if scope.above is not None:
            arguments[PARENT], above = scope.above.expression, Cursor(PARENT, scope.above.node)
        of_name, include = self._mappings.rules[name], self._projection.include
        shown = [field for field in of_name.fields if not of_name.rule(field).include or field in include]
        fields = self._fields(name, Scope(Cursor(record, scope.here.node), above), shown)
        self._variables = caller
        return self._source.call(name, arguments, fields)

    def _fields(self, name: str, scope: Scope, shown: Iterable[str]) -> ObjectSource:
        of_name = self._mappings.rules[name]
        class_name = name if of_name.class_ is None else of_name.class_
        return ObjectSource(class_name or None, {field: self._mapped(name, field, scope) for field in shown})

    def _mapped(self, name: str, field: str, scope: Scope) -> str:
        """Return the expression of one field. Raises ConfigError, naming the rule's file and line."""
        try:
            return self._field(self._mappings.rules[name].rule(field), scope)
        except (paths.PathError, LookupError) as error:
            place = self._mappings.places[name, field]
            raise errors.ConfigError(f"{place}: {name}.{field}: {error.args[0]}") from error

    def _field(self, rule: FieldRule, scope: Scope) -> str:
        if rule.constant:
            return repr(rule.blank if rule.none is not None else rule.always)
        # Not selected: a field that the plan does not include makes the upstream answer with errors (graphql.md §3.2).
        if rule.feature and rule.feature not in self._projection.features:
            return repr(rule.blank)
        if rule.each or rule.keyed:
            outside = set(self._variables)
            listed = self._list(rule, scope)
            self._variables = outside  # those of a comprehension end with it
            return listed
        if rule.is_:
            return self._nested(rule, scope)
        return self._value(rule, scope, repr(rule.blank))

    def _value(self, rule: FieldRule | ComputedValue, scope: Scope, blank: str = "None") -> str:
        """Return the expression of a scalar, passed through its transform."""
        if isinstance(rule.paths, str):
            read = self._paths.read(rule.paths, scope)
            return read.guarded(self._through(rule.through, read.expression), blank)
        return self._through(rule.through, self._arguments(rule.paths or [], scope))

    def _arguments(self, texts: Iterable[str], scope: Scope) -> str:
        reads = [self._paths.read(text, scope) for text in texts]
        return ", ".join(read.guarded(read.expression, "None") for read in reads)

    def _nested(self, rule: FieldRule, scope: Scope) -> str:
        """Return the expression of one nested object."""
        read = self._paths.read(_single(rule), scope)
        target = self._target(rule.is_, read.node)
        above = scope.above if rule.paths == "." else scope.here
        inner = self._object(target, Scope(Cursor(read.expression, read.node), above))
        if rule.only:
            inner = f"({inner} if {self._value(rule.only, scope)} else {rule.blank!r})"
        return read.guarded(inner, repr(rule.blank))

    def _list(self, rule: FieldRule, scope: Scope) -> str:
        """Return the expression of a list or dict of objects: a comprehension over every list on the path."""
        loops, item = self._loops(rule, scope)
        target = self._target(rule.target, item.here.node)
        if rule.only:
            loops.append(f"if {self._value(rule.only, item)}")
        entry = self._object(target, item)
        clauses = CLAUSE + CLAUSE.join(loops) + END
        if rule.key:
            return f"{{{CLAUSE}{self._value(rule.key, item)}: {entry}{clauses}}}"
        listed = f"[{CLAUSE}{entry}{clauses}]"
        if rule.order:
            # By values of the elements, hidden ones included: a projection changes no order.
            texts = [rule.order.paths] if isinstance(rule.order.paths, str) else rule.order.paths
            ranked = self._through(rule.order.through, self._arguments(texts, item))
            # sorted() with key=rank compares ranks only: it is stable, and objects cannot be compared.
            pairs = f"[{CLAUSE}({ranked}, {entry}){clauses}]"
            listed = f"[element for _, element in sorted({pairs}, key=rank)]"
        if rule.or_else:  # the list of one other object, or of none where it is null
            read = self._paths.read(rule.or_else, scope)
            inner = self._object(target, Scope(Cursor(read.expression, read.node), scope.here))
            listed = f"({listed} or {read.guarded(f'[{inner}]', '[]')})"
        return listed

    def _loops(self, rule: FieldRule, scope: Scope) -> tuple[list[str], Scope]:
        """Return the `for` clauses over a path, and the scope of the elements' own paths."""
        route = paths.parse(_single(rule))
        loops: list[str] = []
        here, above = scope.origin(route), scope.above
        for steps in self._paths.up_to_lists(route.steps, here.node):
            read = self._paths.follow(here, steps)
            values = read.expression if self._paths.is_list(steps, here.node) else f"({read.expression},)"
            if rule.through:
                values = self._through(rule.through, read.expression)
                read = ReadExpression(read.expression, read.nulls, selection.Node("String"))
            variable = self._variable(_singular(steps[-1].name) if steps else read.node.type_name)
            loops.append(f"for {variable} in {read.guarded(values, '()')}")
            here, above = Cursor(variable, read.node), here
        return loops, Scope(here, above)

    def _target(self, name: str | None, node: selection.Node) -> str:
        """Return the name of the object that maps a value. Raises LookupError if it cannot."""
        target = self._mappings.rules.get(name or "")
        if name is None or target is None:
            raise LookupError(f"no mapping file describes an object {name!r}")
        if target.reads != node.type_name:
            raise LookupError(f"{name} reads {target.reads}, but the path leads to {node.type_name}")
        return name

    def _through(self, transform: str | None, arguments: str) -> str:
        """Return the call of a transform, or the arguments themselves without one."""
        if transform is None:
            return arguments
        if transform not in self._mappings.transforms:
            available = ", ".join(sorted(self._mappings.transforms))
            raise LookupError(f"no transform is called {transform!r}; there are {available}")
        return f"{transform}({arguments})"

    def _variable(self, name: str) -> str:
        """Return a name that neither the function being written nor its globals have."""
        plain = snake_case(name)
        numbered = (f"{plain}_{number}" for number in itertools.count(2))
        taken = {*self._variables, *self._mappings.transforms, *keyword.kwlist, "sorted", "rank"}
        # A transform or keyword of the same name would be shadowed in the function, or not compile.
        variable = next(each for each in itertools.chain((plain,), numbered) if each not in taken)
        self._variables.add(variable)
        return variable


def _single(rule: FieldRule) -> str:
    if not isinstance(rule.paths, str):
        raise LookupError("an object is mapped from one path")
    return rule.paths


def _singular(name: str) -> str:
    """Return a variable name for one element of a list, such as `price` of `prices`."""
    name = snake_case(name)
    return f"{name[:-3]}y" if name.endswith("ies") else name.removesuffix("s")
