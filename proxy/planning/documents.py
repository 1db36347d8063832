"""GraphQL documents: root fields with a selection of part fields, aggregations over the hits of a search, and the types
that responses are decoded into, except parts (contract graphql.md §1.2).

Made by projection_cache.py; facets.py turns aggregations into v3's facets and stats. Whether errors leave anything of
the data is decided here, because it depends on which fields of a document are nullable.
"""

import types
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from proxy.mapping import compiler
from proxy.planning.operations import Document

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
    return _search("supSearch", declared, " ".join(["hits", *(each.text for each in chosen)]), fields)


def search(name: str, selection: str) -> Document:
    """Return the document of supSearch or supSearchMpn for a page; variables without a value leave arguments out."""
    below = f"hits results {{ akaMpn description part {{ {selection} }} }}"
    results = ("results", types.GenericAlias(list, (FoundPart,)) | None, None)
    return _search(name, (), below, [results], lambda data: getattr(data, name).results is None)


def parts(selection: str) -> Document:
    """Return the document of supParts: parts by id, null for an unknown id."""
    arguments = f"ids: $ids, {MARKET_ARGUMENTS}"
    signature = f"$ids: [String!]!, {MARKET}"
    return _document("supParts", signature, arguments, selection, record=list[msgspec.Raw], is_lost=_has_no_part)


def listing(name: str, object_: compiler.CompiledObject) -> Document:
    """Return the document of a query that lists all objects of a kind, such as supSellers; free of charge."""
    return _document(name, "", "", object_.selection, record=types.GenericAlias(list, (object_.record,)))


def attributes() -> Document:
    """Return the document that lists all specs of the upstream; free of charge."""
    return _document("supAttributes", "", "", "name shortname", record=list[SpecAttribute])


def _multi_match(below: str, record: type) -> Document:
    signature = f"$queries: [SupPartMatchQuery!]!, {MARKET}, $options: SupPartMatchOptions"
    arguments = f"queries: $queries, {MARKET_ARGUMENTS}, options: $options"
    return _document("supMultiMatch", signature, arguments, below, record=types.GenericAlias(list, (record,)))


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


def _has_no_part(data: Any) -> bool:
    return all(bytes(part) == NULL for part in data.supParts)
