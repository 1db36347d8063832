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
from proxy.mapping.reading import Around, Cursor, Read, Reader
from proxy.mapping.rules import Feed, FieldRule

Mapper = Callable[[Any, model.Context], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Compiled:
    """What one object needs in one projection: GraphQL fields, the type of one record of the answer, record → v3
    object.

    `fields` are the paths that are asked for, `decode` reads a list of records from JSON that has at least these.
    `source` is the mapping function as text, for people.
    """

    selection: str
    fields: frozenset[str]
    record: Any
    decode: Callable[[bytes], list[Any]]
    map: Mapper
    source: str


def compile_object(
    rulebook: loader.Rulebook, name: str, projection: model.Projection, needs: tuple[str, ...] = ()
) -> Compiled:
    """Compile object `name` for a projection; `needs` are paths to select whatever the projection hides.

    Raises MappingError, naming file and line, where a rule does not fit the schema.
    """
    return _Writer(rulebook, projection).compile(name, needs)


class _Writer:
    """Writes one mapping function and grows its selection on the way."""

    def __init__(self, rulebook: loader.Rulebook, projection: model.Projection) -> None:
        self._book = rulebook
        self._projection = projection
        self._reader = Reader(rulebook.schema)
        self._names = 0
        self._constants: dict[str, Any] = {}

    def compile(self, name: str, needs: tuple[str, ...]) -> Compiled:
        start = Around(Cursor("it", selection.Node(self._book.rules[name].reads)), None)
        body = self._object(name, start, ())
        self._need(needs, start)
        source = f"lambda it, context: {body}"
        names = {
            **self._book.transforms,
            **self._constants,
            "sorted": sorted,
            "rank": itemgetter(0),
            "__builtins__": {},
        }
        function = eval(compile(source, f"<mapping of {name}>", "eval"), names)  # noqa: S307 - our own text
        node = start.here.node
        record = node.record()
        decode = msgspec.json.Decoder(types.GenericAlias(list, (record,))).decode
        return Compiled(node.text() or selection.NOTHING, node.paths(), record, decode, function, source)

    def _need(self, needs: tuple[str, ...], start: Around) -> None:
        try:
            for need in needs:
                self._reader.read(need, start)
        except LookupError as error:
            raise errors.MappingError(f"schema.graphql: {error.args[0]}; what reads the answers needs it") from error

    def _object(self, name: str, around: Around, at: model.Path, hoists: list[str] | None = None) -> str:
        """The dict of one object. Where `hoists` is given, objects made from what is around go there as clauses."""
        rules = self._book.rules[name]
        class_name = name if rules.class_ is None else rules.class_
        entries = (
            [f"'__class__': {class_name!r}"] if class_name and projections.shows_class(self._projection, at) else []
        )
        for field in rules.fields:
            rule = rules.rule(field)
            if not projections.shows(self._projection, rule, (*at, field)):
                continue
            try:
                value = self._field(rule, around, (*at, field))
            except (paths.PathError, LookupError) as error:
                place = self._book.place(name, field)
                raise errors.MappingError(f"{place}: {name}.{field}: {error.args[0]}") from error
            if hoists is not None and rule.is_ and str(rule.paths).startswith("^"):
                hoists.append(f"for {self._name('h')} in ({value},)")
                value = f"h{self._names}"
            entries.append(f"{field!r}: {value}")
        return "{" + ", ".join(entries) + "}"

    def _field(self, rule: FieldRule, around: Around, at: model.Path) -> str:
        if rule.constant:
            return repr(rule.blank if rule.none is not None else rule.always)
        if rule.feature and rule.feature not in self._projection.features:
            return repr(rule.blank)
        if projections.emptied(self._projection, at) and self._is_list(rule):
            return "[]"
        cut = self._cut(at) if self._projection.cut and self._is_list(rule) else ""
        if rule.each or rule.keyed:
            return self._list(rule, around, at) + cut
        return self._one(rule, around, at) if rule.is_ else self._value(rule, around, repr(rule.blank), cut)

    def _cut(self, at: model.Path) -> str:
        """The cut of a list, as text; the path can hold a client's words, so it is a value."""
        path = projections.cut(self._projection, at)
        if path is None:
            return ""
        return f"[context.cuts[{self._constant(path)}]]"

    def _is_list(self, rule: FieldRule) -> bool:
        """Whether there is something to cut: a list of objects, or one that a transform makes."""
        transform = self._book.transforms.get(rule.through or "")
        if rule.target or transform is None:
            return rule.each is not None
        return get_origin(get_type_hints(transform).get("return")) is list

    def _value(self, rule: FieldRule | Feed, around: Around, blank: str = "None", cut: str = "") -> str:
        """A plain value, through its transform."""
        if isinstance(rule.paths, str):
            read = self._reader.read(rule.paths, around)
            return read.guarded(self._through(rule.through, read.expression) + cut, blank)
        reads = [self._reader.read(text, around) for text in rule.paths or []]
        return self._through(rule.through, ", ".join(read.guarded(read.expression, "None") for read in reads)) + cut

    def _one(self, rule: FieldRule, around: Around, at: model.Path) -> str:
        """One nested object."""
        read = self._reader.read(_single(rule), around)
        target = self._target(rule.is_, read.node)
        above = around.above if rule.paths == "." else around.here
        inner = self._object(target, Around(Cursor(read.expression, read.node), above), at)
        if rule.only:
            inner = f"({inner} if {self._value(rule.only, around)} else {rule.blank!r})"
        return read.guarded(inner, repr(rule.blank))

    def _list(self, rule: FieldRule, around: Around, at: model.Path) -> str:
        """A list of objects, or a dict of them: a comprehension over every list on the path."""
        loops, item = self._loops(rule, around)
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
            listed = f"({listed} or {self._stand_in(rule.or_else, target, around, at)})"
        return listed

    def _keyed(self, key: Feed, loops: list[str], item: Around, target: str, at: model.Path) -> str:
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

    def _stand_in(self, text: str, target: str, around: Around, at: model.Path) -> str:
        """A list of the one object a path leads to; empty where it leads to null."""
        read = self._reader.read(text, around)
        inner = self._object(target, Around(Cursor(read.expression, read.node), around.here), at)
        return read.guarded(f"[{inner}]", "[]")

    def _loops(self, rule: FieldRule, around: Around) -> tuple[list[str], Around]:
        """The `for` clauses over a path, and what the elements' own paths start from."""
        route = paths.parse(_single(rule))
        loops: list[str] = []
        here, above = around.origin(route), around.above
        for steps in self._reader.up_to_lists(route.steps, here.node):
            read = self._reader.follow(here, steps)
            values = read.expression if self._reader.is_list(steps, here.node) else f"({read.expression},)"
            if rule.through:
                values = self._through(rule.through, read.expression)
                read = Read(read.expression, read.nulls, selection.Node("String"))
            loops.append(f"for {self._name('v')} in {read.guarded(values, '()')}")
            here, above = Cursor(f"v{self._names}", read.node), here
        return loops, Around(here, above)

    def _ordered(self, order: Feed, entry: str, clauses: str, item: Around) -> str:
        """A list sorted by what its elements hold, whether or not a reply shows it: a projection changes no order."""
        texts = [order.paths] if isinstance(order.paths, str) else order.paths
        reads = [self._reader.read(text, item) for text in texts]
        values = ", ".join(read.guarded(read.expression, "None") for read in reads)
        return f"[e for _, e in sorted([({self._through(order.through, values)}, {entry}) {clauses}], key=rank)]"

    def _target(self, name: str | None, node: selection.Node) -> str:
        target = self._book.rules.get(name or "")
        if name is None or target is None:
            raise LookupError(f"no mapping file describes an object {name!r}")
        if target.reads != node.type_name:
            raise LookupError(f"{name} reads {target.reads}, but the path leads to {node.type_name}")
        return name

    def _through(self, transform: str | None, arguments: str) -> str:
        if transform is None:
            return arguments
        if transform not in self._book.transforms:
            known = ", ".join(sorted(self._book.transforms))
            raise LookupError(f"no transform is called {transform!r}; there are {known}")
        return f"{transform}({arguments})"

    def _name(self, letter: str) -> str:
        self._names += 1
        return f"{letter}{self._names}"


def _single(rule: FieldRule) -> str:
    if not isinstance(rule.paths, str):
        raise LookupError("an object is mapped from one path")
    return rule.paths
