"""GraphQL operations as values: a fixed document, and variables that carry all text from the client. And the documents:
root fields with a selection of part fields, aggregations over the hits of a search, and the types that responses are
decoded into, except parts (contract graphql.md §1.2).

Documents hold names from mapping files only (decision 2). Whether errors leave anything of the data is decided here,
because it depends on which fields of a document are nullable.
"""

import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from proxy import model

# Lists that the upstream returns whole, by the v3 objects in them; that of all its specs has none.
LISTS = {"Brand": "supManufacturers", "Seller": "supSellers", "Category": "supCategories"}
ATTRIBUTES = "Attribute"
MARKET = "$country: String!, $currency: String!"
MARKET_ARGUMENTS = "country: $country, currency: $currency"
SEARCH = (
    f"$q: String, {MARKET}, $start: Int, $limit: Int, $filters: Map, "
    "$sort: String, $sortDir: SupSortDirection, $inStockOnly: Boolean"
)
SEARCH_ARGUMENTS = (
    f"q: $q, {MARKET_ARGUMENTS}, start: $start, limit: $limit, filters: $filters, "
    "sort: $sort, sortDir: $sortDir, inStockOnly: $inStockOnly"
)
SIZE = "$size: Int!"
NULL = b"null"


class PartialData(NamedTuple):
    """Data of a response that has errors, too."""

    data: Any
    reported: Sequence[model.GraphQLError]


def decoder(data: Any, is_lost: Callable[[Any], bool] | None = None) -> Callable[[bytes], model.Envelope]:
    """Return the decoder of responses with data of a type. `is_lost` says whether errors beside the data leave nothing
    of it: then they count as errors without data."""
    kind: Any = msgspec.defstruct("Envelope", [("data", data | None, None)], bases=(model.Envelope,), gc=False)
    decode_envelope: Callable[[bytes], model.Envelope] = msgspec.json.Decoder(kind).decode

    def decode(body: bytes) -> model.Envelope:
        envelope = decode_envelope(body)
        if envelope.errors and envelope.data is not None:
            has_data = is_lost is None or not is_lost(envelope.data)
            envelope.data = PartialData(envelope.data, envelope.errors) if has_data else None
        return envelope

    return decode


class Document:
    """GraphQL document with the decoder of its responses."""

    def __init__(self, name: str, text: str, data: Any, is_lost: Callable[[Any], bool] | None = None) -> None:
        self.name = name
        self.text = text
        # Encoded once: a document is long, the variables of a request are short.
        self._head = msgspec.json.encode({"operationName": name, "query": text})[:-1] + b',"variables":'
        self._decode = decoder(data, is_lost)

    def operation(self, variables: dict[str, Any], parts_max: int) -> model.EncodedOperation:
        """Encode the document with its variables."""
        payload = self._head + msgspec.json.encode(variables) + b"}"
        return model.EncodedOperation(self.name, payload, self._decode, parts_max)


# gc=False: decoded records have no reference cycles, and the collector need not visit them.
class NamedRecord(msgspec.Struct, gc=False):
    """Company or category."""

    id: str
    name: str


class Bucket(msgspec.Struct, gc=False):
    """Hits of one value of an aggregation, which is a company, a category, a flag, or a value of a spec."""

    company: NamedRecord | None = None
    category: NamedRecord | None = None
    isInStock: bool | None = None  # noqa: N815 - the service's name
    displayValue: str = ""  # noqa: N815 - the service's name
    floatValue: float | None = None  # noqa: N815 - the service's name
    count: int | None = None


class SpecAttribute(msgspec.Struct, gc=False):
    """SupAttribute: the attribute that a spec is a value of."""

    name: str
    shortname: str


class SpecAgg(msgspec.Struct, gc=False):
    """SupSpecAgg: counts and statistics of one spec; without its buckets a description."""

    attribute: SpecAttribute
    valueType: str  # noqa: N815 - the service's name
    unitsName: str | None = None  # noqa: N815 - the service's name
    unitsSymbol: str | None = None  # noqa: N815 - the service's name
    buckets: list[Bucket] = []
    siMin: str | None = None  # noqa: N815 - the service's name
    siMax: str | None = None  # noqa: N815 - the service's name


class MatchCount(msgspec.Struct, gc=False):
    """SupPartMatch without parts."""

    hits: int
    error: str | None = None


class MatchedParts(msgspec.Struct, gc=False):
    """SupPartMatch. Its parts are records: their callers decode what they need of them."""

    hits: int
    parts: list[msgspec.Raw]
    error: str | None = None


