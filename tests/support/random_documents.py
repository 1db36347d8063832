"""Random valid GraphQL documents of any schema, each with the values of its variables.

A document has one or two operations with fragments, inline fragments, aliases, `@include`, `@skip`, `__typename`, and
arguments as literals and variables, some with defaults. `random` may be one of hypothesis (`strategies.randoms`).
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

import graphql

DEPTH = 6  # levels of fields
FIELDS = 40  # after so many fields only what a valid document needs is added
BOOLEAN = graphql.GraphQLNonNull(graphql.GraphQLBoolean)
WORDS = ("", "SN74S74N", "Ω “quoted”", 'a "b" \\ c', "line\nbreak", "3s", "0")
KEYS = ("manufacturer_id", "case_package", "capacitance", "a_b")  # of open objects
Scalar = Callable[[Random], Any]
SCALARS: dict[str, Scalar] = {
    "Int": lambda random: random.choice((0, 1, 3, 10, -1, 2_147_483_647)),
    "Float": lambda random: random.choice((0, 1, 0.5, -2.25, 1e10)),
    "Boolean": lambda random: random.choice((True, False)),
    "String": lambda random: random.choice(WORDS),
    "ID": lambda random: random.choice(("4161", 370)),
    "Map": lambda random: {random.choice(KEYS): random.choice(("1", ["2", 3], {"a_b": None, "min": 0.5}))},
}

# Whether a field may be selected, by type and name; or an optional argument passed, by field and name.
Selects = Callable[[str, str], bool]


class RandomDocument(NamedTuple):
    """`variables` are for the operation `operation_name`; None: the only one."""

    text: str
    variables: dict[str, Any]
    operation_name: str | None


def random_document(
    schema: graphql.GraphQLSchema,
    random: Random,
    *,
    selects: Selects = lambda _type, _field: True,
    passes: Selects = lambda _field, _argument: True,
    scalars: Mapping[str, Scalar] = SCALARS,
    fields: int = FIELDS,
) -> RandomDocument:
    """Return a document with queries that is valid in a schema. Only fields are selected that `selects` accepts, and
    only optional arguments passed that `passes` accepts. `scalars` make values by their types."""
    return _Documents(schema, random, _Choices(selects, passes, {**SCALARS, **scalars}), fields).document()


class _Choices(NamedTuple):
    selects: Selects
    passes: Selects
    scalars: Mapping[str, Scalar]


@dataclass
class _Scope:
    """An operation or fragment in the making: the variables and the fragments that it uses."""

    variables: set[str] = field(default_factory=set)
    fragments: set[str] = field(default_factory=set)


class _Variable(NamedTuple):
    """`not_null`: it is used where null would be an error, though its type may allow null."""

    name: str
    kind: Any
    default: str | None
    not_null: bool

    @property
    def definition(self) -> str:
        return f"${self.name}: {self.kind}" + ("" if self.default is None else f" = {self.default}")


class _Documents:
    """Makes one document. No two fields of it with one response key differ, so that all selections can be merged."""

    def __init__(self, schema: graphql.GraphQLSchema, random: Random, choices: _Choices, fields: int) -> None:
        self._schema = schema
        self._random = random
        self._choices = choices
        self._left = fields
        self._keys: dict[str, tuple[str, str, str]] = {}  # response key to type, field and arguments
        self._variables: dict[str, _Variable] = {}
        # By name: the type, the scope and the text of each fragment that is complete. Only such are spread: no cycles.
        self._fragments: dict[str, tuple[Any, _Scope, str]] = {}
        abstract = filter(graphql.is_abstract_type, schema.type_map.values())
        self._members = {kind.name for several in abstract for kind in schema.get_possible_types(several)}

    def document(self) -> RandomDocument:
        """Return the document. Fragments come before, between and after its operations."""
        names = self._random.choice(([""], ["A"], ["A", "B"]))
        operations = {}
        for name in names:
            scope = _Scope()
            operations[name] = (scope, self._selections(self._schema.query_type, scope, 1))
        texts = [self._operation(name, scope, selections) for name, (scope, selections) in operations.items()]
        texts += [text for _, _, text in self._fragments.values()]
        self._random.shuffle(texts)
        chosen = self._random.choice(names)
        return RandomDocument("\n".join(texts), self._values(operations[chosen][0]), chosen or None)

    def _operation(self, name: str, scope: _Scope, selections: str) -> str:
        definitions = ", ".join(self._variables[used].definition for used in sorted(self._used(scope)))
        if not (name or definitions) and self._chance(2):
            return selections
        return f"query {name}{f'({definitions})' if definitions else ''} {selections}"

    def _used(self, scope: _Scope) -> set[str]:
        """Return the variables that a scope and its fragments use."""
        used = set(scope.variables)
        for name in scope.fragments:
            used |= self._used(self._fragments[name][1])
        return used

    def _values(self, scope: _Scope) -> dict[str, Any]:
        values = {}
        for name in sorted(self._used(scope)):
            variable = self._variables[name]
            optional = variable.default is not None or not isinstance(variable.kind, graphql.GraphQLNonNull)
            if not (optional and self._chance(3)):
                not_null = graphql.GraphQLNonNull(graphql.get_nullable_type(variable.kind))
                values[name] = self._value(not_null if variable.not_null else variable.kind)
        return values

    def _chance(self, one_in: int) -> bool:
        return self._random.randrange(one_in) == one_in - 1  # 0 is what hypothesis prefers

    def _selections(self, parent: Any, scope: _Scope, depth: int) -> str:
        """Return a selection set of fields, fragments and fields of `__typename`."""
        count = 1 if self._left <= 0 else self._random.randint(1, 5)
        return "{ " + " ".join(self._selection(parent, scope, depth) for _ in range(count)) + " }"

    def _selection(self, parent: Any, scope: _Scope, depth: int) -> str:
        kind = self._random.randrange(12)
        if kind > 9 and self._left > 0:
            self._left -= 1
            return self._spread(parent, scope, depth) if kind == 11 else self._inline(parent, scope, depth)
        names = self._names(parent, depth) if kind else []
        if not names:
            return f"{self._key(parent, '__typename', '')}{self._directives(scope)}"
        return self._field(parent, self._random.choice(names), scope, depth)

    def _inline(self, parent: Any, scope: _Scope, depth: int) -> str:
        if self._chance(3):
            return f"...{self._directives(scope)} {self._selections(parent, scope, depth)}"
        condition = self._possible(parent)
        inner = self._selections(self._schema.type_map[condition], scope, depth)
        return f"... on {condition}{self._directives(scope)} {inner}"

    def _possible(self, parent: Any) -> str:
        """Return the name of a type that a fragment within `parent` may be on."""
        if graphql.is_abstract_type(parent):
            return str(self._random.choice([parent, *self._schema.get_possible_types(parent)]).name)
        return str(parent.name)

    def _names(self, parent: Any, depth: int) -> list[str]:
        """Return the names of the fields that may be selected: at the last level, and at the end, only leaves."""
        ends = depth >= DEPTH or self._left <= 0
        return [
            name
            for name, found in getattr(parent, "fields", {}).items()
            if self._choices.selects(parent.name, name)
            and (not ends or graphql.is_leaf_type(graphql.get_named_type(found.type)))
        ]

    def _field(self, parent: Any, name: str, scope: _Scope, depth: int) -> str:
        self._left -= 1
        definition = parent.fields[name]
        named = graphql.get_named_type(definition.type)
        arguments = self._arguments(name, definition.args, scope)
        text = self._key(parent, name, arguments) + arguments + self._directives(scope)
        return text if graphql.is_leaf_type(named) else f"{text} {self._selections(named, scope, depth + 1)}"

    def _key(self, parent: Any, name: str, arguments: str) -> str:
        """Return a field's name, with an alias if its response key would stand for two fields; at times without need,
        then also with the name of another field."""
        candidates = [name]
        if self._chance(5):
            candidates.insert(0, self._random.choice(["alias", *getattr(parent, "fields", {})]))
        # Fields of equal names may have different types in fragments on different types, beside each other.
        selected = (parent.name if parent.name in self._members else "", name, arguments)
        for key in [*candidates, *(f"{name.strip('_')}_{n}" for n in range(len(self._keys) + 1))]:
            if self._keys.setdefault(key, selected) == selected:
                break
        return name if key == name else f"{key}: {name}"

    def _spread(self, parent: Any, scope: _Scope, depth: int) -> str:
        usable = [name for name, (kind, _, _) in self._fragments.items() if kind is parent]
        if usable and self._chance(2):
            name = self._random.choice(usable)
        else:
            condition = self._schema.type_map[self._possible(parent)]
            inner = _Scope()
            selections = self._selections(condition, inner, depth)
            name = f"F{len(self._fragments)}"
            self._fragments[name] = (condition, inner, f"fragment {name} on {condition.name} {selections}")
        scope.fragments.add(name)
        return f"...{name}{self._directives(scope)}"

    def _directives(self, scope: _Scope) -> str:
        if not self._chance(6):
            return ""
        names = self._random.choice((["include"], ["skip"], ["include", "skip"]))
        return "".join(f" @{name}(if: {self._input(BOOLEAN, False, scope)})" for name in names)

    def _arguments(self, field: str, definitions: dict[str, graphql.GraphQLArgument], scope: _Scope) -> str:
        written = [
            f"{name}: {self._input(definition.type, definition.default is not None, scope)}"
            for name, definition in definitions.items()
            if graphql.is_required_argument(definition) or (self._choices.passes(field, name) and self._chance(3))
        ]
        return f"({', '.join(written)})" if written else ""

    def _input(self, kind: Any, has_default: bool, scope: _Scope) -> str:
        """Return a literal of a type, or a variable; also within lists and input objects."""
        if self._chance(3):
            return self._variable(kind, has_default, scope)
        if isinstance(kind, graphql.GraphQLNonNull):
            kind = kind.of_type
        elif self._chance(8):
            return "null"
        if isinstance(kind, graphql.GraphQLList):
            if self._chance(4):  # a single value stands for a list with it
                return self._literal(self._value(graphql.GraphQLNonNull(graphql.get_nullable_type(kind.of_type))), kind)
            return f"[{', '.join(self._input(kind.of_type, False, scope) for _ in range(self._random.randrange(3)))}]"
        if isinstance(kind, graphql.GraphQLInputObjectType):
            written = [
                f"{name}: {self._input(kind.fields[name].type, kind.fields[name].default is not None, scope)}"
                for name in self._input_fields(kind)
            ]
            return f"{{{', '.join(written)}}}"
        return self._literal(self._value(graphql.GraphQLNonNull(kind)), kind)

    def _variable(self, kind: Any, has_default: bool, scope: _Scope) -> str:
        """Return a variable for a place of a type: one that the document has already, or a new one."""
        fitting = [name for name, variable in self._variables.items() if str(variable.kind) == str(kind)]
        if fitting and self._chance(2):
            name = self._random.choice(fitting)
        else:
            name = f"{self._random.choice(('v', 'some_name', 'mpn'))}{len(self._variables)}"
            default, not_null = None, isinstance(kind, graphql.GraphQLNonNull)
            if self._chance(3):
                default = self._literal(self._value(kind), kind)
            if not_null:
                # A variable may be nullable at a place that is not, if one of both has a default that is not null.
                if (default is not None or has_default) and self._chance(2):
                    kind = kind.of_type
            elif default is None and self._chance(3):
                kind = graphql.GraphQLNonNull(kind)
            self._variables[name] = _Variable(name, kind, default, not_null)
        scope.variables.add(name)
        return f"${name}"

    def _input_fields(self, kind: graphql.GraphQLInputObjectType) -> list[str]:
        return [
            name
            for name, definition in kind.fields.items()
            if graphql.is_required_input_field(definition) or self._chance(3)
        ]

    def _value(self, kind: Any) -> Any:
        """Return a value of an input type as JSON has it."""
        if isinstance(kind, graphql.GraphQLNonNull):
            kind = kind.of_type
        elif self._chance(8):
            return None
        if isinstance(kind, graphql.GraphQLList):
            if self._chance(4):
                return self._value(graphql.GraphQLNonNull(graphql.get_nullable_type(kind.of_type)))
            return [self._value(kind.of_type) for _ in range(self._random.randrange(3))]
        if isinstance(kind, graphql.GraphQLInputObjectType):
            return {name: self._value(kind.fields[name].type) for name in self._input_fields(kind)}
        if isinstance(kind, graphql.GraphQLEnumType):
            return self._random.choice([*kind.values])
        return self._choices.scalars.get(kind.name, self._choices.scalars["String"])(self._random)

    def _literal(self, value: Any, kind: Any) -> str:
        """Return a value as it is written in a document."""
        if isinstance(value, dict):
            fields = getattr(graphql.get_named_type(kind), "fields", {})
            written = (
                f"{name}: {self._literal(inner, getattr(fields.get(name), 'type', None))}"
                for name, inner in value.items()
            )
            return f"{{{', '.join(written)}}}"
        if isinstance(value, list):
            return f"[{', '.join(self._literal(item, kind) for item in value)}]"
        if isinstance(value, str) and kind is not None and graphql.is_enum_type(graphql.get_named_type(kind)):
            return value
        return json.dumps(value, ensure_ascii=False)
