"""Fields that clients select: merged, and applied by one recursive function to what the upstream has sent (GraphQL
October 2021 §6.3, §6.4); root fields as queries of the core, and their values from its answers. Pure.

Queries are those of v3 wherever both need the same list of the upstream, so that both find what the other has paid for.
What parts and results do not cover is an operation of its own, which fetches a root field as the client asks for it. It
is stored by its document and variables: one root field alone, without the client's alias, fragments and directives.
"""

import contextlib
import dataclasses
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import graphql
import msgspec
from graphql.execution.values import VariableValues, get_argument_values, get_directive_values
from graphql.language import ast

from proxy import errors
from proxy.gateway import Answer
from proxy.graphql.documents import ClientDocument
from proxy.model import PARTS_MAX, EncodedOperation
from proxy.planning import documents, queries
from proxy.planning.queries import PassedOn, Query, Received

MULTI_MATCH, PARTS = "supMultiMatch", "supParts"
SEARCHES: tuple[queries.SearchRoot, ...] = ("supSearch", "supSearchMpn")
# What is known of them beside the fields of parts.
KNOWN = {MULTI_MATCH, PARTS, *SEARCHES} | {
    *(f"{MULTI_MATCH}.{name}" for name in ("reference", "hits", "error", "parts")),
    *(f"{root}.hits" for root in SEARCHES),
    *(f"{root}.results{name}" for root in SEARCHES for name in ("", ".part", ".akaMpn", ".description")),
}
# Arguments with values under which results are those of one caller or moment.
PRIVATE = ("distributorApi", "customPricingCredentials")
# Limits of the service, whose own errors say what is wrong with others (contract graphql.md §2.1).
SEARCH_LIMIT, SEARCH_START_MAX, MATCH_END_MAX = 10, 1_000, 1_000

_NUMBERS = ("mpn", "sku", "mpnOrSku")
_CRITERIA = (*_NUMBERS, "manufacturer", "seller")
_decode = msgspec.json.Decoder().decode
_ANY = documents.Document("", "", dict[str, msgspec.Raw])  # decodes the response of any document
PART, TYPENAME = "SupPart", "__typename"
SELLERS = "sellers(includeBrokers: true)"  # as parts are fetched: with brokers
SELLER_FLAGS = {"includeBrokers", "authorizedOnly"}

Fields = tuple["Field", ...]


class Field(NamedTuple):
    """Merged field of a selection: its key in the response, its name, its text with arguments, and what is selected
    below it; None of a scalar.

    `source` is the field of a stored part that it is made of, None where arguments make another value of it: with
    `sellers`, of the sellers whose flags these are. `type_name` is the value of a `__typename`. `is_part`: its values
    are parts. `depth` is how far parts are selected within parts: 0 if none are selected, 1 if none within others.
    """

    key: str
    name: str
    text: str
    source: str | None
    below: Fields | None = None
    is_part: bool = False
    depth: int = 0
    type_name: str | None = None
    sellers: Mapping[str, bool] | None = None


