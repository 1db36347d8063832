"""Mapping compiler: from mapping rules and schema, for one projection, to selection set, record types and function.

Runs at start and once for every new projection, never per part. The mapping function is ordinary Python source: a `def`
for each v3 object, which is as fast as one written by hand, because no rule is interpreted while a part is mapped. It
consists of names and constants of mapping files only, and of nothing that a client sends. A v3 object is a struct,
encoded in the order of its fields. What a client shows or hides below the fields of the object itself, and slices, are
taken from what the function returns.
"""

import dataclasses
import itertools
import keyword
import linecache
import re
import weakref
from collections.abc import Callable, Iterable
from functools import lru_cache
from operator import itemgetter
from typing import Any

import msgspec

from proxy import errors, model
from proxy.mapping import loader, paths, rules
from proxy.mapping.paths import NOTHING, Node, ReadExpression, Scope
from proxy.mapping.rules import ComputedValue, FieldRule

_NAMES = re.compile(r"(?<![\w.'\"])[A-Za-z_]\w*")  # not attributes, nor the beginnings of texts such as keys
_FILES = itertools.count(1)  # linecache is global to the process, so is the number that makes a file name unique

PARENT = "parent"  # in a mapping function, the object that lists the one being mapped
CONTEXT = "context"
CLAUSE = "\n            "  # before each clause of a comprehension, which stands below its field
END = "\n        "  # before the bracket that closes it
STRUCTS_MAX = 1024  # cached types of v3 objects: projections share most of theirs


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


def compile_object(
    mappings: loader.Mappings, name: str, projection: model.Projection, needs: tuple[str, ...] = ()
) -> CompiledObject:
    """Compile object `name` for a projection, of which only the fields of this object itself are looked at; `needs` are
    paths to select whatever it hides. Raises ConfigError where a rule does not fit the schema, with file and line."""
    # A variable of the name of a transform or a keyword would shadow it, or not compile.
    reserved = frozenset({PARENT, CONTEXT, *mappings.transforms, *keyword.kwlist, "sorted", "rank"})
    writer, of_name = _Writer(mappings, projection, reserved, set(reserved)), mappings.rules[name]
    record = _unique(snake_case(name), writer.variables)
    start = Scope(ReadExpression(record, Node(of_name.reads)), None)
    shown = [field for field, rule in of_name.fields.items() if rules.shows(projection, rule, (field,))]
    # Single fields of the object have no class.
    has_class = not projection.show
    text = writer.function(name, (record, CONTEXT), writer.fields(name, start, shown), has_class=has_class)
    writer.functions[text] = f"map_{snake_case(name)}"
    try:  # after the fields, so that needed paths only add to the selection
        for need in needs:
            paths.read(mappings.schema, need, start)
    except LookupError as error:
        message = f"schema.graphql: {error.args[0]}; what reads the answers needs it"
        raise errors.ConfigError(message) from error
    source = "\n\n".join(f"def {name}{text}" for text, name in reversed(writer.functions.items()))
    node, function = start.here.node, _executed(name, source, writer)
    record_type, is_read = node.record(), "context.sellers" in source
    decode: Callable[[bytes], Any] = msgspec.json.Decoder(record_type).decode
    selection, selected = node.text() or NOTHING, frozenset(node.paths())
    return CompiledObject(selection, selected, record_type, function, source, decode, is_read)


def _executed(name: str, source: str, writer: "_Writer") -> Callable[..., Any]:
    """Compile the source and return its entry point. It is registered in linecache, so that tracebacks, profilers and
    debuggers show its lines, until the function is collected."""
    file = f"<mapping {next(_FILES)} of {name}>"
    # Without builtins the function can reach nothing but transforms, constants and these two names.
    names = {
        **writer.mappings.transforms,
        **dict(zip(writer.structs.values(), writer.structs, strict=True)),
        "sorted": sorted,
        "rank": itemgetter(0),
        "__builtins__": {},
    }
    exec(compile(source, file, "exec"), names)  # noqa: S102 - our own text
    function: Callable[..., Any] = names[f"map_{snake_case(name)}"]
    # None is the time of a file: linecache then checks none, and keeps the entry.
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    # Not at exit: the interpreter is being torn down then, and frees the entry anyway.
    weakref.finalize(function, linecache.cache.pop, file, None).atexit = False
    return function


