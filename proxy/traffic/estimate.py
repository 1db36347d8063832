"""Estimate of the maximum cost of requests, in parts, before anything is sent. Computed by the service's own planner.

The maximum is what the plan of a request could return with an empty cache; requests that the service would reject cost
nothing.
"""

from collections.abc import Callable, Iterable

import msgspec

from proxy import errors, model
from proxy.planning import match, mpn_search, queries
from proxy.traffic.v3_request import V3Request
from proxy.v3 import endpoints
from proxy.v3.parameters import Parameters
from proxy.v3.parsing import requests


class EndpointEstimate(msgspec.Struct, frozen=True):
    """Requests of one endpoint; `occurrences` is their number in the source, repetitions included."""

    endpoint: str
    requests: int
    occurrences: int
    parts: int


class Estimate(msgspec.Struct, frozen=True):
    """Maximum cost of a run that sends every request once."""

    rows: tuple[EndpointEstimate, ...]

    @property
    def requests(self) -> int:
        return sum(row.requests for row in self.rows)

    @property
    def occurrences(self) -> int:
        return sum(row.occurrences for row in self.rows)

    @property
    def parts(self) -> int:
        return sum(row.parts for row in self.rows)


def estimate_requests(counted: Iterable[V3Request], worst: Callable[[V3Request], int] | None = None) -> Estimate:
    """Estimate requests by `worst`, or `worst_case_parts`; the most expensive endpoint comes first."""
    worst = worst or worst_case_parts
    rows: dict[str, EndpointEstimate] = {}
    for request in counted:
        known = rows.get(request.endpoint) or EndpointEstimate(request.endpoint, 0, 0, 0)
        rows[known.endpoint] = EndpointEstimate(
            known.endpoint,
            known.requests + 1,
            known.occurrences + request.times,
            known.parts + worst(request),
        )
    return Estimate(tuple(sorted(rows.values(), key=lambda row: (-row.parts, row.endpoint))))


def worst_case_parts(request: V3Request) -> int:
    """Return the maximum cost of one response, in parts."""
    endpoint = endpoints.of(request.path)
    if endpoint is None or endpoint.object != "Part":
        return 0
    parameters = Parameters(request.target())
    try:
        if endpoint.action == "match":
            return _match_parts(parameters)
        if endpoint.action == "search":
            return _search_parts(parameters)
        uids = requests.parse_uids(parameters) if endpoint.action == "get_multi" else [request.path.rpartition("/")[2]]
    except errors.BadRequest:
        return 0
    return len(queries.valid_uids(uids))


def _search_parts(parameters: Parameters) -> int:
    """Return the page size; for a search by part number, the number of candidates."""
    start = parameters.whole("start", 0, model.SEARCH_START_MAX)
    limit = parameters.whole("limit", model.SEARCH_LIMIT_DEFAULT, model.SEARCH_LIMIT_MAX)
    count = len(set(parameters.texts(f"filter[fields][{mpn_search.FIELD}]")))
    if any(mpn_search.FIELD in text for text in parameters.texts("filter[queries]")):
        count += mpn_search.MPNS_MAX
    return max(limit, mpn_search.candidate_limit(count, start, limit) * count)


def _match_parts(parameters: Parameters) -> int:
    _, request = requests.parse_match(parameters)
    return sum(asked.end - asked.start for _, asked in match.of_request(request, "supMultiMatch"))
