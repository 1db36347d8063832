"""What a client must change to send a request to the Nexar API itself, without the proxy."""

from collections.abc import Iterator

from proxy import config
from proxy.endpoints import Endpoint
from proxy.explain.explanation import Change, ExplainedOperation, UnderstoodQuery

GRAPHQL_URL, TOKEN_URL = "https://api.nexar.com/graphql", "https://identity.nexar.com/connect/token"
"""Addresses of the Nexar API, for a configuration without any (contract graphql.md §3.1, §4.1)."""


def of_request(
    endpoint: Endpoint,
    settings: config.Config,
    operations: tuple[ExplainedOperation, ...],
    queries: tuple[UnderstoodQuery, ...],
) -> tuple[Change, ...]:
    """Return the changes that this request needs, those that every request needs first."""
    return (*_of_all(settings, operations), *_of_endpoint(endpoint, operations, queries))


def _of_all(settings: config.Config, operations: tuple[ExplainedOperation, ...]) -> Iterator[Change]:
    upstream = settings.upstream
    graphql_url, token_url, scope = GRAPHQL_URL, TOKEN_URL, "supply.domain"
    if upstream != "sandbox":
        graphql_url, token_url, scope = upstream.graphql_url, upstream.token_url, upstream.scope
    yield Change(
        subject="credentials",
        v3="apikey in the query string",
        nexar=f"POST {token_url} with grant_type=client_credentials, client_id, client_secret and scope={scope}; the "
        "access_token lasts a day: keep it, token requests are limited",
    )
    names = ", ".join(dict.fromkeys(each.name for each in operations)) or "an operation"
    yield Change(
        subject="request",
        v3="GET with parameters",
        nexar=f"POST {graphql_url} with the header Authorization: Bearer <token> and JSON {{query, variables}}: "
        f"{names}",
    )
    yield Change(
        subject="errors",
        v3="HTTP status, and an object with a message",
        nexar="status 200 with a list `errors`, also beside partial data: check it before `data`",
    )


def _of_endpoint(
    endpoint: Endpoint, operations: tuple[ExplainedOperation, ...], queries: tuple[UnderstoodQuery, ...]
) -> Iterator[Change]:
    names = {each.name for each in operations}
    if endpoint.object == "Part":
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
    if "supMultiMatch" in names and endpoint.action == "match":
        yield Change(
            subject="queries",
            v3="queries, with brand and mpn_or_sku",
            nexar="variable queries, with manufacturer and mpnOrSku; results have the order of the queries; the sum of "
            "limits is at most 100",
        )
    if "supSearchMpn" in names:
        yield Change(
            subject="partial matches",
            v3="only numbers that are equal without punctuation and case",
            nexar="supSearchMpn also finds longer numbers: compare part.mpn and akaMpn with the number yourself; hits "
            "counts them, too",
        )
    if any(query.keys["reference"] is not None for query in queries):
        yield Change(subject="reference", v3="comes back with each result", nexar="match results by their position")
    if endpoint.object != "Part":
        yield Change(
            subject="search" if endpoint.action == "search" else "uids",
            v3="searched, counted and paged by the service" if endpoint.action == "search" else "objects by v3 uid",
            nexar="the whole list comes, free of charge: keep it and search it yourself"
            if endpoint.action == "search"
            else "the whole list comes, by numeric ids: mappings/uids.yaml has those of v3 uids",
        )
