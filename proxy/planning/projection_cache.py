"""Cache of documents and mapping functions by projection, compiled on first use."""

from collections.abc import Callable, Iterable, Set
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from proxy.mapping import compiler, loader
from proxy.mapping.specs import SpecNames
from proxy.mapping.tables import Tables
from proxy.model import MappingContext, Projection
from proxy.planning import documents, match
from proxy.planning.documents import ATTRIBUTES, LISTS, Document
from proxy.planning.listing import Listing

# Clients choose projections, so the number must have a bound; a real program uses a handful.
PROJECTIONS_MAX = 512  # that are compiled
SHOWN_MAX = 128  # with what is chosen below the fields of the object
PART = "Part"


class ListDefinition(NamedTuple):
    """Document that fetches one list, and the function that builds it from the response's data; the list of specs
    becomes tables."""

    document: Document
    build: Callable[[Any], Listing | Tables]


class ProjectionCache:
    """Documents and mappings by projection, compiled on first use. `part` is the mapping of a part in a projection,
    with further paths that it reads; `count` the document of a search that selects only hits and some aggregations.

    Parts are fetched `whole`: with all fields that any projection shows, and those of `ObjectRules.fetched`, because
    parts are billed, not fields (contract graphql.md §6).
    """

    def __init__(self, mappings: loader.Mappings) -> None:
        self.mappings = mappings
        self.tables = mappings.tables
        self._included = frozenset[str]().union(*mappings.hidden.values())
        self._views = {PART: mappings, **mappings.views}
        rules = [rules.rule(field) for rules in mappings.rules.values() for field in rules.fields]
        self.features = frozenset({rule.feature for rule in rules if rule.feature})
        # Per object, not as decorators, which would share one cache between mappings.
        self._compiled = lru_cache(PROJECTIONS_MAX)(compiler.compile_object)
        self.part, self.count = lru_cache(SHOWN_MAX)(self.shown), lru_cache(PROJECTIONS_MAX)(documents.count)

    def check(self, features: Iterable[str]) -> None:
        """Compile the projection with every field and feature, which checks all rules. Raises ConfigError with the
        file and line of a mistake."""
        everything = Projection(self._included, features=frozenset(features))
        self.whole(everything.features)
        for view, mappings in self.mappings.views.items():
            compiler.compile_object(mappings, view, Projection(mappings.hidden[view], features=everything.features))
        for name in LISTS:
            compiler.compile_object(self.mappings, name, everything)

    def gated(self) -> dict[str, frozenset[str]]:
        """Return the fields that each feature adds to a part."""
        ungated = self.whole(frozenset()).fields
        return {feature: self.whole(frozenset({feature})).fields - ungated for feature in self.features}

    def features_named(self, names: Set[str]) -> frozenset[str]:
        """Return the features that are among some names, or whose fields are: those that the others are below."""
        return frozenset(
            {
                feature
                for feature, fields in self.gated().items()
                for field in fields
                if field.rpartition(".")[0] not in fields
                and not names.isdisjoint((feature, field.rpartition(".")[2].partition("(")[0]))
            }
        )

    def list_definitions(self) -> dict[str, ListDefinition]:
        """Return the definitions of the lists of brands, sellers, categories and attributes."""
        lists = {name: self._list_definition(name, root) for name, root in LISTS.items()}
        names = self.tables.specs.names

        def build(data: Any) -> Tables:
            return msgspec.structs.replace(self.tables, specs=SpecNames(names, data.supAttributes))

        document = documents.listing("supAttributes", "name shortname", documents.SpecAttribute)
        return lists | {ATTRIBUTES: ListDefinition(document, build)}

    def shown(
        self, projection: Projection, needs: tuple[str, ...] = (), name: str | None = None
    ) -> compiler.CompiledObject:
        """Return the mapping of a part, or of the brand, seller or category that `name` says; `needs` are paths that it
        reads beside those of the projection. What is shown and hidden below its fields needs no other function."""
        shown, hidden = projection.show, projection.hide
        fields = Projection(
            projection.include,
            frozenset(path[:1] for path in shown),
            frozenset(path for path in hidden if len(path) == 1),
            features=projection.features,
        )
        name = name or projection.view
        compiled = self._compiled(self._views.get(name, self.mappings), name, fields, needs)
        has_more = projection.slices or any(len(path) > 1 for path in shown | hidden)
        return compiled.shown_in(projection) if has_more else compiled

    def whole(self, features: frozenset[str]) -> compiler.CompiledObject:
        """Return the mapping of all that is fetched of a part with these features."""
        fetched = self.mappings.rules[PART].fetched
        gated = [path for feature in sorted(features) for path in fetched.get(feature, ())]
        needs = (match.SKUS, *self.number_needs(), *fetched.get("always", ()), *gated)
        return self.shown(Projection(self._included, features=features), needs)

    def number_needs(self) -> tuple[str, ...]:
        """Return the fields that parts found by number are filtered and sorted by, and that of their snippets."""
        read = {field.path for field in self.mappings.tables.search.values() if field.path}
        return tuple(sorted({"mpn", "shortDescription", *read}))

    def _list_definition(self, name: str, root: str) -> ListDefinition:
        needs = ("id", "name", "aliases") if name != "Category" else ("id", "name")
        everything = Projection(include=self.mappings.hidden[name])
        whole = compiler.compile_object(self.mappings, name, everything, needs)
        # A list is the same for all clients: its fields depend on no country and no currency.
        nowhere, uids = MappingContext("", ""), self.tables.uids[name]

        def build(data: Any) -> Listing:
            return Listing(getattr(data, root), lambda record: msgspec.to_builtins(whole.map(record, nowhere)), uids)

        return ListDefinition(documents.listing(root, whole.selection, whole.record), build)
