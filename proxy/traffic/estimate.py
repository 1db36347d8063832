"""The maximum cost of a request, in parts, before it is sent: what its plan could return from an empty store. A request
that the service would reject costs nothing."""

from proxy import errors, model
from proxy.planning import match, queries
from proxy.traffic.v3_request import V3Request
from proxy.v3 import endpoints, requests
from proxy.v3.encoding import Parameters


def worst_case_parts(request: V3Request) -> int:
    """Return the maximum cost of one response, in parts."""
    endpoint = endpoints.of(request.path)
    if endpoint is None or endpoint.object != "Part":
        return 0
    parameters = Parameters(request.target())
    try:
        if endpoint.action == "match":
            plans = match.plans(requests.parse_match(parameters).request, "supMultiMatch")
            return sum(plan.asked.end - plan.asked.start for plan in plans)
        if endpoint.action == "search":  # the page size; for a search by part number, the number of candidates
            start = parameters.whole("start", 0, model.SEARCH_START_MAX)
            limit = parameters.whole("limit", model.SEARCH_LIMIT_DEFAULT, model.SEARCH_LIMIT_MAX)
            count = len(set(parameters.texts(f"filter[fields][{match.MPN_FIELD}]")))
            if any(match.MPN_FIELD in text for text in parameters.texts("filter[queries]")):
                count += match.MPNS_MAX
            return max(limit, match.candidate_limit(count, start, limit) * count)
        uids = parameters.uids() if endpoint.action == "get_multi" else [request.path.rpartition("/")[2]]
    except errors.BadRequest:
        return 0
    return len(queries.valid_uids(uids))
