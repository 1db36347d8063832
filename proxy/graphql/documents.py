"""Documents of clients: parsed, validated and measured once by their text, before anything is sent or paid for."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from operator import itemgetter
from typing import Any, NamedTuple

import cachetools
import graphql
from graphql.execution.values import VariableValues, get_variable_values
from graphql.language import ast

# Of documents that are remembered; a program has a handful. Parsed they take 80 times as much.
KEPT_CHARACTERS = 262_144
KEPT_TEXT_MIN, KEPT_TEXT_MAX = 512, 8_192  # characters that a short document counts for, and a remembered one has
TEXT_MAX = 100_000  # characters of a document
# Within these bounds a document takes less than 50 ms of CPU, in which nobody else is served (bench/steps.py).
TOKENS_MAX = 2_000  # most have less than 200
DEPTH_MAX = 24  # of fields, the root fields included
ROOTS_MAX = 20  # root fields of an operation, aliases included
FIELDS_MAX = 2_000  # fields and fragments, with those of fragments wherever they are spread, and where they are defined
REPEATS_MAX = 5_000  # pairs with the same key in the same place, each of which validation compares
DEFINITIONS_MAX = 100  # operations and fragments
# Fields of operations with introspection, where each has a value in each type, field and argument of the schema, and
# pairs of them with the same name in the same place.
INTROSPECTED_MAX, INTROSPECTED_REPEATS_MAX = 250, 20  # the usual query has 239 and none
VALUES_MAX = 2_000  # of variables; 100 queries, which are the most of an operation, have some 500

SCHEMA = frozenset({"__schema", "__type"})
INTROSPECTION = SCHEMA | {"__typename"}
SUPPLY = "sup"  # begins the root fields for parts and their lists,
OWN = ("des", "adm")  # and these those for design data and the organization of the caller
ERRORS_MAX = 20  # of a response
_WORD = re.compile(r"\w+")

Operations = dict[str | None, ast.OperationDefinitionNode]
Fragments = dict[str, ast.FragmentDefinitionNode]
Place = tuple[str, ...]  # the keys of a field and of those around it; below SCHEMA their names


@lru_cache(maxsize=4)
def schema(site: str = "octopart") -> graphql.GraphQLSchema:
    """Return the complete supply schema, whose parts link to a catalog site (`upstream.site`). Takes some 60 ms."""
    text = (resources.files(__package__) / "supply.graphql").read_text(encoding="utf-8")
    return graphql.build_schema(text.replace("octopartUrl:", f"{site}Url:"), assume_valid=True)


class InvalidDocumentError(Exception):
    """A document that cannot be executed; `errors` are those of the response."""

    def __init__(self, *errors: graphql.GraphQLError) -> None:
        super().__init__("; ".join(error.message for error in errors))
        self.errors = errors


@dataclass(frozen=True, slots=True, eq=False)
class ClientDocument:
    """Valid document: its operations by name, and its fragments. `is_passed_on`: it is the caller's own, not validated,
    and cannot be executed here. `client_names` are those that `__typename` and errors show instead of the schema's.
    `introspected` is the schema that introspection shows, if not the one that executes it. `sent` are the operations as
    the client sent them, where these have other names."""

    operations: Operations
    fragments: Fragments
    is_passed_on: bool = False
    client_names: Mapping[str, str] = field(default_factory=dict)
    introspected: graphql.GraphQLSchema | None = None
    sent: Operations = field(default_factory=dict)

    def message(self, text: str) -> str:
        """Return the message of an error with the names that the client knows."""
        return _WORD.sub(lambda word: self.client_names.get(word[0], word[0]), text) if self.client_names else text


class DocumentRequest(NamedTuple):
    """Request of a client, whose document is read already."""

    document: ClientDocument
    operation_name: str | None = None
    variables: Mapping[str, Any] = {}

    @property
    def operation(self) -> ast.OperationDefinitionNode:
        """The operation with its name; without one, or for "", the only one. Raises InvalidDocumentError."""
        name, operations = self.operation_name, self.document.operations
        if not name and len(operations) == 1:
            return next(iter(operations.values()))
        if name and name in operations:
            return operations[name]
        wrong = "Must provide operation name if query contains multiple operations."
        raise InvalidDocumentError(graphql.GraphQLError(f"Unknown operation named '{name[:60]}'." if name else wrong))


@dataclass(eq=False, slots=True)
class DocumentReader:
    """Reads documents, once by their text. What is passed on, and checked by the upstream, is not validated."""

    schema: graphql.GraphQLSchema
    _known: cachetools.LRUCache[str, tuple[ClientDocument, int]] = field(
        default_factory=lambda: cachetools.LRUCache(KEPT_CHARACTERS, itemgetter(1)), init=False
    )

    def request(self, text: str, operation_name: str | None, variables: Mapping[str, Any]) -> DocumentRequest:
        """Parse, measure and validate the document of a request. Raises InvalidDocumentError."""
        known = self._known.get(text)
        if known is None:
            if len(text) > TEXT_MAX:
                raise _too_much("The document has more characters", f"{TEXT_MAX}")
            try:
                parsed = graphql.parse(text, max_tokens=TOKENS_MAX)
            except graphql.GraphQLSyntaxError as error:
                raise InvalidDocumentError(error) from error
            except RecursionError as error:
                raise InvalidDocumentError(graphql.GraphQLError("The document is nested too deeply.")) from error
            known = self._read(parsed), max(len(text), KEPT_TEXT_MIN)
            if len(text) <= KEPT_TEXT_MAX:
                self._known[text] = known
        return DocumentRequest(known[0], operation_name, variables)

    def _read(self, node: ast.DocumentNode) -> ClientDocument:
        document = measured(node)
        if not document.is_passed_on and (problems := graphql.validate(self.schema, node, max_errors=ERRORS_MAX)):
            raise InvalidDocumentError(*problems)
        return document


@dataclass(slots=True)
class Size:
    """Size of a document."""

    fields: int = 0
    repeats: int = 0
    introspects: bool = False

    def add(self, selections: ast.SelectionSetNode, fragments: Fragments) -> list[str]:
        """Add an operation or a fragment; return the names of its first fields. Raises InvalidDocumentError."""
        places, roots = Counter[Place](), []
        for place, name in _fields(selections, fragments, (), ()):
            self.fields += 1
            self.repeats += places[place]
            if self.fields > FIELDS_MAX:
                raise _too_much("The document has more fields, with those of its fragments", f"{FIELDS_MAX}")
            if self.repeats > REPEATS_MAX:
                raise _too_much("The document selects the same fields more often", f"{REPEATS_MAX} pairs of them")
            places[place] += 1
            self.introspects = self.introspects or name in SCHEMA
            roots += [name] if len(place) == 1 and name else []
        return roots


def measured(node: ast.DocumentNode) -> ClientDocument:
    """Return a document that is not validated yet. Raises InvalidDocumentError for one that would take long to validate
    or to answer, or mixes supply data with what is passed on."""
    found = [each for each in node.definitions if isinstance(each, ast.OperationDefinitionNode)]
    fragments = {each.name.value: each for each in node.definitions if isinstance(each, ast.FragmentDefinitionNode)}
    if not found:
        raise InvalidDocumentError(graphql.GraphQLError("The document has no operation."))
    if len(node.definitions) > DEFINITIONS_MAX:  # each fragment that spreads the next one is a call in a call
        raise _too_much("The document has more operations and fragments", f"{DEFINITIONS_MAX}")
    is_passed_on, supply, size = False, None, Size()
    for operation in found:
        roots = size.add(operation.selection_set, fragments)
        if len(roots) > ROOTS_MAX:
            raise _too_much("The document has more root fields", f"{ROOTS_MAX}; send several requests")
        supply = supply or next((name for name in roots if name.startswith(SUPPLY)), None)
        is_query = operation.operation is graphql.OperationType.QUERY
        is_passed_on = is_passed_on or not is_query or any(name.startswith(OWN) for name in roots)
    if size.introspects and (size.fields > INTROSPECTED_MAX or size.repeats > INTROSPECTED_REPEATS_MAX):
        raise _too_much("A document with __schema or __type has more fields", f"{INTROSPECTED_MAX}, none twice")
    for fragment in fragments.values():
        size.add(fragment.selection_set, fragments)
    if is_passed_on and supply:
        message = f"{supply} is charged to the API key, the other fields are your own data: send them in two requests."
        raise InvalidDocumentError(graphql.GraphQLError(message))
    operations: Operations = {each.name.value if each.name else None: each for each in found}
    return ClientDocument(operations, fragments, is_passed_on)


def coerced(
    schema: graphql.GraphQLSchema, operation: ast.OperationDefinitionNode, variables: Mapping[str, Any]
) -> VariableValues:
    """Return the coerced variables of an operation. Raises InvalidDocumentError for wrong values, and for too many."""
    number, left = 0, list[Any]([variables])
    while left:
        value = left.pop()
        inside = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
        number += len(inside)
        if number > VALUES_MAX:
            raise _too_much("The variables have more values", f"{VALUES_MAX}; send several requests")
        left += inside
    declared = operation.variable_definitions or ()
    values = get_variable_values(schema, declared, dict(variables), max_errors=ERRORS_MAX)
    if isinstance(values, list):
        raise InvalidDocumentError(*values)
    return values


def _fields(
    selections: ast.SelectionSetNode, fragments: Fragments, above: Place, spread: tuple[str, ...]
) -> Iterator[tuple[Place, str]]:
    """Yield the place and name of each field, and "" as key and name of each fragment: those that spread each other may
    have no field at all. Raises InvalidDocumentError beyond DEPTH_MAX."""
    if len(above) >= DEPTH_MAX:
        raise _too_much("The document is nested deeper", f"{DEPTH_MAX} fields")
    for node in selections.selections:
        if isinstance(node, ast.FieldNode):
            is_schema = (above or (node.name.value,))[0] in SCHEMA
            place = (*above, (node.name if is_schema else node.alias or node.name).value)
            yield place, node.name.value
            if node.selection_set is not None:
                yield from _fields(node.selection_set, fragments, place, spread)
            continue
        yield (*above, ""), ""
        if isinstance(node, ast.InlineFragmentNode):
            yield from _fields(node.selection_set, fragments, above, spread)
        elif isinstance(node, ast.FragmentSpreadNode):
            name = node.name.value
            if name in fragments and name not in spread:  # else validation says what is wrong
                yield from _fields(fragments[name].selection_set, fragments, above, (*spread, name))


def _too_much(what: str, limit: str) -> InvalidDocumentError:
    return InvalidDocumentError(graphql.GraphQLError(f"{what} than allowed: the limit is {limit}."))
