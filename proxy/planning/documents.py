"""GraphQL operations as values: a fixed document, and variables that carry all text from the client. And the documents:
root fields with a selection of part fields, aggregations over the hits of a search, and the types that responses are
decoded into, except parts (contract graphql.md §1.2); those with parts, and mapping functions, by projection.

Documents hold names from mapping files only (decision 2). Whether errors leave anything of the data is decided here,
because it depends on which fields of a document are nullable.
"""

import dataclasses
import types
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from proxy import model
from proxy.mapping import compiler, loader, rules
from proxy.mapping.rules import Tables
from proxy.mapping.specs import SpecNames
from proxy.mapping.transforms import Uids
from proxy.model import MappingContext, Projection
from proxy.planning import facets
from proxy.planning.listing import Listing

# Clients choose projections, so the number must have a bound; a real program uses a handful.
PROJECTIONS_MAX = 512  # that are compiled
SHOWN_MAX = 128  # with what is chosen below the fields of the object
COUNTS_MAX = 64  # sets of aggregations: there are six
PART = "Part"
NUMBERS = ("mpn", "akaMpns")  # of a part, which it matches by
SKUS = "sellers(includeBrokers: true).offers.sku"  # brokers' SKUs count, too: upstream finds them
# Lists that the upstream returns whole, by the v3 objects in them; that of all its specs has none.
LISTS = {"Brand": "supManufacturers", "Seller": "supSellers", "Category": "supCategories"}
ATTRIBUTES = "Attribute"
MARKET = "$country: String!, $currency: String!"
MARKET_ARGUMENTS = "country: $country, currency: $currency"
MATCH = f"$queries: [SupPartMatchQuery!]!, {MARKET}, $options: SupPartMatchOptions"  # which apply to all queries
MATCH_ARGUMENTS = f"queries: $queries, {MARKET_ARGUMENTS}, options: $options"
# Variables without a value leave arguments out.
SEARCH = (
    f"$q: String, {MARKET}, $start: Int, $limit: Int, $filters: Map, "
    "$sort: String, $sortDir: SupSortDirection, $inStockOnly: Boolean"
)
SEARCH_ARGUMENTS = (
    f"q: $q, {MARKET_ARGUMENTS}, start: $start, limit: $limit, filters: $filters, "
    "sort: $sort, sortDir: $sortDir, inStockOnly: $inStockOnly"
)
NULL = b"null"


class PartialData(NamedTuple):
    """Data of a response that has errors, too."""

    data: Any
    reported: Sequence[model.GraphQLError]


class Document:
    """GraphQL document, and the type of its data. `is_lost` says whether errors beside the data leave nothing of it:
    then they count as errors without data."""

    def __init__(self, name: str, text: str, data: Any, is_lost: Callable[[Any], bool] | None = None) -> None:
        self.name = name
        self.text = text
        # Encoded once: a document is long, the variables of a request are short.
        self._head = msgspec.json.encode({"operationName": name, "query": text})[:-1] + b',"variables":'
        kind: Any = msgspec.defstruct("Envelope", [("data", data | None, None)], bases=(model.Envelope,), gc=False)
        self._decode: Callable[[bytes], model.Envelope] = msgspec.json.Decoder(kind).decode
        self._is_lost = is_lost

    def operation(self, variables: dict[str, Any], parts_max: int) -> model.EncodedOperation:
        payload = self._head + msgspec.json.encode(variables) + b"}"
        return model.EncodedOperation(self.name, payload, self.decode, parts_max)

    def decode(self, body: bytes) -> model.Envelope:
        """Decode a response. Its data are a PartialData if errors come with them."""
        envelope = self._decode(body)
        if envelope.errors and envelope.data is not None:
            has_data = self._is_lost is None or not self._is_lost(envelope.data)
            envelope.data = PartialData(envelope.data, envelope.errors) if has_data else None
        return envelope


Documents = Mapping[str, Document]  # by root field


# gc=False: decoded records have no reference cycles, and the collector need not visit them.
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


class FoundParts(msgspec.Struct, gc=False):
    """SupPartResultSet of a search with parts."""

    hits: int
    results: list[FoundPart] | None = None


def of_parts(selection: str) -> Documents:
    """Return the documents that fetch parts with one selection, by their root fields. What a part is stored by comes
    first, so that its beginning says it."""
    selection = f"v3uid id manufacturer {{ name }} {selection}"
    page = f"hits results {{ akaMpn description part {{ {selection} }} }}"
    parts = f"hits error parts {{ {selection} }}"
    return {
        "supMultiMatch": _document("supMultiMatch", MATCH, MATCH_ARGUMENTS, parts, list[MatchedParts]),
        "supParts": _document(  # by id, null for an unknown one
            "supParts",
            f"$ids: [String!]!, {MARKET}",
            f"ids: $ids, {MARKET_ARGUMENTS}",
            selection,
            list[msgspec.Raw],
            is_lost=lambda data: all(bytes(part) == NULL for part in data.supParts),
        ),
        "supSearch": _document(
            "supSearch", SEARCH, SEARCH_ARGUMENTS, page, FoundParts, is_lost=lambda data: data.supSearch.results is None
        ),
        "supSearchMpn": _document(
            "supSearchMpn",
            SEARCH,
            SEARCH_ARGUMENTS,
            page,
            FoundParts,
            is_lost=lambda data: data.supSearchMpn.results is None,
        ),
    }