@dataclasses.dataclass(eq=False, slots=True)
class Compiler:
    """Compiles selections of one request, without fragments and directives; `used` are variables in arguments."""

    schema: graphql.GraphQLSchema
    document: ClientDocument
    variables: VariableValues
    used: set[str] = dataclasses.field(default_factory=set)

    def merged(self, *selections: ast.SelectionSetNode | None) -> dict[str, list[ast.FieldNode]]:
        """Return the nodes of each key, in the order of the response."""
        merged: dict[str, list[ast.FieldNode]] = {}
        spread: set[str] = set()
        left: list[ast.SelectionSetNode | ast.SelectionNode | None] = [
            *reversed(selections)
        ]  # the next one is the last
        while left:
            node = left.pop()
            if isinstance(node, ast.SelectionSetNode):
                left += reversed(node.selections)
                continue
            if node is not None and node.directives:
                skip = get_directive_values(graphql.GraphQLSkipDirective, node, self.variables) or {"if": False}
                include = get_directive_values(graphql.GraphQLIncludeDirective, node, self.variables) or {"if": True}
                node = None if skip["if"] or not include["if"] else node
            if isinstance(node, ast.FieldNode):
                merged.setdefault((node.alias or node.name).value, []).append(node)
            # The condition of a fragment holds in a valid document: the objects of parts are of no union.
            elif isinstance(node, ast.InlineFragmentNode):
                left.append(node.selection_set)
            elif isinstance(node, ast.FragmentSpreadNode) and node.name.value not in spread:
                spread.add(node.name.value)
                left.append(self.document.fragments[node.name.value].selection_set)
        return merged

    def field(self, kind: graphql.GraphQLObjectType, key: str, nodes: Sequence[ast.FieldNode]) -> Field:
        """Compile the field that some nodes select. Raises GraphQLError for an argument without its value."""
        node, name = nodes[0], nodes[0].name.value
        if name == TYPENAME:
            return Field(key, name, name, None, type_name=self.document.client_names.get(kind.name, kind.name))
        inner = graphql.get_named_type(kind.fields[name].type)
        below = None
        if isinstance(inner, graphql.GraphQLObjectType):
            merged = self.merged(*(each.selection_set for each in nodes))
            below = tuple(self.field(inner, *each) for each in merged.items())
        left: list[ast.Node] = [each.value for each in node.arguments or ()]
        while left:
            value = left.pop()
            if isinstance(value, ast.VariableNode):
                self.used.add(value.name.value)
            left += value.values if isinstance(value, ast.ListValueNode) else ()
            left += [each.value for each in value.fields] if isinstance(value, ast.ObjectValueNode) else ()
        text = f"{name}({', '.join(map(graphql.print_ast, node.arguments))})" if node.arguments else name
        source, sellers = None if node.arguments else name, None
        if kind is self.schema.query_type:
            source = name
        elif (kind.name, name) == (PART, "sellers"):
            source = None
            with contextlib.suppress(graphql.GraphQLError):  # null where it is no value: an error of each part
                given = get_argument_values(kind.fields[name], node, self.variables)
                if all(given.get(name) is None for name in given.keys() - SELLER_FLAGS):
                    source, sellers = SELLERS, given
        is_part = inner.name == PART
        depth = is_part + (max(each.depth for each in below) if below else 0)
        return Field(key, name, text, source, below, is_part, depth, sellers=sellers)


def printed(field: Field, key: str | None = None) -> str:
    """Return a field as text, with what is selected below it, under a key of its own."""
    below = "" if field.below is None else f" {{ {' '.join(printed(each, each.key) for each in field.below)} }}"
    return (field.text if key in (field.name, None) else f"{key}: {field.text}") + below


def select(value: Any, fields: Fields | None, *, as_sent: bool = False) -> Any:
    """Return what a client gets of a value of the upstream, or, `as_sent`, of a response to its own selection. Raises
    KeyError or TypeError if the upstream has sent another form."""
    if fields is None or value is None:
        return value
    if isinstance(value, list):
        return [select(each, fields, as_sent=as_sent) for each in value]
    selected = {}
    for field in fields:
        member: Any = field.type_name or value[field.key if as_sent else field.name]
        if not as_sent and (flags := field.sellers) is not None:
            shown = [each for each in member if flags["includeBrokers"] or not each["isBroker"]]
            member = [each for each in shown if each["isAuthorized"] or not flags["authorizedOnly"]]
        selected[field.key] = member if field.below is None else select(member, field.below, as_sent=as_sent)
    return selected


def paths(fields: Fields | None, prefix: str = "") -> Iterator[str]:
    """Yield the dotted paths of what is selected, those within parts from the part on."""
    for field in fields or ():
        if field.type_name is None:
            path = f"{prefix}{field.source}"
            yield path
            yield from paths(field.below, "" if field.is_part else f"{path}.")


def parts_of(value: Any, field: Field) -> Iterator[Any]:
    """Yield the parts in the value of a field as a response has it, null for one that is not there; none in parts."""
    if isinstance(value, list):
        for each in value:
            yield from parts_of(each, field)
    elif field.is_part:
        yield value
    elif isinstance(value, dict):
        for below in field.below or ():
            yield from parts_of(value.get(below.key), below)


