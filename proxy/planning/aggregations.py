"""The service's aggregations over a search's hits: how each is asked for and read (contract graphql.md §1.2).

facets.py turns them into v3's facets and stats; operations.py puts them into documents.
"""

from dataclasses import dataclass

import msgspec

SIZE = "$size: Int!"


class NamedRecord(msgspec.Struct, gc=False):
    """A company or a category."""

    id: str
    name: str


class CompanyBucket(msgspec.Struct, gc=False):
    """SupCompanyBucket."""

    company: NamedRecord
    count: int | None = None


class CategoryBucket(msgspec.Struct, gc=False):
    """SupCategoryBucket."""

    category: NamedRecord
    count: int | None = None


class InStockBucket(msgspec.Struct, gc=False):
    """SupInStockBucket."""

    isInStock: bool  # noqa: N815 - the service's name
    count: int | None = None


class SpecBucket(msgspec.Struct, gc=False):
    """SupSpecBucket."""

    displayValue: str  # noqa: N815 - the service's name
    floatValue: float | None = None  # noqa: N815 - the service's name
    count: int | None = None


class SpecAttribute(msgspec.Struct, gc=False):
    """SupAttribute."""

    name: str
    shortname: str


class SpecDescription(msgspec.Struct, gc=False):
    """SupSpecAgg, without what it counts."""

    attribute: SpecAttribute
    valueType: str  # noqa: N815 - the service's name
    unitsName: str | None = None  # noqa: N815 - the service's name
    unitsSymbol: str | None = None  # noqa: N815 - the service's name


class SpecAgg(SpecDescription, gc=False):
    """SupSpecAgg."""

    buckets: list[SpecBucket] = []
    siMin: str | None = None  # noqa: N815 - the service's name
    siMax: str | None = None  # noqa: N815 - the service's name


@dataclass(frozen=True, slots=True)
class Aggregation:
    """A field of SupPartResultSet under a name: the variables it declares, its text, the type of its items."""

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
