"""Cache of documents and mapping functions by projection, compiled on first use.

Clients use few projections and repeat them; the least recently used are evicted.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

import cachetools
import msgspec

from proxy.mapping import compiler, loader
from proxy.mapping.tables import Tables
from proxy.model import MappingContext, Projection
from proxy.planning import documents, exact_match, match
from proxy.planning.listing import Listing
from proxy.planning.operations import Document

# Clients choose projections, so the number must have a bound; a real program uses a handful.
PROJECTIONS_MAX = 512
ATTRIBUTES = "Attribute"  # not a v3 object: the list of all upstream specs
LISTS = {"Brand": "supManufacturers", "Seller": "supSellers", "Category": "supCategories"}

T = TypeVar("T")


class CompiledMatch(NamedTuple):
    """Documents and mapping of parts/match in one projection."""

    documents: match.Documents
    part: compiler.CompiledObject


class CompiledParts(NamedTuple):
    """Document and mapping of parts by uid, or of a search page, in one projection."""

    document: Document
    part: compiler.CompiledObject


class ListDefinition(NamedTuple):
    """Document that fetches one list, and the function that builds it from the response's data; the list of specs
    becomes tables."""

    document: Document
    build: Callable[[Any], Listing | Tables]


class ProjectionCache:
    """Documents and mappings by projection, compiled on first use. Not thread-safe."""

    def __init__(self, mappings: loader.Mappings) -> None:
        self._mappings = mappings
        self._projections: cachetools.LRUCache[tuple[Any, ...], Any] = cachetools.LRUCache(PROJECTIONS_MAX)
        self._count = documents.multi_match(None)

    def check(self, features: Iterable[str]) -> None:
        """Compile the projection with every field and feature, which checks all rules. Raises MappingError with the
        file and line of a mistake."""
        rules = self._mappings.rules
        everything = Projection(frozenset().union(*map(self._mappings.includable, rules)), features=frozenset(features))
        # One compilation for all documents of parts: they differ only in what they need besides the projection.
        compiler.compile_object(self._mappings, "Part", everything, (exact_match.SKUS, *self._numbered_needs()))
        for name in LISTS:
            compiler.compile_object(self._mappings, name, everything)

    def match(self, projection: Projection, skus: bool = False) -> CompiledMatch:
        """Return documents and mapping for parts/match. `skus`: matching compares SKUs, even if the projection hides
        them."""
        return self._cached(("match", projection, skus), lambda: self._compile_match(projection, skus))

    def parts(self, projection: Projection) -> CompiledParts:
        """Return document and mapping for parts by uid."""
        return self._cached(("parts", projection), lambda: self._compile_parts(projection))

    def page(self, projection: Projection, counted: frozenset[str]) -> CompiledParts:
        """Return document and mapping for a page of a search, with some aggregations."""
        return self._cached(("page", projection, counted), lambda: self._compile_page(projection, counted))

    def numbered(self, projection: Projection) -> CompiledParts:
        """Return document and mapping for a page of a search by part number."""
        return self._cached(("numbered", projection), lambda: self._compile_numbered(projection))

    def count(self, counted: frozenset[str]) -> Document:
        """Return the document of a search that selects only hits and some aggregations."""
        return self._cached(("count", counted), lambda: documents.count(counted))

    def list_item(self, name: str, projection: Projection) -> compiler.CompiledObject:
        """Return the mapping of a brand, seller or category."""
        return self._cached((name, projection), lambda: compiler.compile_object(self._mappings, name, projection))

    def list_definitions(self) -> dict[str, ListDefinition]:
        """Return the definitions of the lists of brands, sellers, categories and attributes."""
        return {name: self._list_definition(name, root) for name, root in LISTS.items()} | {
            ATTRIBUTES: self._attributes()
        }

    def _cached(self, key: tuple[Any, ...], make: Callable[[], T]) -> T:
        try:
            compiled: T = self._projections[key]
        except KeyError:
            compiled = self._projections[key] = make()
        return compiled

    def _compile_match(self, projection: Projection, skus: bool) -> CompiledMatch:
        needs = ("mpn", exact_match.SKUS) if skus else ("mpn",)
        part = compiler.compile_object(self._mappings, "Part", projection, needs)
        match_documents = match.Documents(
            documents.multi_match(part),
            documents.search("supSearchMpn", part),
            documents.search("supSearch", part),
            self._count,
        )
        return CompiledMatch(match_documents, part)

    def _compile_parts(self, projection: Projection) -> CompiledParts:
        part = compiler.compile_object(self._mappings, "Part", projection)
        return CompiledParts(documents.parts(part), part)

    def _compile_page(self, projection: Projection, counted: frozenset[str]) -> CompiledParts:
        part = compiler.compile_object(self._mappings, "Part", projection)
        return CompiledParts(documents.page(part, counted), part)

    def _compile_numbered(self, projection: Projection) -> CompiledParts:
        part = compiler.compile_object(self._mappings, "Part", projection, self._numbered_needs())
        return CompiledParts(documents.multi_match(part, options=True), part)

    def _numbered_needs(self) -> tuple[str, ...]:
        """Return the fields that parts found by number are filtered and sorted by, and that of their snippets."""
        read = {field.path for field in self._mappings.tables.search.values() if field.path}
        return tuple(sorted({"mpn", "shortDescription", *read}))

    def _list_definition(self, name: str, root: str) -> ListDefinition:
        needs = ("id", "name", "aliases") if name != "Category" else ("id", "name")
        everything = Projection(include=self._mappings.includable(name))
        whole = compiler.compile_object(self._mappings, name, everything, needs)
        # A list is the same for all clients: its fields depend on no country and no currency.
        nowhere = MappingContext("", "")

        uids = self._mappings.tables.uids[name]

        def build(data: Any) -> Listing:
            def to_v3(record: Any) -> dict[str, Any]:
                fields: dict[str, Any] = msgspec.to_builtins(whole.map(record, nowhere))
                return fields

            return Listing(getattr(data, root), to_v3, uids.accepted)

        return ListDefinition(documents.listing(root, whole), build)

    def _attributes(self) -> ListDefinition:
        tables = self._mappings.tables

        def build(data: Any) -> Tables:
            return msgspec.structs.replace(tables, specs=tables.specs.with_attributes(data.supAttributes))

        return ListDefinition(documents.attributes(), build)