def source_of(mappings: loader.Mappings, features: Iterable[str], name: str | None = None) -> str:
    """Return the source of the functions that map all objects, or one, with all fields under these features."""
    include = frozenset[str]().union(*(each.hidden for each in mappings.rules.values()))
    everything = model.Projection(include, features=frozenset(features))
    sources = [compile_object(mappings, root, everything).source for root in loader.ROOTS if root in mappings.rules]
    if name:
        head = re.compile(rf"def map_{re.escape(snake_case(name))}(_\d+)?\(")
        functions = (each.rstrip("\n") + "\n" for source in sources for each in source.split("\n\n\n"))
        sources = [each for each in functions if head.match(each)]
    # A company of a part and one of a list are mapped by equal functions.
    return "\n\n".join(dict.fromkeys(sources))


@dataclasses.dataclass(slots=True)
class _Writer:
    """Writes the functions that map one object, which call each other, and grows its selection set on the way.

    `reserved` are the names that no variable has; `variables` these and those of the function that is being written.
    `functions` are by text, so that equal functions are one, callers behind callees; `names` are theirs and those of
    `structs`.
    """

    mappings: loader.Mappings
    projection: model.Projection
    reserved: frozenset[str]
    variables: set[str]
    functions: dict[str, str] = dataclasses.field(default_factory=dict)
    structs: dict[type, str] = dataclasses.field(default_factory=dict)
    names: set[str] = dataclasses.field(default_factory=set)

    def function(self, name: str, parameters: Iterable[str], fields: dict[str, str], *, has_class: bool = True) -> str:
        """Return the text of a function behind its name; it returns one object with these expressions of its fields."""
        class_ = self.mappings.rules[name].class_
        class_name = (name if class_ is None else class_ or None) if has_class else None
        # Encoded with its `__class__` first. Objects have no cycles to be collected.
        tag_field = None if class_name is None else "__class__"
        struct = _struct(name, tuple((each, Any) for each in fields), tag=class_name, tag_field=tag_field, gc=False)
        if struct not in self.structs:
            self.structs[struct] = _unique(name, self.names)
        # By position; comments name the fields, behind the first line of an expression of several.
        lines = ""
        for field, expression in fields.items():
            first, newline, further = expression.partition("\n")
            lines += f"\n        {first}  # {field}\n{further}," if newline else f"\n        {first},  # {field}"
        end = "\n    )" if lines else ")"
        return f"({', '.join(parameters)}):\n    return {self.structs[struct]}({lines}{end}\n"

    def fields(self, name: str, scope: Scope, shown: Iterable[str]) -> dict[str, str]:
        """Return the expressions of fields. Raises ConfigError, naming the rule's file and line."""
        expressions: dict[str, str] = {}
        for field in shown:
            try:
                expressions[field] = self._field(self.mappings.rules[name].fields[field], scope)
            except (paths.PathError, LookupError) as error:
                place = self.mappings.places[name, field]
                raise errors.ConfigError(f"{place}: {name}.{field}: {error.args[0]}") from error
        return expressions

    def _field(self, rule: FieldRule, scope: Scope) -> str:
        """Return the expression of a field, which is blank where the service has null."""
        for through in (rule.through, *(each.through for each in (rule.key, rule.only, rule.order) if each)):
            if through is not None and through not in self.mappings.transforms:
                available = ", ".join(sorted(self.mappings.transforms))
                raise LookupError(f"no transform is called {through!r}; there are {available}")
        blank = repr(rule.empty)  # contract v3-rest.md §3, third column
        if rule.empty is None and (rule.each or rule.keyed):
            blank = "[]" if rule.each else "{}"
        if rule.paths is None:
            return blank if rule.none is not None else repr(rule.always)
        # Not selected: a field that the plan does not include makes the upstream answer with errors (graphql.md §3.2).
        if rule.feature and rule.feature not in self.projection.features:
            return blank
        if rule.target is None:
            return self._value(rule, scope, blank)
        if not isinstance(rule.paths, str):
            raise LookupError("an object is mapped from one path")
        if rule.each or rule.keyed:
            outside = set(self.variables)
            listed = self._list(rule, rule.target, rule.paths, scope)
            self.variables = outside  # those of a comprehension end with it
            return listed
        read = paths.read(self.mappings.schema, rule.paths, scope)
        above = scope.above if rule.paths == "." else scope.here
        inner = self._object(rule.target, Scope(read, above))
        if rule.only:
            inner = f"({inner} if {self._value(rule.only, scope)} else {blank})"
        return read.guarded(inner, blank)

    def _value(self, rule: FieldRule | ComputedValue, scope: Scope, blank: str = "None") -> str:
        if isinstance(rule.paths, str):
            read = paths.read(self.mappings.schema, rule.paths, scope)
            value = f"{rule.through}({read.expression})" if rule.through else read.expression
            return read.guarded(value, blank)
        if not rule.through:
            raise LookupError("a value of several paths needs a function that takes them all: name it in `through`")
        reads = [paths.read(self.mappings.schema, text, scope) for text in rule.paths or ()]
        return f"{rule.through}({', '.join(read.guarded(read.expression, 'None') for read in reads)})"

    def _object(self, name: str, scope: Scope) -> str:
        """Return the call of the function that maps one object, without the parameters that no field uses."""
        of_name, node = self.mappings.rules.get(name), scope.here.node
        if of_name is None:
            raise LookupError(f"no mapping file describes an object {name!r}")
        if of_name.reads != node.type_name:
            raise LookupError(f"{name} reads {of_name.reads}, but the path leads to {node.type_name}")
        caller, self.variables = self.variables, set(self.reserved)
        record = _unique(snake_case(name), self.variables)
        arguments = {record: scope.here.expression, CONTEXT: CONTEXT}
        above = None
        if scope.above is not None:
            arguments[PARENT], above = scope.above.expression, ReadExpression(PARENT, scope.above.node)
        include = self.projection.include
        shown = [field for field, rule in of_name.fields.items() if not rule.include or field in include]
        fields = self.fields(name, Scope(ReadExpression(record, node), above), shown)
        self.variables = caller
        used = {used for expression in fields.values() for used in _NAMES.findall(expression)}
        passed = {parameter: value for parameter, value in arguments.items() if parameter in used}
        text = self.function(name, passed, fields)
        if text not in self.functions:
            self.functions[text] = _unique(f"map_{snake_case(name)}", self.names)
        return f"{self.functions[text]}({', '.join(passed.values())})"

    def _list(self, rule: FieldRule, target: str, path: str, scope: Scope) -> str:
        """Return the expression of a list or dict of objects: a comprehension over every list on the path."""
        loops, item = self._loops(rule, path, scope)
        entry = self._object(target, item)
        if rule.only:
            loops.append(f"if {self._value(rule.only, item)}")
        clauses = CLAUSE + CLAUSE.join(loops) + END
        if rule.key:
            return f"{{{CLAUSE}{self._value(rule.key, item)}: {entry}{clauses}}}"
        listed = f"[{CLAUSE}{entry}{clauses}]"
        if rule.order:
            # By values of the elements, hidden ones included: a projection changes no order.
            ranked = self._value(rule.order, item)
            # sorted() with key=rank compares ranks only: it is stable, and objects cannot be compared.
            pairs = f"[{CLAUSE}({ranked}, {entry}){clauses}]"
            listed = f"[element for _, element in sorted({pairs}, key=rank)]"
        if rule.or_else:  # the list of one other object, or of none where it is null
            read = paths.read(self.mappings.schema, rule.or_else, scope)
            inner = self._object(target, Scope(read, scope.here))
            listed = f"({listed} or {read.guarded(f'[{inner}]', '[]')})"
        return listed

    def _loops(self, rule: FieldRule, path: str, scope: Scope) -> tuple[list[str], Scope]:
        """Return the `for` clauses over a path, and the scope of the elements' own paths."""
        route = paths.parse(path)
        here, above, left, loops = scope.origin(route), scope.above, [*route.steps], list[str]()
        while left or not loops:  # a path without steps (`.`) is a loop over the value itself
            read, is_list, name = here, False, here.node.type_name
            while left and not is_list:
                name = left[0].name
                read, is_list = read.follow(self.mappings.schema, left.pop(0))
            values, node = read.expression if is_list else f"({read.expression},)", read.node
            if rule.through:
                values, node = f"{rule.through}({read.expression})", Node("String")
            # Such as `price` of `prices`.
            many = snake_case(name)
            one = f"{many[:-3]}y" if many.endswith("ies") else many.removesuffix("s")
            variable = _unique(one if route.steps else many, self.variables)
            loops.append(f"for {variable} in {read.guarded(values, '()')}")
            here, above = ReadExpression(variable, node), here
        return loops, Scope(here, above)


def _unique(name: str, taken: set[str]) -> str:
    """Return a name, numbered if it is taken, and take it."""
    numbered = (f"{name}_{number}" for number in itertools.count(2))
    free = next(each for each in itertools.chain((name,), numbered) if each not in taken)
    taken.add(free)
    return free


def snake_case(name: str) -> str:
    """Convert a name such as `PartOffer` to an identifier such as `part_offer`."""
    plain = re.sub(r"\W", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)).lower()
    # no identifier begins with a digit
    return f"_{plain}" if plain[:1].isdigit() else plain


_struct = lru_cache(STRUCTS_MAX)(msgspec.defstruct)