@lru_cache(COUNTS_MAX)
def count(counted: frozenset[str]) -> Document:
    """Return the document of supSearch that selects only hits and the aggregations named."""
    chosen = {name: facets.AGGREGATIONS[name] for name in sorted(counted)}
    declared = dict.fromkeys(name for each in chosen.values() for name in each.variables)
    fields = [(name, types.GenericAlias(list, (each.record,))) for name, each in chosen.items()]
    below = " ".join(["hits", *(each.text for each in chosen.values())])
    result_set = msgspec.defstruct("SupPartResultSet", [("hits", int), *fields], gc=False)
    return _document("supSearch", ", ".join([SEARCH, *declared]), SEARCH_ARGUMENTS, below, result_set)


def _document(
    name: str, signature: str, arguments: str, below: str, record: Any, *, is_lost: Callable[[Any], bool] | None = None
) -> Document:
    """Return the document that selects one root field, with the variables that it declares and passes on."""
    declared, passed = (f"({text})" if text else "" for text in (signature, arguments))
    text = f"query {name}{declared} {{ {name}{passed} {{ {below} }} }}"
    return Document(name, text, msgspec.defstruct("Data", [(name, record)], gc=False), is_lost)


MATCH_COUNT = _document("supMultiMatch", MATCH, MATCH_ARGUMENTS, "hits error", list[MatchCount])


class ListDefinition(NamedTuple):
    """Document that fetches one list: that of all objects with these uids, mapped with all fields, or of all specs."""

    document: Document
    tables: Tables
    uids: Uids | None = None
    map: Callable[[Any, MappingContext], Any] | None = None

    def build(self, data: Any) -> Listing | SpecNames:
        """Return the list, which is the same for all clients: its fields depend on no country and no currency. Raises
        ValueError if no object can be translated."""
        records, map_record = getattr(data, self.document.name), self.map
        if map_record is None or self.uids is None:
            return SpecNames(self.tables.specs.names, records)
        nowhere = MappingContext("", "")
        return Listing(records, lambda record: msgspec.to_builtins(map_record(record, nowhere)), self.uids)


class ProjectionCache:
    """Documents and mappings by projection, compiled on first use. `part` is the mapping of a part in a projection,
    with further paths that it reads.

    Parts are fetched `whole`: with all fields that any projection shows, and those of `ObjectRules.fetched`, because
    parts are billed, not fields (contract graphql.md §6).
    """

    def __init__(self, mappings: loader.Mappings) -> None:
        self.mappings = mappings
        self.tables = mappings.tables
        self._included = frozenset[str]().union(*(each.hidden for each in mappings.rules.values()))
        self._views = {PART: mappings, **mappings.views}
        every = (rule for each in mappings.rules.values() for rule in each.fields.values())
        self.features = frozenset({rule.feature for rule in every if rule.feature})
        # What parts found by number are filtered and sorted by, and the field of their snippets.
        read = {field.path for field in mappings.tables.search.values() if field.path}
        self.number_needs = tuple(sorted({"mpn", "shortDescription", *read}))
        # Per object, not as decorators, which would share one cache between mappings.
        self._compiled = lru_cache(PROJECTIONS_MAX)(compiler.compile_object)
        self.part = lru_cache(SHOWN_MAX)(self.shown)

    def check(self, features: Iterable[str]) -> None:
        """Compile every field and feature, which checks all rules. Raises ConfigError with file and line."""
        everything = Projection(self._included, features=frozenset(features))
        self.whole(everything.features)
        for view, mappings in self.mappings.views.items():
            hidden = mappings.rules[view].hidden
            compiler.compile_object(mappings, view, Projection(hidden, features=everything.features))
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
        specs = _document("supAttributes", "", "", "name shortname", list[facets.SpecAttribute])
        definitions = {ATTRIBUTES: ListDefinition(specs, self.tables)}
        for name, root in LISTS.items():
            needs = ("id", "name", "aliases") if name != "Category" else ("id", "name")
            everything = Projection(include=self.mappings.rules[name].hidden)
            whole = compiler.compile_object(self.mappings, name, everything, needs)
            document = _document(root, "", "", whole.selection, types.GenericAlias(list, (whole.record,)))
            definitions[name] = ListDefinition(document, self.tables, self.tables.uids[name], whole.map)
        return definitions

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
        if not projection.slices and all(len(path) == 1 for path in shown | hidden):
            return compiled
        map_all = compiled.map
        return dataclasses.replace(
            compiled, map=lambda *of: rules.projected(msgspec.to_builtins(map_all(*of)), projection, {})
        )

    def whole(self, features: frozenset[str]) -> compiler.CompiledObject:
        fetched = self.mappings.rules[PART].fetched
        gated = [path for feature in sorted(features) for path in fetched.get(feature, ())]
        needs = (SKUS, *self.number_needs, *fetched.get("always", ()), *gated)
        return self.shown(Projection(self._included, features=features), needs)