class FoundPart(msgspec.Struct, gc=False):
    """SupPartResult: a part, the alternate MPN that matched, and its snippet."""

    part: msgspec.Raw
    akaMpn: str | None = None  # noqa: N815 - the service's name
    description: str | None = None


class Aggregation(NamedTuple):
    """Aggregation field of SupPartResultSet: its GraphQL text, the variables that it declares, and the type of its
    items."""

    text: str
    variables: tuple[str, ...] = (SIZE,)
    record: type = Bucket


AGGREGATIONS = {
    "manufacturerAgg": Aggregation("manufacturerAgg(size: $size) { company { id name } count }"),
    "distributorAgg": Aggregation("distributorAgg(size: $size) { company { id name } count }"),
    "categoryAgg": Aggregation("categoryAgg(size: $size) { category { id name } count }"),
    "inStockAgg": Aggregation("inStockAgg { isInStock count }", ()),
    "specAggs": Aggregation(
        "specAggs(attributeNames: $attributes, attributeSelection: $selection, size: $size)"
        " { attribute { name shortname } valueType buckets { displayValue floatValue count }"
        " siMin siMax unitsName unitsSymbol }",
        (SIZE, "$attributes: [String!]!", "$selection: SupSpecAggsSelection!"),
        SpecAgg,
    ),
    # An alias of specAggs: the descriptions of filtered specs without their counts.
    "specKinds": Aggregation(
        "specKinds: specAggs(attributeNames: $filtered, attributeSelection: EXPLICIT, size: 1)"
        " { attribute { name shortname } valueType unitsName unitsSymbol }",
        ("$filtered: [String!]!",),
        SpecAgg,
    ),
}


def multi_match(selection: str = "") -> Document:
    """Return the document of supMultiMatch, with parts or only their number. Options, such as filters, apply to all of
    its queries."""
    below, record = (f"hits error parts {{ {selection} }}", MatchedParts) if selection else ("hits error", MatchCount)
    signature = f"$queries: [SupPartMatchQuery!]!, {MARKET}, $options: SupPartMatchOptions"
    arguments = f"queries: $queries, {MARKET_ARGUMENTS}, options: $options"
    return _document("supMultiMatch", signature, arguments, below, record=types.GenericAlias(list, (record,)))


def count(counted: frozenset[str]) -> Document:
    """Return the document of supSearch that selects only hits and the aggregations named."""
    chosen = {name: AGGREGATIONS[name] for name in sorted(counted)}
    declared = dict.fromkeys(name for each in chosen.values() for name in each.variables)
    fields = [(name, types.GenericAlias(list, (each.record,))) for name, each in chosen.items()]
    return _search("supSearch", declared, " ".join(["hits", *(each.text for each in chosen.values())]), fields)


def search(name: str, selection: str) -> Document:
    """Return the document of supSearch or supSearchMpn for a page; variables without a value leave arguments out."""
    below = f"hits results {{ akaMpn description part {{ {selection} }} }}"
    results = ("results", types.GenericAlias(list, (FoundPart,)) | None, None)
    return _search(name, (), below, [results], lambda data: getattr(data, name).results is None)


def parts(selection: str) -> Document:
    """Return the document of supParts: parts by id, null for an unknown id."""
    return _document(
        "supParts",
        f"$ids: [String!]!, {MARKET}",
        f"ids: $ids, {MARKET_ARGUMENTS}",
        selection,
        record=list[msgspec.Raw],
        is_lost=lambda data: all(bytes(part) == NULL for part in data.supParts),
    )


def listing(name: str, selection: str, record: Any) -> Document:
    """Return the document of a query that lists all objects of a kind, such as supSellers; free of charge."""
    return _document(name, "", "", selection, record=types.GenericAlias(list, (record,)))


def _search(
    name: str, declared: Iterable[str], below: str, fields: list[Any], is_lost: Callable[[Any], bool] | None = None
) -> Document:
    result_set = msgspec.defstruct("SupPartResultSet", [("hits", int), *fields], gc=False)
    return _document(name, ", ".join([SEARCH, *declared]), SEARCH_ARGUMENTS, below, record=result_set, is_lost=is_lost)


def _document(
    name: str, signature: str, arguments: str, below: str, *, record: Any, is_lost: Callable[[Any], bool] | None = None
) -> Document:
    """Return the document that selects one root field, with the variables that it declares and passes on."""
    declared, passed = (f"({text})" if text else "" for text in (signature, arguments))
    text = f"query {name}{declared} {{ {name}{passed} {{ {below} }} }}"
    return Document(name, text, msgspec.defstruct("Data", [(name, record)], gc=False), is_lost)
