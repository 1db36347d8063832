"""GraphQL documents: root fields with a selection of part fields, aggregations over the hits of a search, and the types
that responses are decoded into, except parts (contract graphql.md §1.2).

Made by projection_cache.py; facets.py turns aggregations into v3's facets and stats. The meaning of errors beside data
is decided here, because it depends on which fields of a document are nullable.
"""

import types
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from proxy import model
from proxy.mapping import compiler
from proxy.planning.operations import Document, ErrorMarker, FieldError, PartialData

REASON_MAX = 500  # characters of the upstream's messages that are passed on
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


# gc=False: decoded records have no reference cycles, and the collector need not visit them.
class NamedRecord(msgspec.Struct, gc=False):
    """Company or category."""

    id: str
    name: str


class CompanyBucket(msgspec.Struct, gc=False):
    """SupCompanyBucket: hits of one company."""

    company: NamedRecord
    count: int | None = None


class CategoryBucket(msgspec.Struct, gc=False):
    """SupCategoryBucket: hits in one category."""

    category: NamedRecord
    count: int | None = None


class InStockBucket(msgspec.Struct, gc=False):
    """SupInStockBucket: hits in stock, or out of stock."""

    isInStock: bool  # noqa: N815 - the service's name
    count: int | None = None


class SpecBucket(msgspec.Struct, gc=False):
    """SupSpecBucket: hits with one value of a spec."""

    displayValue: str  # noqa: N815 - the service's name
    floatValue: float | None = None  # noqa: N815 - the service's name
    count: int | None = None


class SpecAttribute(msgspec.Struct, gc=False):
    """SupAttribute: the attribute that a spec is a value of."""

    name: str
    shortname: str


class SpecDescription(msgspec.Struct, gc=False):
    """SupSpecAgg without its buckets and statistics."""

    attribute: SpecAttribute
    valueType: str  # noqa: N815 - the service's name
    unitsName: str | None = None  # noqa: N815 - the service's name
    unitsSymbol: str | None = None  # noqa: N815 - the service's name


class SpecAgg(SpecDescription, gc=False):
    """SupSpecAgg: counts and statistics of one spec."""

    buckets: list[SpecBucket] = []
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


@dataclass(frozen=True, slots=True)
class Aggregation:
    """Aggregation field of SupPartResultSet: its declared variables, its GraphQL text, and the type of its items."""

    name: str
    variables: tuple[str, ...]
    text: str
    record: type


AGGREGATIONS = {
    each.name: each
    for each in (
        Aggregation(
            "manufacturerAgg", (SIZE,), "manufacturerAgg(size: $size) { company { id name } count }", CompanyBucket
        ),
        Aggregation(
            "distributorAgg", (SIZE,), "distributorAgg(size: $size) { company { id name } count }", CompanyBucket
        ),
        Aggregation("categoryAgg", (SIZE,), "categoryAgg(size: $size) { category { id name } count }", CategoryBucket),
        Aggregation("inStockAgg", (), "inStockAgg { isInStock count }", InStockBucket),
        Aggregation(
            "specAggs",
            (SIZE, "$attributes: [String!]!", "$selection: SupSpecAggsSelection!"),
            "specAggs(attributeNames: $attributes, attributeSelection: $selection, size: $size)"
            " { attribute { name shortname } valueType buckets { displayValue floatValue count }"
            " siMin siMax unitsName unitsSymbol }",
            SpecAgg,
        ),
        Aggregation(
            # An alias of specAggs: the descriptions of filtered specs without their counts.
            "specKinds",
            ("$filtered: [String!]!",),
            "specKinds: specAggs(attributeNames: $filtered, attributeSelection: EXPLICIT, size: 1)"
            " { attribute { name shortname } valueType unitsName unitsSymbol }",
            SpecDescription,
        ),
    )
}


def multi_match(selection: str) -> Document:
    """Return the document of supMultiMatch. Options, such as filters, apply to all of its queries."""
    return _multi_match(f"hits error parts {{ {selection} }}", MatchedParts)


def match_count() -> Document:
    """Return the document of supMultiMatch that selects only hits."""
    return _multi_match("hits error", MatchCount)


def count(counted: frozenset[str]) -> Document:
    """Return the document of supSearch that selects only hits and the aggregations named."""
    chosen = [AGGREGATIONS[name] for name in sorted(counted)]
    declared = dict.fromkeys(name for each in chosen for name in each.variables)
    fields = [(each.name, types.GenericAlias(list, (each.record,))) for each in chosen]
    below = " ".join(["hits", *(each.text for each in chosen)])
    return _search("supSearch", declared, below, fields).document()


