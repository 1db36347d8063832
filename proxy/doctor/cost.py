"""Stage cost: parts that typical requests cost at worst, and a month of recorded requests."""

import math
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path

import msgspec

from proxy import config, errors
from proxy.doctor.findings import CheckResult, found, passed
from proxy.doctor.inspection import Inspection
from proxy.kit.wording import counted
from proxy.traffic import estimate, reading
from proxy.traffic.clients import Clients
from proxy.traffic.v3_request import MONTH_SECONDS, V3Request

_QUERY: dict[str, object] = {"mpn": "SN74S74N"}


def _match(*queries: dict[str, object]) -> V3Request:
    return V3Request("/parts/match", (("queries", msgspec.json.encode(queries).decode()),))


TYPICAL = {
    "parts/match, one part number": _match(_QUERY),
    "parts/match, one part number with limit 20": _match({**_QUERY, "limit": 20}),
    "parts/match, 20 part numbers": _match(*[_QUERY] * 20),
    "parts/search, one page": V3Request("/parts/search", (("q", "resistor"),)),
    "parts/{uid}": V3Request("/parts/0123456789abcdef"),
    "brands, sellers and categories": V3Request("/brands/search", (("q", "texas"),)),
}


async def check(inspection: Inspection) -> AsyncIterator[CheckResult]:
    """Estimate costs. Nothing is sent."""
    for description, request in TYPICAL.items():
        yield passed("request_cost", f"{description}: {_parts(estimate.worst_case_parts(request))}")
    yield passed("cache_cost", _stored(inspection.settings.cache))
    for name, application in inspection.settings.applications.items():
        if isinstance(application.parts, int):
            yield passed("limit_cost", _covered(application.parts), name)
    for file in inspection.requests:
        for finding in _recorded(file, inspection):
            yield finding


def _parts(number: int) -> str:
    return f"at most {counted(number, 'part')}" if number else "free"


def _stored(cache: config.CacheSettings) -> str:
    if not cache.bytes:
        return "no results are stored (cache.bytes): a repeated query costs parts each time"
    return "a query that is repeated within 23 h 30 min is free"


def _covered(limit: int) -> str:
    requests = limit // estimate.worst_case_parts(_match(_QUERY))
    return f"parts: {limit} covers at least {counted(requests, 'request')} for one part number"


def _recorded(file: Path, inspection: Inspection) -> Iterator[CheckResult]:
    try:
        times: list[float] = []
        requests, parts = _worst_case(reading.read_requests(file, Clients(), {}), times)
    except errors.SourceError as error:
        yield found("requests_unreadable", error.message)
        return
    total = parts.total()
    shares = ", ".join(f"{endpoint} {cost}" for endpoint, cost in parts.most_common() if cost)
    text = f"{file}: {counted(requests, 'request')}, {_parts(total)} without a cache"
    yield passed("recorded_cost", f"{text}: {shares}" if shares else text)
    seconds = max(times) - min(times) if times else 0.0
    if not seconds:
        yield passed("month_unknown", f"{file} has no timestamps, so the cost of a month is unknown")
    else:
        yield _month(math.ceil(total * MONTH_SECONDS / seconds), seconds, inspection.settings)


def _worst_case(recorded: Iterable[V3Request], times: list[float]) -> tuple[int, Counter[str]]:
    """Return the number of requests, and the parts that they cost at most by endpoint; list their times."""
    requests, parts = 0, Counter[str]()
    for request in recorded:
        requests += request.times
        times += [request.at] if request.at is not None else []
        parts[request.endpoint] += estimate.worst_case_parts(request) * request.times
    return requests, parts


def _month(parts: int, seconds: float, settings: config.Config) -> CheckResult:
    """Compare the cost of a month with the limits of all applications."""
    limits = [application.parts for application in settings.applications.values()]
    limited = [limit for limit in limits if isinstance(limit, int)]
    text = f"30 days like these {seconds / 3600:.1f} hours: {_parts(parts)} without a cache"
    if len(limited) == len(limits) and parts > sum(limited):
        return found("quota_short", f"{text}, and the applications' limits allow {counted(sum(limited), 'part')}")
    return passed("month_cost", text)