class Requested(NamedTuple):
    """Root field for parts or their lists, with its arguments. `is_private`: nothing of it may be stored.

    `features` are those that stored parts need, None if they do not cover what is selected. `signature` declares the
    `variables` that it uses. `other_names`: the client knows other names of types than the upstream.
    """

    key: str
    field: Field
    arguments: Mapping[str, Any]
    is_private: bool
    is_nullable: bool
    features: frozenset[str] | None
    signature: str
    variables: Mapping[str, Any]
    other_names: bool

    @property
    def parts_max(self) -> int:
        """The most parts that it can cost."""
        if not self.field.depth:
            return 0
        if self.field.name == MULTI_MATCH:
            return sum(max(query["limit"], 0) for query in self.arguments["queries"])
        if self.field.name == PARTS:
            return len(self.arguments["ids"])
        limit = self.arguments.get("limit")
        return SEARCH_LIMIT if limit is None else max(limit, 0)

    def queries(self) -> list[Query]:
        """Return the queries of the field; none where stored parts do not cover it, or queries its arguments."""
        name, arguments, parts_max = self.field.name, self.arguments, self.parts_max
        if self.features is None or self.is_private or not 0 < parts_max <= PARTS_MAX:
            return []
        if name == MULTI_MATCH:
            options = {name: value for name, value in (arguments.get("options") or {}).items() if value}
            matches = []
            for query in arguments["queries"]:
                criteria = {name: query.get(name) for name in _CRITERIA}
                has_number = any(criteria[name] for name in _NUMBERS)
                is_plain = has_number and all(queries.fold(each) for each in criteria.values() if each is not None)
                start, end = query["start"], query["start"] + query["limit"]
                if not (is_plain and 0 <= start < end <= MATCH_END_MAX):
                    return []
                mpn_or_sku = criteria.pop("mpnOrSku")
                matches.append(queries.matching(start, end, mpn_or_sku=mpn_or_sku, options=options, **criteria))
            return matches
        if name == PARTS:
            return [*map(queries.part, arguments["ids"])] if all(arguments["ids"]) else []
        start = arguments.get("start") or 0
        if not 0 <= start <= SEARCH_START_MAX:
            return []
        criteria = {each: arguments.get(each) or None for each in ("q", "filters", "sort", "sortDir", "inStockOnly")}
        return [queries.of_list(root, start, start + parts_max, criteria) for root in SEARCHES if root == name]

    def value(self, asked: Sequence[Query], answers: Sequence[Answer]) -> Any:
        """Return the value of the field as the upstream has it. Raises UpstreamUnreadable."""
        found: list[list[dict[str, Any]]] = []  # the elements of each list, as a search has them
        for query, answer in zip(asked, answers, strict=True):
            page = slice(query.start - answer.first, query.end - answer.first)
            known = zip(answer.result.items[page], answer.result.bodies[page], strict=True) if answer.result else ()
            try:
                found.append(
                    [
                        {"part": _decode(body), "akaMpn": hit.aka_mpn, "description": hit.description}
                        for hit, body in known
                    ]
                )
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                raise errors.UpstreamUnreadable(f"the upstream sent a part that cannot be read: {error}") from error
        if self.field.name == PARTS:
            return [page[0]["part"] if page else None for page in found]
        hits = [answer.result.hits if answer.result else 0 for answer in answers]
        if self.field.name != MULTI_MATCH:
            return {"hits": hits[0], "results": found[0] if hits[0] else None}  # null without hits, as the upstream's
        return [
            {
                "reference": query.get("reference"),
                "hits": number,
                "error": str(answer.error) if answer.error else None,
                "parts": [each["part"] for each in page],
            }
            for query, number, answer, page in zip(self.arguments["queries"], hits, answers, found, strict=True)
        ]

    def as_it_stands(self) -> tuple[Query, PassedOn]:
        """Return the query for the operation that has only this field."""
        name = self.field.name
        text = f"query {name}{self.signature} {{ {printed(self.field)} }}"
        sent = {"operationName": name, "query": text, "variables": self.variables}
        payload = msgspec.json.encode(sent, order="deterministic")
        operation = EncodedOperation(name, payload, _ANY.decode, self.parts_max)
        passed_on = PassedOn(operation, self._received, self.is_private)
        # A digest: credentials of the caller may be among the variables.
        key = f"document {hashlib.sha256(payload).hexdigest()}"
        return Query("document", {}, key, 0, 1, passed_on=passed_on), passed_on

    def _received(self, data: Any) -> Received:
        data, reported = (data.data, data.reported) if isinstance(data, documents.PartialData) else (data, ())
        value = bytes(data.get(self.field.name, b"null"))
        parts = [*parts_of(_decode(value), self.field)]
        lost = parts.count(None)
        return Received(value, reported, len(parts) - lost, lost)
