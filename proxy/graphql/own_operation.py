"""Root field as an operation of its own: what records of parts do not hold is fetched as the client asks for it.

Metered like any other, and cached by its normalized document and variables: one alone, without the client's alias.
"""

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import graphql
import msgspec
from graphql.language import ast

from proxy import errors, model
from proxy.gateway.old_core import GatewayRequest
from proxy.graphql.documents import ClientDocument
from proxy.graphql.selection import PART, TYPENAME, Field, Selections, holds_parts
from proxy.mapping.compiler import CompiledObject
from proxy.planning.operations import Document, OperationResult, PlannedOperation, QueryResult

DOCUMENT = "document"  # begins the keys of operations of their own, behind their application
BILLED = frozenset({"supMultiMatch", "supParts", "supSearch", "supSearchMpn"})  # contract graphql.md §6
CREDENTIALS = "customPricingCredentials"  # an argument whose results are kept nowhere
RECORD = b'{"data":%b}'  # of a response: an object without the ids that parts are found by

TypeKeys = dict[str, Any]  # None, or such keys

_any = msgspec.json.Decoder().decode


class UncachedResponse(errors.BridgeError):
    """Response that is passed on, and kept nowhere: one with errors, or of credentials of the caller. `data` is the
    value of the root field as JSON."""

    def __init__(self, data: bytes, reported: Sequence[model.GraphQLError]) -> None:
        super().__init__("; ".join(each.message for each in reported) or "not cached")
        self.data = data
        self.reported = reported


class _Response(NamedTuple):
    data: bytes
    reported: Sequence[model.GraphQLError]


class OwnOperation:
    """One root field: its document, the variables that it uses, and where its response has parts."""

    def __init__(
        self,
        document: ClientDocument,
        node: ast.OperationDefinitionNode,
        field: Field,
        part_paths: Sequence[tuple[str, ...]],
        type_keys: TypeKeys,
    ) -> None:
        self.part_paths = part_paths
        self._client_names, self._type_keys = document.client_names, type_keys
        alone, self.variables = single_root(document, node, field)
        text = graphql.print_ast(alone)
        data = msgspec.defstruct("Data", [(field.name, msgspec.Raw, msgspec.Raw(b"null"))], gc=False)

        def mark(decoded: Any, reported: list[model.GraphQLError]) -> _Response:
            return _Response(bytes(getattr(decoded, field.name)), reported)

        self.document = Document(field.name, text, data, mark_errors=mark)
        self.digest = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def shown(self, value: bytes) -> bytes:
        """Return the value of the root field with the names of types that the client knows."""
        if not self._type_keys:
            return value
        decoded = _any(value)
        _rename_types(decoded, self._type_keys, self._client_names)
        return msgspec.json.encode(decoded)

    def query(
        self, request: GatewayRequest, variables: Mapping[str, Any], parts_max: int, is_kept: bool
    ) -> "DocumentQuery":
        """Return the query of the pipeline for one request."""
        used = {name: variables[name] for name in self.variables if name in variables}
        return DocumentQuery(request, self, used, parts_max, is_kept=is_kept)


class DocumentQuery:
    """The one query of an operation of its own. Its record is the value of the root field."""

    ranged: Collection[int] = ()
    features: frozenset[str] = frozenset()

    def __init__(
        self,
        request: GatewayRequest,
        operation: OwnOperation,
        variables: dict[str, Any],
        parts_max: int,
        *,
        is_kept: bool,
    ) -> None:
        # A digest: credentials of the caller may be among the variables.
        digest = hashlib.blake2b(msgspec.json.encode(variables, order="sorted"), digest_size=16).hexdigest()
        self.keys = [request.key(DOCUMENT, operation.digest, digest, is_kept)]
        self.renderer = request.renderer(_WHOLE, _WHOLE.fields, projection=DOCUMENT)
        self._operation, self._variables, self._parts_max = operation, variables, parts_max
        self._is_kept = is_kept

    def plan(self, _: list[int], stored: Mapping[int, int]) -> "DocumentQuery":  # noqa: ARG002 - one entry, no pages
        return self

    @property
    def operations(self) -> list[PlannedOperation]:
        document = self._operation.document
        is_free = document.name not in BILLED
        decode = msgspec.Raw  # its parts are kept as they are
        return [PlannedOperation(document, self._variables, self._parts_max, self._read, (0,), decode, is_free=is_free)]

    def count_operations(self, _: Any) -> list[PlannedOperation]:
        return []

    def results(self, results: Mapping[int, OperationResult], _: Any) -> list[QueryResult]:
        result = results[0]
        if result.refusal is not None:
            return [QueryResult([], 0, failure=UncachedResponse(b"null", result.refusal.reported))]
        if result.failure is not None:
            return [QueryResult([], 0, result.error, result.failure)]
        response: _Response = result.result_set
        if response.reported or not self._is_kept:
            return [QueryResult([], 0, failure=UncachedResponse(response.data, response.reported))]
        record = RECORD % response.data
        return [QueryResult([msgspec.Raw(record)], result.hits, records=[record])]

    def _read(self, data: Any) -> list[OperationResult]:
        response = (
            data if isinstance(data, _Response) else _Response(bytes(getattr(data, self._operation.document.name)), ())
        )
        # Encoded once more for their number and their sizes: what is billed.
        records = [
            msgspec.json.encode(part)
            for path in self._operation.part_paths
            for part in _parts(_any(response.data), path)
        ]
        return [OperationResult([], len(records), result_set=response, records=records)]


