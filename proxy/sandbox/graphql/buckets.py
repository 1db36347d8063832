"""What the aggregations of a search are made of, as values with the schema's field names.

Made by resolvers/aggregations.py; read by the schema.
"""

from dataclasses import dataclass

from proxy.sandbox.catalog import records


@dataclass(frozen=True, slots=True)
class CompanyBucket:
    """A company and its hits."""

    company: records.Company
    count: int


@dataclass(frozen=True, slots=True)
class CategoryBucket:
    """A category and its hits."""

    category: records.Category
    count: int


@dataclass(frozen=True, slots=True)
class CadBucket:
    """A state of CAD models and its hits."""

    cad_state: str
    count: int


@dataclass(frozen=True, slots=True)
class LevelBucket:
    """A level of CAD models and its hits."""

    level: int
    display_name: str
    count: int


@dataclass(frozen=True, slots=True)
class InStockBucket:
    """Stock or none, and its hits."""

    is_in_stock: bool
    count: int


@dataclass(frozen=True, slots=True)
class SpecBucket:
    """A value and its hits."""

    display_value: str
    float_value: float | None
    count: int


@dataclass(frozen=True, slots=True)
class SpecAgg:
    """The values of one attribute; the ends of their range are None for text."""

    attribute: records.CatalogAttribute
    buckets: list[SpecBucket]
    min: float | None
    max: float | None
    si_min: str | None
    si_max: str | None
    display_min: str | None
    display_max: str | None


@dataclass(frozen=True, slots=True)
class AttributeGroup:
    """Attributes shown together."""

    name: str
    attributes: list[records.CatalogAttribute]


@dataclass(frozen=True, slots=True)
class AppliedFilter:
    """A filter of the search."""

    shortname: str
    name: str
    values: tuple[str, ...]
    display_values: list[str]
