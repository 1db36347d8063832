"""Documents of clients: parsed, validated and measured once by their text, before anything is sent or paid for."""

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any, Generic, NamedTuple, TypeVar

import cachetools
import graphql
from graphql.language import ast

KEPT_BYTES = 262_144  # of documents that are remembered; a program has a handful. Parsed they take 80 times as much
KEPT_TEXT_MIN, KEPT_TEXT_MAX = 512, 8_192  # characters that a short document counts for, and a remembered one has
TEXT_MAX = 100_000  # characters of a document
TOKENS_MAX = 10_000
DEPTH_MAX = 24  # of fields, the root fields included
ROOTS_MAX = 20  # root fields, aliases included
FIELDS_MAX = 2_000  # fields and fragments, with those of fragments wherever they are spread
FRAGMENTS_MAX = 100  # that a document defines
# The same of a document with introspection, where a field has a value in each type, field and argument of the schema.
INTROSPECTED_MAX = 250  # the usual query has 239

SCHEMA = frozenset({"__schema", "__type"})
INTROSPECTION = SCHEMA | {"__typename"}
SUPPLY = "sup"  # begins the root fields for parts and their lists,
OWN = ("des", "adm")  # and these those for design data and the organization of the caller
ERRORS_MAX = 20  # of a response
SAME_NAMES: Mapping[str, str] = {}
_WORD = re.compile(r"\w+")

T = TypeVar("T")


class InvalidDocumentError(Exception):
    """A document that cannot be executed; `errors` are those of the response."""

    def __init__(self, *errors: graphql.GraphQLError) -> None:
        super().__init__("; ".join(error.message for error in errors))
        self.errors = errors


@dataclass(frozen=True, slots=True, eq=False)
class ClientDocument:
    """Valid document: its operations by name, and its fragments. `client_names` are those that `__typename` and errors
    show instead of the schema's; `is_passed_on`: it is the caller's own, not validated, and cannot be executed here.
    `introspected` is the schema that introspection shows, if not the one that executes it. `shapes` are the variables
    that change what an operation selects, by its name, once they are known. `length` is that of its text.
    `sent` are the operations as the client sent them, where these have other names."""

    operations: dict[str | None, ast.OperationDefinitionNode]
    fragments: dict[str, ast.FragmentDefinitionNode]
    client_names: Mapping[str, str]
    length: int
    is_passed_on: bool = False
    introspected: graphql.GraphQLSchema | None = None
    sent: Mapping[str | None, ast.OperationDefinitionNode] = field(default_factory=dict)
    shapes: dict[str | None, list[str]] = field(default_factory=dict)

    def operation(self, name: str | None) -> ast.OperationDefinitionNode:
        """Return the operation with a name; without one, or for "", the only one. Raises InvalidDocumentError."""
        if not name and len(self.operations) == 1:
            return next(iter(self.operations.values()))
        found = self.operations.get(name) if name else None
        if found is None:
            wrong = "Must provide operation name if query contains multiple operations."
            raise InvalidDocumentError(
                graphql.GraphQLError(wrong if not name else f"Unknown operation named '{name[:60]}'.")
            )
        return found

    def message(self, text: str) -> str:
        """Return the message of an error with the names that the client knows."""
        return _WORD.sub(lambda word: self.client_names.get(word[0], word[0]), text) if self.client_names else text


class DocumentRequest(NamedTuple):
    """Request of a client, whose document is read already."""

    document: ClientDocument
    operation_name: str | None = None
    variables: Mapping[str, Any] = {}


class KeptOfDocuments(Generic[T]):
    """What has been made of documents. Beyond KEPT_BYTES of their text the least recently used is dropped; of a long
    document nothing is kept."""

    def __init__(self) -> None:
        self._kept: cachetools.LRUCache[Hashable, tuple[T, int]] = cachetools.LRUCache(
            KEPT_BYTES, getsizeof=itemgetter(1)
        )

    def get(self, key: Hashable) -> T | None:
        kept = self._kept.get(key)
        return None if kept is None else kept[0]

    def keep(self, key: Hashable, value: T, size: int) -> None:
        """Keep a value of a document that has `size` characters, with those of its variables."""
        if size <= KEPT_TEXT_MAX:
            self._kept[key] = value, max(size, KEPT_TEXT_MIN)