_WHOLE = CompiledObject(
    "",
    frozenset({f"({DOCUMENT})"}),
    msgspec.Raw,
    lambda record, _: record,
    "def render(record, _): return record",
)


def value_of(items: bytes) -> bytes:
    """Return the value of the root field in the items of a result."""
    return items[len(b'[{"data":') : -len(b"}]")]


def part_paths(selections: Selections, kind: graphql.GraphQLNamedType, fields: list[Field]) -> list[tuple[str, ...]]:
    """Return where a root field's value has parts that are billed: not nested ones (contract graphql.md §6)."""
    if kind.name == PART:
        return [()]
    if not isinstance(kind, graphql.GraphQLObjectType):
        return []
    found: list[tuple[str, ...]] = []
    for field in fields:
        definition = kind.fields.get(field.name)
        if definition is None:
            continue
        inner = graphql.get_named_type(definition.type)
        if inner.name == PART:
            found.append((field.key,))
        elif holds_parts(inner):
            found += [(field.key, *path) for path in part_paths(selections, inner, selections.below(field))]
    return found


def type_keys(selections: Selections, fields: list[Field]) -> TypeKeys:
    """Return the keys of a response under which names of types are (None), or objects that have such keys."""
    found: TypeKeys = {}
    for field in fields:
        if field.name == TYPENAME:
            found[field.key] = None
        elif below := type_keys(selections, selections.below(field)):
            found[field.key] = below
    return found


def _rename_types(value: Any, keys: TypeKeys, names: Mapping[str, str]) -> None:
    for each in value if isinstance(value, list) else (value,):
        if isinstance(each, list):
            _rename_types(each, keys, names)
        elif isinstance(each, dict):
            for key, below in keys.items():
                if below is None:
                    each[key] = names.get(each[key], each[key])
                else:
                    _rename_types(each.get(key), below, names)


def _parts(value: Any, path: tuple[str, ...]) -> Iterator[Any]:
    if isinstance(value, list):
        for each in value:
            yield from _parts(each, path)
    elif value is not None and not path:
        yield value
    elif isinstance(value, dict):
        yield from _parts(value.get(path[0]), path[1:])


def single_root(
    document: ClientDocument, node: ast.OperationDefinitionNode, field: Field
) -> tuple[ast.DocumentNode, tuple[str, ...]]:
    """Return a document with one root field only, without its alias, and the names of the variables that it uses."""
    root = ast.FieldNode(
        name=field.nodes[0].name,
        arguments=field.nodes[0].arguments,
        directives=(),
        selection_set=_merged_selection(field),
    )
    used = Used(document)
    used.add(root)
    definitions = tuple(each for each in node.variable_definitions or () if each.variable.name.value in used.variables)
    operation = ast.OperationDefinitionNode(
        operation=graphql.OperationType.QUERY,
        name=ast.NameNode(value=field.name),
        variable_definitions=definitions,
        directives=(),
        selection_set=ast.SelectionSetNode(selections=(root,)),
    )
    fragments = tuple(document.fragments[name] for name in sorted(used.fragments))
    names = tuple(each.variable.name.value for each in definitions)
    return ast.DocumentNode(definitions=(operation, *fragments)), names


def _merged_selection(field: Field) -> ast.SelectionSetNode | None:
    sets = [node.selection_set for node in field.nodes if node.selection_set is not None]
    if not sets:
        return None
    return ast.SelectionSetNode(selections=tuple(each for selection in sets for each in selection.selections))


class Used(graphql.Visitor):
    """Collects the variables and fragments that a node uses, also in fragments."""

    def __init__(self, document: ClientDocument) -> None:
        super().__init__()
        self._document = document
        self.variables: set[str] = set()
        self.fragments: set[str] = set()

    def add(self, node: ast.Node) -> None:
        graphql.visit(node, self)

    def enter_variable(self, node: ast.VariableNode, *_: Any) -> None:
        self.variables.add(node.name.value)

    def enter_fragment_spread(self, node: ast.FragmentSpreadNode, *_: Any) -> None:
        name = node.name.value
        if name not in self.fragments:
            self.fragments.add(name)
            graphql.visit(self._document.fragments[name], self)
