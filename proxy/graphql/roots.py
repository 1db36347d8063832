"""Root fields of clients as queries of the core, and their values from its answers. Pure.

Queries are those of v3 wherever both need the same list of the upstream, so that both find what the other has paid for.
What parts and results do not cover is an operation of its own, which fetches a root field as the client asks for it. It
is stored by its document and variables: one root field alone, without the client's alias, fragments and directives.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from proxy import errors
from proxy.gateway.core import Answer
from proxy.graphql import selection
from proxy.model import PARTS_MAX, EncodedOperation
from proxy.planning import documents, queries
from proxy.planning.queries import PassedOn, Query, Received

MULTI_MATCH, PARTS = "supMultiMatch", "supParts"
SEARCHES: tuple[queries.SearchRoot, ...] = ("supSearch", "supSearchMpn")
# What is known of them beside the fields of parts.
KNOWN = {MULTI_MATCH, PARTS, *SEARCHES} | {
    *(f"{MULTI_MATCH}.{name}" for name in ("reference", "hits", "error", "parts")),
    *(f"{root}.hits" for root in SEARCHES),
    *(f"{root}.results{name}" for root in SEARCHES for name in ("", ".part", ".akaMpn", ".description")),
}
# Arguments with values under which results are those of one caller or moment.
PRIVATE = ("distributorApi", "customPricingCredentials")
# Limits of the service, whose own errors say what is wrong with others (contract graphql.md §2.1).
SEARCH_LIMIT, SEARCH_START_MAX, MATCH_END_MAX = 10, 1_000, 1_000

_NUMBERS = ("mpn", "sku", "mpnOrSku")
_CRITERIA = (*_NUMBERS, "manufacturer", "seller")
_decode = msgspec.json.Decoder().decode
_decode_response = documents.decoder(dict[str, msgspec.Raw])


class Requested(NamedTuple):
    """Root field for parts or their lists, with its arguments.

    `features` are those that stored parts need, None if they do not cover what is selected. `depth` is how far parts
    are selected within parts: 0 if none are selected, 1 if none within others. `signature` declares the `variables`
    that it uses. `other_names`: the client knows other names of types than the upstream.
    """

    key: str
    field: selection.Field
    arguments: Mapping[str, Any]
    is_nullable: bool
    features: frozenset[str] | None
    depth: int
    signature: str
    variables: Mapping[str, Any]
    other_names: bool

    @property
    def parts_max(self) -> int:
        """The most parts that it can cost."""
        if not self.depth:
            return 0
        if self.field.name == MULTI_MATCH:
            return sum(max(query["limit"], 0) for query in self.arguments["queries"])
        return len(self.arguments["ids"]) if self.field.name == PARTS else max(self._limit, 0)

    @property
    def is_private(self) -> bool:
        """Whether nothing of it may be stored."""
        return any(self.arguments.get(name) for name in PRIVATE)

    def queries(self) -> list[Query]:
        """Return the queries of the field; none where stored parts do not cover it, or the core has none for its
        arguments."""
        name, arguments = self.field.name, self.arguments
        if self.features is None or not self.depth or self.is_private:
            return []
        if name == MULTI_MATCH:
            return self._matches()
        if name == PARTS:
            ids = arguments["ids"]
            return [*map(queries.part, ids)] if len(ids) <= PARTS_MAX and all(ids) else []
        start, limit = arguments.get("start") or 0, self._limit
        if not (0 <= start <= SEARCH_START_MAX and 0 < limit <= PARTS_MAX):
            return []
        criteria = {each: arguments.get(each) or None for each in ("q", "filters", "sort", "sortDir", "inStockOnly")}
        return [queries.search(root, start, start + limit, criteria) for root in SEARCHES if root == name]

    def value(self, asked: Sequence[Query], answers: Sequence[Answer]) -> Any:
        """Return the value of the field as the upstream has it. Raises UpstreamUnreadable."""
        found = [_page(query, answer) for query, answer in zip(asked, answers, strict=True)]
        if self.field.name == PARTS:
            return [page[0]["part"] if page else None for page in found]
        hits = [answer.result.hits if answer.result else 0 for answer in answers]
        if self.field.name != MULTI_MATCH:
            return {"hits": hits[0], "results": found[0] if hits[0] else None}  # null without hits, as the upstream's
        return [
            {
                "reference": query.get("reference"),
                "hits": number,
                "error": str(answer.error) if answer.error else None,
                "parts": [each["part"] for each in page],
            }
            for query, number, answer, page in zip(self.arguments["queries"], hits, answers, found, strict=True)
        ]

    def as_it_stands(self) -> tuple[Query, PassedOn]:
        """Return the query for the operation that has only this field."""
        name = self.field.name
        text = f"query {name}{self.signature} {{ {selection.printed(self.field)} }}"
        sent = {"operationName": name, "query": text, "variables": self.variables}
        payload = msgspec.json.encode(sent, order="deterministic")
        operation = EncodedOperation(name, payload, _decode_response, self.parts_max)
        passed_on = PassedOn(operation, self._received, self.is_private)
        # A digest: credentials of the caller may be among the variables.
        return queries.document(hashlib.sha256(payload).hexdigest(), passed_on), passed_on

    @property
    def _limit(self) -> int:
        limit = self.arguments.get("limit")
        return SEARCH_LIMIT if limit is None else int(limit)

    def _matches(self) -> list[Query]:
        asked = self.arguments["queries"]
        options = {name: value for name, value in (self.arguments.get("options") or {}).items() if value}
        if self.parts_max > PARTS_MAX:
            return []
        matches = []
        for query in asked:
            criteria = {name: query.get(name) for name in _CRITERIA}
            has_number = any(criteria[name] for name in _NUMBERS)
            is_plain = has_number and all(queries.fold(each) for each in criteria.values() if each is not None)
            start, end = query["start"], query["start"] + query["limit"]
            if not (is_plain and 0 <= start < end <= MATCH_END_MAX):
                return []
            mpn_or_sku = criteria.pop("mpnOrSku")
            matches.append(queries.matching(start, end, mpn_or_sku=mpn_or_sku, options=options, **criteria))
        return matches

    def _received(self, data: Any) -> Received:
        data, reported = (data.data, data.reported) if isinstance(data, documents.PartialData) else (data, ())
        value = bytes(data.get(self.field.name, b"null"))
        parts = [*selection.parts_of(_decode(value), self.field)]
        lost = parts.count(None)
        return Received(value, reported, len(parts) - lost, lost)


def _page(query: Query, answer: Answer) -> list[dict[str, Any]]:
    """Return the elements of a query's list, as a search has them."""
    if answer.result is None:
        return []
    page = slice(query.start - answer.first, query.end - answer.first)
    found = zip(answer.result.items[page], answer.result.bodies[page], strict=True)
    try:
        return [{"part": _decode(body), "akaMpn": hit.aka_mpn, "description": hit.description} for hit, body in found]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise errors.UpstreamUnreadable(f"the upstream sent a part that cannot be read: {error}") from error
