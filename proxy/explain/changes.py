"""What a client must change to send a request to the Nexar API itself, without the proxy."""

from collections.abc import Iterator
from typing import NamedTuple

from proxy import config
from proxy.explain.explanation import Change, ExplainedOperation, ParameterValue, UnderstoodQuery
from proxy.planning.exact_match import WILDCARD
from proxy.v3.endpoints import Endpoint


class Addresses(NamedTuple):
    """Where a client sends its requests, and the scope of its token."""

    graphql_url: str
    token_url: str
    scope: str


def addresses(settings: config.Config) -> Addresses:
    """Return the addresses of the configuration; those of the Nexar API for one that has the sandbox."""
    upstream = settings.upstream
    if upstream == "sandbox":
        return NEXAR
    return Addresses(upstream.graphql_url, upstream.token_url, upstream.scope)


# Contract graphql.md §3.1, §4.1.
NEXAR = Addresses("https://api.nexar.com/graphql", "https://identity.nexar.com/connect/token", "supply.domain")


def of_request(
    endpoint: Endpoint,
    settings: config.Config,
    operations: tuple[ExplainedOperation, ...],
    queries: tuple[UnderstoodQuery, ...],
    parameters: tuple[ParameterValue, ...],
) -> tuple[Change, ...]:
    """Return the changes that this request needs, those that every request needs first."""
    always = [each for each in operations if each.condition is None]
    given = {each.name.partition("[")[0] for each in parameters if not each.is_default}
    of_endpoint = _of_parts(endpoint, always, queries) if endpoint.object == "Part" else _of_list(endpoint)
    return (*_of_all(settings), *of_endpoint, *(_OF_PARAMETERS[name] for name in _OF_PARAMETERS if name in given))


def _of_all(settings: config.Config) -> Iterator[Change]:
    graphql_url, token_url, scope = addresses(settings)
    yield Change(
        subject="credentials",
        v3="apikey in the query string",
        nexar=f"POST {token_url} with grant_type=client_credentials, client_id, client_secret and scope={scope}; the "
        "access_token lasts a day: keep it, token requests are limited",
    )
    yield Change(
        subject="request",
        v3="GET with parameters",
        nexar=f"POST {graphql_url} with the header Authorization: Bearer <token> and JSON {{query, variables}}",
    )
    yield Change(
        subject="errors",
        v3="HTTP status, and an object with a message",
        nexar="status 200 with a list `errors`, also beside partial data: check it before `data`",
    )


def _of_parts(
    endpoint: Endpoint, operations: list[ExplainedOperation], queries: tuple[UnderstoodQuery, ...]
) -> Iterator[Change]:
    names = {each.name for each in operations}
    numbers = [query.keys["mpn"] or query.keys["mpn_or_sku"] or "" for query in queries if query.error is None]
    yield Change(
        subject="market",
        v3="offers of the caller's country, as v3 saw it",
        nexar="variables country and currency: they choose offers and converted prices",
    )
    yield Change(
        subject="cost",
        v3="a number of requests",
        nexar="each part that is returned counts against the plan; limit 0 costs nothing",
    )
    if endpoint.action == "match" and "supMultiMatch" in names:
        yield Change(
            subject="queries",
            v3="queries, with brand and mpn_or_sku",
            nexar="variable queries, with manufacturer and mpnOrSku; results have the order of the queries; the sum of "
            "limits is at most 100",
        )
    if any(WILDCARD in number for number in numbers):
        yield Change(
            subject="wildcards",
            v3="* in a part number",
            nexar="there are none: supSearchMpn finds numbers by the longest piece; compare part.mpn with the pattern "
            "yourself",
        )
    elif "supSearchMpn" in names:
        yield Change(
            subject="partial matches",
            v3="only numbers that are equal without punctuation and case",
            nexar="supSearchMpn also finds longer numbers: compare part.mpn and akaMpn with the number yourself; hits "
            "counts them, too",
        )
    if any(query.keys["reference"] is not None for query in queries):
        yield Change(subject="reference", v3="comes back with each result", nexar="match results by their position")
    if "supParts" in names:
        yield Change(
            subject="uids",
            v3="objects by uid, without unknown ones",
            nexar="variable ids takes v3's uids, too, at most 100; parts come in their order, null for an unknown one",
        )


def _of_list(endpoint: Endpoint) -> Iterator[Change]:
    if endpoint.action == "search":
        yield Change(
            subject="search",
            v3="searched, counted and paged by the service",
            nexar="the whole list comes, free of charge: keep it and search it yourself",
        )
    else:
        yield Change(
            subject="uids",
            v3="objects by v3 uid",
            nexar="the whole list comes, by numeric ids: mappings/uids.yaml has those of v3 uids",
        )


_CHOSEN = Change(
    subject="fields",
    v3="include[], show[] and hide[] choose them",
    nexar="the document names every field, with Nexar's names",
)
_OF_PARAMETERS = {
    "include": _CHOSEN,
    "slice": Change(
        subject="lists", v3="slice[] cuts them", nexar="they come whole: cut them yourself, in v3's order of offers"
    ),
    "filter": Change(
        subject="filters",
        v3="by names and uids of brands, sellers and categories",
        nexar="variable filters, by numeric ids and by specs",
    ),
    "facet": Change(subject="facets", v3="facet[fields] and facet[queries]", nexar="fields such as manufacturerAgg"),
    "stats": Change(subject="statistics", v3="min, max, mean, stddev", nexar="specAggs has siMin and siMax only"),
    "exact_only": Change(
        subject="punctuation", v3="exact_only compares it", nexar="it is ignored: compare the numbers yourself"
    ),
    "callback": Change(subject="JSONP", v3="callback", nexar="none; a secret must not be in a page anyway"),
}