class DocumentReader:
    """Reads documents, once by their text. What is passed on, and checked by the upstream, is not validated."""

    def __init__(self, schema: graphql.GraphQLSchema) -> None:
        self.schema = schema
        self._known: KeptOfDocuments[ClientDocument] = KeptOfDocuments()

    def read(self, text: str) -> ClientDocument:
        """Parse, measure and validate a document. Raises InvalidDocumentError."""
        document = self._known.get(text)
        if document is None:
            document = self.validated(parse(text))
            self._known.keep(text, document, document.length)
        return document

    def validated(self, node: ast.DocumentNode, client_names: Mapping[str, str] = SAME_NAMES) -> ClientDocument:
        """Measure and validate a parsed document. Raises InvalidDocumentError."""
        document = measured(node, client_names)
        if not document.is_passed_on and (problems := graphql.validate(self.schema, node, max_errors=ERRORS_MAX)):
            raise InvalidDocumentError(*problems)
        return document


def measured(node: ast.DocumentNode, client_names: Mapping[str, str] = SAME_NAMES) -> ClientDocument:
    """Return a document that is not validated yet. Raises InvalidDocumentError for one that would take long to validate
    or to answer, or mixes supply data with what is passed on."""
    document = _definitions(node, client_names)
    is_passed_on, supply = False, None
    for operation in document.operations.values():
        measures = _Measures(document.fragments)
        measures.add(operation.selection_set, 1, ())
        if measures.introspects and measures.fields > INTROSPECTED_MAX:
            raise _too_much("A document with __schema or __type has more fields", f"{INTROSPECTED_MAX}")
        if len(measures.roots) > ROOTS_MAX:
            raise _too_much("The document has more root fields", f"{ROOTS_MAX}; send several requests")
        supply = supply or next((name for name in measures.roots if name.startswith(SUPPLY)), None)
        is_query = operation.operation is graphql.OperationType.QUERY
        is_passed_on = is_passed_on or not is_query or any(name.startswith(OWN) for name in measures.roots)
    if is_passed_on and supply:
        message = f"{supply} is charged to the API key, the other fields are your own data: send them in two requests."
        raise InvalidDocumentError(graphql.GraphQLError(message))
    return replace(document, is_passed_on=is_passed_on)


def parse(text: str) -> ast.DocumentNode:
    """Parse a document. Raises InvalidDocumentError."""
    if len(text) > TEXT_MAX:
        raise _too_much("The document has more characters", f"{TEXT_MAX}")
    try:
        return graphql.parse(text, max_tokens=TOKENS_MAX)
    except graphql.GraphQLSyntaxError as error:
        raise InvalidDocumentError(error) from error
    except RecursionError as error:
        raise InvalidDocumentError(graphql.GraphQLError("The document is nested too deeply.")) from error


def _definitions(node: ast.DocumentNode, client_names: Mapping[str, str]) -> ClientDocument:
    operations: dict[str | None, ast.OperationDefinitionNode] = {}
    fragments: dict[str, ast.FragmentDefinitionNode] = {}
    for definition in node.definitions:
        if isinstance(definition, ast.OperationDefinitionNode):
            operations[definition.name.value if definition.name else None] = definition
        elif isinstance(definition, ast.FragmentDefinitionNode):
            fragments[definition.name.value] = definition
    if not operations:
        raise InvalidDocumentError(graphql.GraphQLError("The document has no operation."))
    if len(fragments) > FRAGMENTS_MAX:  # each that spreads the next one is a call in a call
        raise _too_much("The document has more fragments", f"{FRAGMENTS_MAX}")
    return ClientDocument(operations, fragments, client_names, len(node.loc.source.body) if node.loc else 0)


class _Measures:
    def __init__(self, fragments: dict[str, ast.FragmentDefinitionNode]) -> None:
        self._fragments = fragments
        self.fields = 0
        self.introspects = False
        self.roots: list[str] = []

    def add(self, selections: ast.SelectionSetNode, depth: int, spread: tuple[str, ...]) -> None:
        if depth > DEPTH_MAX:
            raise _too_much("The document is nested deeper", f"{DEPTH_MAX} fields")
        for node in selections.selections:
            # Fragments count as well: those that spread each other may have no field at all.
            self.fields += 1
            if self.fields > FIELDS_MAX:
                raise _too_much("The document has more fields, with those of its fragments", f"{FIELDS_MAX}")
            if isinstance(node, ast.FragmentSpreadNode):
                name = node.name.value
                fragment = self._fragments.get(name)
                if fragment is not None and name not in spread:  # else validation says what is wrong
                    self.add(fragment.selection_set, depth, (*spread, name))
            elif isinstance(node, ast.InlineFragmentNode):
                self.add(node.selection_set, depth, spread)
            elif isinstance(node, ast.FieldNode):
                self.introspects = self.introspects or node.name.value in SCHEMA
                if depth == 1:
                    self.roots.append(node.name.value)
                if node.selection_set is not None:
                    self.add(node.selection_set, depth + 1, spread)


def _too_much(what: str, limit: str) -> InvalidDocumentError:
    return InvalidDocumentError(graphql.GraphQLError(f"{what} than allowed: the limit is {limit}."))