def search(name: str, selection: str) -> Document:
    """Return the document of supSearch or supSearchMpn for a page; variables without a value leave arguments out."""
    below = f"hits results {{ akaMpn description part {{ {selection} }} }}"
    results = ("results", types.GenericAlias(list, (FoundPart,)) | None, None)
    return _search(name, (), below, [results]).document(_partial(_require_results))


def parts(selection: str) -> Document:
    """Return the document of supParts: parts by id, null for an unknown id."""
    arguments = f"ids: $ids, {MARKET_ARGUMENTS}"
    root = Root("supParts", f"$ids: [String!]!, {MARKET}", arguments, selection, list[msgspec.Raw])
    return root.document(_partial(_mark_lost_parts))


def listing(name: str, object_: compiler.CompiledObject) -> Document:
    """Return the document of a query that lists all objects of a kind, such as supSellers; free of charge."""
    return Root(name, "", "", object_.selection, types.GenericAlias(list, (object_.record,))).document(
        mark_errors=_partial()
    )


def attributes() -> Document:
    """Return the document that lists all specs of the upstream; free of charge."""
    record = types.GenericAlias(list, (SpecAttribute,))
    return Root("supAttributes", "", "", "name shortname", record).document(mark_errors=_partial())


class Root(NamedTuple):
    """Root field: the variables that it declares and passes on, as text, the selection below it, and its type."""

    name: str
    signature: str
    arguments: str
    below: str
    record: Any

    def document(self, mark_errors: ErrorMarker | None = None) -> Document:
        """Return the document that selects the field."""
        declared, passed = (f"({text})" if text else "" for text in (self.signature, self.arguments))
        text = f"query {self.name}{declared} {{ {self.name}{passed} {{ {self.below} }} }}"
        return Document(self.name, text, msgspec.defstruct("Data", [(self.name, self.record)], gc=False), mark_errors)


def _search(name: str, declared: Iterable[str], below: str, fields: list[Any]) -> Root:
    result_set = msgspec.defstruct("SupPartResultSet", [("hits", int), *fields], gc=False)
    return Root(name, ", ".join([SEARCH, *declared]), SEARCH_ARGUMENTS, below, result_set)


def _multi_match(below: str, record: type) -> Document:
    signature = f"$queries: [SupPartMatchQuery!]!, {MARKET}, $options: SupPartMatchOptions"
    arguments = f"queries: $queries, {MARKET_ARGUMENTS}, options: $options"
    root = Root("supMultiMatch", signature, arguments, below, types.GenericAlias(list, (record,)))
    return root.document(_partial())


def _partial(mark_lost: ErrorMarker | None = None) -> ErrorMarker:
    """Return the error marker of a document; `mark_lost` finds out whether anything is left."""

    def mark(data: Any, reported: list[model.GraphQLError]) -> PartialData | None:
        left = data if mark_lost is None else mark_lost(data, reported)
        return None if left is None else PartialData(left, reported)

    return mark


def _require_results(data: Any, _: list[model.GraphQLError]) -> Any:
    """Return the data, or None if its only result set has no results."""
    return data if all(getattr(data, name).results is not None for name in data.__struct_fields__) else None


def _mark_lost_parts(data: Any, graphql_errors: list[model.GraphQLError]) -> Any:
    """Replace each part that is null with an error by the error; null without an error means that it is unknown."""
    # Nothing is left: the response counts as failed, so that its errors are raised.
    if all(bytes(part) == NULL for part in data.supParts):
        return None
    paths = [error.path for error in graphql_errors if isinstance(error.path, list) and len(error.path) > 1]
    for place in {path[1] for path in paths if isinstance(path[1], int)}:
        if 0 <= place < len(data.supParts) and bytes(data.supParts[place]) == NULL:
            data.supParts[place] = FieldError(_reason(graphql_errors, ["supParts", place]))
    return data


def _reason(graphql_errors: list[model.GraphQLError], at: list[str | int]) -> str:
    """Return the messages of the errors at a path, or of all errors if none is."""
    about = [error.message for error in graphql_errors if isinstance(error.path, list) and error.path[: len(at)] == at]
    return "; ".join(dict.fromkeys(about or [error.message for error in graphql_errors]))[:REASON_MAX]
