"""The v4 dialect: GraphQL documents with the names of the retired v4 API, and its REST wrapper.

Documents are validated by the v4 schema, so that errors have its names, then rewritten to the names of the Nexar API
(contract v4.md). A field gets its old name as alias, so that a response has the v4 shape as it comes. What remains are
the values of `__typename` and the words of errors, which `client_names` turns back.

The wrapper is parts/match with the parts and the envelope that it had (contract graphql.md §10). Parameters, queries
and errors are v3's, without `__class__`. What the wrapper itself sent as errors is not known.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import graphql
import msgspec

from proxy.gateway import GatewayRequest
from proxy.graphql import documents
from proxy.graphql.documents import ClientDocument, DocumentRequest, InvalidDocumentError
from proxy.mapping import loader
from proxy.v3 import requests
from proxy.v3.actions import AuthenticatedRequest, V3Actions
from proxy.v3.endpoints import Endpoint

ROOT = "Query"
# Names that are the same in both; all other types have a prefix there.
SHARED_TYPES = frozenset({ROOT, "Map", "Time", *graphql.specified_scalar_types})
PREFIX = "/api/v4/rest"
MATCH = Endpoint("/parts/match", loader.VIEWS["v4"], "match", "the parts returned")
# Keys of a query that the response repeats also where they were not sent.
PAGE = {name: requests.DEFAULTS[name] for name in ("start", "limit")}


@functools.lru_cache(maxsize=4)
def schema(site: str = "octopart") -> graphql.GraphQLSchema:
    """Return the v4 schema, whose parts link to a catalog site (`upstream.site`)."""
    text = Path(__file__).with_name("schema.graphql").read_text(encoding="utf-8")
    return graphql.build_schema(text.replace("octopart_url:", f"{site}_url:"))


class V4DocumentReader(documents.DocumentReader):
    """Reads documents by the v4 schema. Rewritten, a valid one is valid by the schema of the Nexar API."""

    def request(self, text: str, operation_name: str | None, variables: Mapping[str, Any]) -> DocumentRequest:
        """Read a document. Raises InvalidDocumentError, also for a variable with a wrong value."""
        request = super().request(text, operation_name, variables)
        name = request.operation.name
        operation = request.document.sent[name.value if name else None]
        documents.coerced(self.schema, operation, variables)
        # The values of other variables are left out, as GraphQL ignores them.
        types = {
            definition.variable.name.value: graphql.type_from_ast(self.schema, definition.type)
            for definition in operation.variable_definitions or ()
        }
        renamed = {name: _renamed(variables[name], kind) for name, kind in types.items() if name in variables}
        return request._replace(variables=renamed)

    def _read(self, node: graphql.DocumentNode) -> ClientDocument:
        sent = documents.measured(node)
        if problems := graphql.validate(self.schema, node, max_errors=documents.ERRORS_MAX):
            raise InvalidDocumentError(*problems)
        types = graphql.TypeInfo(self.schema)
        renamed = graphql.visit(node, graphql.TypeInfoVisitor(types, _Renaming(types)))  # with the v4 locations
        rewritten = documents.measured(cast(graphql.DocumentNode, renamed))
        return replace(rewritten, client_names=client_names(), sent=sent.operations, introspected=self.schema)


def type_name(name: str) -> str:
    """Return the Nexar name of a v4 type."""
    return name if name in SHARED_TYPES or name.startswith("__") else f"Sup{name}"


def member_name(name: str) -> str:
    """Return the Nexar name of an argument, of an input field, or of a field of any type but the root."""
    name = name.replace("distributorapi", "distributor_api")  # v4 does not divide it
    head = name[: len(name) - len(name.lstrip("_"))]
    first, *others = name.removeprefix(head).split("_")
    return head + first + "".join(other[:1].upper() + other[1:] for other in others)


def field_name(parent: str, name: str) -> str:
    """Return the Nexar name of a field of the v4 type `parent`."""
    if name.startswith("__"):
        return name
    renamed = member_name(name)
    return f"sup{renamed[:1].upper()}{renamed[1:]}" if parent == ROOT else renamed


@functools.cache
def client_names() -> Mapping[str, str]:
    """Return the v4 name of each Nexar type, field and argument that has one of its own."""
    names = {type_name(name): name for name in schema().type_map}
    for kind in schema().type_map.values():
        if isinstance(kind, graphql.GraphQLObjectType | graphql.GraphQLInputObjectType):
            names |= {field_name(kind.name, name): name for name in kind.fields}
        if isinstance(kind, graphql.GraphQLObjectType):
            names |= {member_name(name): name for field in kind.fields.values() for name in field.args}
    return {new: name for new, name in names.items() if new != name}


def _renamed(value: Any, kind: Any) -> Any:
    """Return the value of a variable with the Nexar names of input fields."""
    kind = graphql.get_nullable_type(kind)
    if isinstance(kind, graphql.GraphQLList):
        if not isinstance(value, list):  # a single value stands for a list with it
            return _renamed(value, kind.of_type)
        return [_renamed(item, kind.of_type) for item in value]
    if isinstance(kind, graphql.GraphQLInputObjectType) and isinstance(value, dict):
        return {member_name(name): _renamed(inner, kind.fields[name].type) for name, inner in value.items()}
    return value  # scalars, the keys of a Map among them, are the client's own


class _Renaming(graphql.Visitor):
    """Renames nodes when they are left, so that `types` still follows the v4 names when their children are entered."""

    def __init__(self, types: graphql.TypeInfo) -> None:
        super().__init__()
        self._types = types

    def leave(self, node: graphql.Node, *_: Any) -> graphql.Node | None:
        """Return the renamed node; None for one that keeps its name or has none."""
        if isinstance(node, graphql.FieldNode):
            parent = self._types.get_parent_type()
            name = field_name(parent.name if parent else "", node.name.value)
            if name == node.name.value:
                return None
            return replace(node, name=replace(node.name, value=name), alias=node.alias or node.name)
        if isinstance(node, graphql.ObjectFieldNode):
            # Named: the object may be a single value that stands for a list.
            above = graphql.get_named_type(self._types.get_parent_input_type())
            if not isinstance(above, graphql.GraphQLInputObjectType):
                return None  # a key of a Map
        if isinstance(node, graphql.ArgumentNode | graphql.ObjectFieldNode):
            return replace(node, name=replace(node.name, value=member_name(node.name.value)))
        if isinstance(node, graphql.NamedTypeNode):
            return replace(node, name=replace(node.name, value=type_name(node.name.value)))
        return None


class WrapperActions(V3Actions):
    """The action of the wrapper's one endpoint, for mappings of WrapperPart."""

    @staticmethod
    def match_response(asked: requests.MatchQueries, results: Sequence[Any], _: int) -> dict[str, Any]:
        return {
            "request": {"queries": [PAGE | fields for fields in asked.sent]},
            "results": [
                {"reference": query.reference, "error": each.error, "hits": each.hits, "items": each.items}
                for query, each in zip(asked.request.queries, results, strict=True)
            ],
        }

    def _caller(self, received: AuthenticatedRequest) -> GatewayRequest:
        caller = super()._caller(received)
        include = caller.projection.include
        if "datasheets" in include:  # which brought both
            include |= {"compliance_documents"}
        projection = msgspec.structs.replace(caller.projection, include=include, view=received.endpoint.object)
        return caller._replace(projection=projection)
