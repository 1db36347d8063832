"""GraphQL operations as values: a document that is fixed, variables that carry everything a client sent.

Made by the planners of this room, asked by upstream. Documents hold names from mapping files only (decision 2).
"""

import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from proxy import model
from proxy.mapping import compiler


@dataclass(frozen=True, slots=True)
class Found:
    """What the service answered to one query: part records, all hits, its own error."""

    parts: list[Any]
    hits: int
    error: str | None = None
    akas: list[str | None] | None = None

    def with_akas(self) -> Iterator[tuple[Any, str | None]]:
        """Each part with the alternate MPN that the query hit, where it did."""
        return zip(self.parts, self.akas or [None] * len(self.parts), strict=True)


@dataclass(frozen=True, slots=True)
class Operation:
    """One GraphQL request. `payload` is its JSON body, `parts_max` what it can cost at worst."""

    name: str
    payload: bytes
    decode: Callable[[bytes], Any]
    parts_max: int


class Document:
    """A GraphQL document and the decoder of its answers. Made at start, and once for every new view."""

    def __init__(self, name: str, signature: str, arguments: str, below: str, record: Any) -> None:
        self.name = name
        self.text = f"query {name}({signature}) {{ {name}({arguments}) {{ {below} }} }}"
        self._head = msgspec.json.encode({"operationName": name, "query": self.text})[:-1] + b',"variables":'
        data = msgspec.defstruct("Data", [(name, record)], gc=False)
        answer = msgspec.defstruct(
            "Answer",
            [("data", data | None, None), ("errors", list[model.GraphQLError] | None, None)],
            gc=False,
        )
        self._decode = msgspec.json.Decoder(answer).decode

    def operation(self, variables: dict[str, Any], parts_max: int) -> Operation:
        """The document with its variables."""
        return Operation(self.name, self._head + msgspec.json.encode(variables) + b"}", self._decode, parts_max)


MARKET = "$country: String!, $currency: String!"
MARKET_ARGUMENTS = "country: $country, currency: $currency"


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
    """supSearch or supSearchMpn over parts in one view."""
    result = msgspec.defstruct("SupPartResult", [("part", part.record), ("akaMpn", str | None, None)], gc=False)
    results = types.GenericAlias(list, (result,)) | None
    found = msgspec.defstruct("SupPartResultSet", [("hits", int), ("results", results, None)], gc=False)
    return Document(
        name,
        f"$q: String!, {MARKET}, $start: Int!, $limit: Int!, $filters: Map",
        f"q: $q, {MARKET_ARGUMENTS}, start: $start, limit: $limit, filters: $filters",
        f"hits results {{ akaMpn part {{ {part.selection} }} }}",
        found,
    )
