"""GraphQL operations as values: a document that is fixed, variables that carry everything a client sent.

Made by the planners of this room, asked by upstream. Documents hold names from mapping files only (decision 2).
"""

import types
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from proxy import model
from proxy.mapping import compiler
from proxy.planning import aggregations


class Found(msgspec.Struct, frozen=True):
    """What the service answered to one query: part records, all hits, its own error.

    `akas` are the alternate MPNs that were hit, `whole` the result set where more of it is read.
    """

    parts: list[Any]
    hits: int
    error: str | None = None
    akas: list[str | None] | None = None
    whole: Any = None

    def with_akas(self) -> Iterator[tuple[Any, str | None]]:
        """Each part with the alternate MPN that the query hit, where it did."""
        return zip(self.parts, self.akas or [None] * len(self.parts), strict=True)


class Operation(msgspec.Struct, frozen=True):
    """One GraphQL request. `payload` is its JSON body, `parts_max` what it can cost at worst."""

    name: str
    payload: bytes
    decode: Callable[[bytes], Any]
    parts_max: int


class Ask(msgspec.Struct, frozen=True):
    """One operation, how its data reads, and the queries it answers by their position in the request."""

    operation: Operation
    read: Callable[[Any], list[Found]]
    positions: tuple[int, ...]


Lost = Callable[[Any], bool]


class Document:
    """A GraphQL document and the decoder of its answers. Made at start, and once for every new view.

    `lost` tells of a root field's value that what it should hold was nulled; beside an error that is no answer.
    """

    def __init__(
        self, name: str, signature: str, arguments: str, below: str, record: Any, *, lost: Lost | None = None
    ) -> None:
        self.name = name
        declared, passed = (f"({text})" if text else "" for text in (signature, arguments))
        self.text = f"query {name}{declared} {{ {name}{passed} {{ {below} }} }}"
        self._head = msgspec.json.encode({"operationName": name, "query": self.text})[:-1] + b',"variables":'
        data = msgspec.defstruct("Data", [(name, record)], gc=False)
        answer = msgspec.defstruct(
            "Answer",
            [("data", data | None, None), ("errors", list[model.GraphQLError] | None, None)],
            gc=False,
        )
        decode = msgspec.json.Decoder(answer).decode
        self._decode = decode if lost is None else _without_lost(decode, name, lost)

    def operation(self, variables: dict[str, Any], parts_max: int) -> Operation:
        """The document with its variables."""
        return Operation(self.name, self._head + msgspec.json.encode(variables) + b"}", self._decode, parts_max)


def _without_lost(decode: Callable[[bytes], Any], name: str, lost: Lost) -> Callable[[bytes], Any]:
    """The decoder, for answers whose data may be of no use."""

    def decoded(body: bytes) -> Any:
        answer = decode(body)
        if answer.errors and answer.data is not None and lost(getattr(answer.data, name)):
            answer.data = None
        return answer

    return decoded


MARKET = "$country: String!, $currency: String!"
MARKET_ARGUMENTS = "country: $country, currency: $currency"
SEARCH = f"$q: String!, {MARKET}, $start: Int!, $limit: Int!, $filters: Map"
SEARCH_ARGUMENTS = f"q: $q, {MARKET_ARGUMENTS}, start: $start, limit: $limit, filters: $filters"
SORTING = "$sort: String, $sortDir: SupSortDirection, $inStockOnly: Boolean"


def multi_match(part: compiler.Compiled | None) -> Document:
    """supMultiMatch; without a part only the hits are asked for, which costs nothing."""
    parts = f" parts {{ {part.selection} }}" if part else ""
    fields: list[Any] = [("hits", int), ("error", str | None, None)]
    if part:
        fields.insert(1, ("parts", types.GenericAlias(list, (part.record,))))
    match = msgspec.defstruct("SupPartMatch", fields, gc=False)
    return Document(
        "supMultiMatch",
        f"$queries: [SupPartMatchQuery!]!, {MARKET}",
        f"queries: $queries, {MARKET_ARGUMENTS}",
        f"hits error{parts}",
        types.GenericAlias(list, (match,)),
    )


def search(name: str, part: compiler.Compiled) -> Document:
    """supSearch or supSearchMpn for parts/match: parts in one view, and the alternate MPNs that were hit."""
    below = f"hits results {{ akaMpn part {{ {part.selection} }} }}"
    record = _result_set([("akaMpn", str | None, None)], part, [])
    return Document(name, SEARCH, SEARCH_ARGUMENTS, below, record, lost=_no_results)


def page(part: compiler.Compiled, counted: frozenset[str]) -> Document:
    """supSearch for parts/search: parts in one view with their snippets, beside them aggregations by name."""
    results = f"results {{ description part {{ {part.selection} }} }}"
    return _counting(counted, f"hits {results}", [("description", str)], part)


def count(counted: frozenset[str]) -> Document:
    """supSearch for its hits and aggregations alone."""
    return _counting(counted, "hits", [], None)


def parts(part: compiler.Compiled) -> Document:
    """supParts: by id, null where there is none."""
    record = types.GenericAlias(list, (part.record | None,))
    arguments = f"ids: $ids, {MARKET_ARGUMENTS}"
    return Document("supParts", f"$ids: [String!]!, {MARKET}", arguments, part.selection, record, lost=_no_parts)


def listing(name: str, object_: compiler.Compiled) -> Document:
    """A query that lists everything there is, such as supSellers; free of charge."""
    return Document(name, "", "", object_.selection, types.GenericAlias(list, (object_.record,)))


def attributes() -> Document:
    """The specs that the service has; free of charge."""
    return Document("supAttributes", "", "", "name shortname", types.GenericAlias(list, (aggregations.Attribute,)))


def _counting(counted: frozenset[str], below: str, beside: list[Any], part: compiler.Compiled | None) -> Document:
    chosen = [aggregations.AGGREGATIONS[name] for name in sorted(counted)]
    declared = dict.fromkeys(name for each in chosen for name in each.variables)
    signature = ", ".join([SEARCH, SORTING, *declared])
    arguments = f"{SEARCH_ARGUMENTS}, sort: $sort, sortDir: $sortDir, inStockOnly: $inStockOnly"
    fields = [(each.name, types.GenericAlias(list, (each.record,))) for each in chosen]
    texts = " ".join([below, *(each.text for each in chosen)])
    record = _result_set(beside, part, fields)
    return Document("supSearch", signature, arguments, texts, record, lost=_no_results if part else None)


def _no_results(answer: Any) -> bool:
    return answer.results is None


def _no_parts(answer: Any) -> bool:
    return all(part is None for part in answer)


def _result_set(beside: list[Any], part: compiler.Compiled | None, counted: list[Any]) -> Any:
    """The type of a SupPartResultSet with these fields."""
    optional: list[Any] = []
    if part:
        required = [field for field in [("part", part.record), *beside] if len(field) == 2]
        result = msgspec.defstruct("SupPartResult", [*required, *(f for f in beside if len(f) == 3)], gc=False)
        optional = [("results", types.GenericAlias(list, (result,)) | None, None)]
    return msgspec.defstruct("SupPartResultSet", [("hits", int), *counted, *optional], gc=False)
