"""Aggregations of the upstream over the hits of a search: their GraphQL text and the types of their results
(contract graphql.md §1.2).

facets.py turns them into v3's facets and stats; operations.py puts them into documents.
"""

from dataclasses import dataclass

import msgspec

SIZE = "$size: Int!"


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
            "specKinds",
            ("$filtered: [String!]!",),
            "specKinds: specAggs(attributeNames: $filtered, attributeSelection: EXPLICIT, size: 1)"
            " { attribute { name shortname } valueType unitsName unitsSymbol }",
            SpecDescription,
        ),
    )
}
