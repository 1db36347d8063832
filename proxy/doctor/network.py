"""Stage network: the names of the upstream's services are resolved, connections and TLS work, the clocks agree; the
identity provider of operators can be used.

Each origin gets one connection and a HEAD request, without credentials: nothing of it can be billed or counted.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from email.utils import parsedate_to_datetime

from proxy.doctor import routes
from proxy.doctor.findings import CheckResult, found, passed, remedy
from proxy.doctor.inspection import Inspection
from proxy.gateway.core import Upstream
from proxy.kit import wording

TOLERANCE = 60.0  # seconds that clocks may differ
CLOCK_WRONG_SECONDS = 300.0  # from which a clock is wrong; less than that, but more than the tolerance, is a warning
_ENVIRONMENT = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")

CODES: Mapping[routes.Step, str] = {
    "resolve": "name_not_resolved",
    "connect": "connection_failed",
    "proxy": "proxy_failed",
    "proxy_authentication": "proxy_authentication_failed",
    "tls": "tls_failed",
    "certificate_trust": "certificate_untrusted",
    "certificate_time": "certificate_not_valid_now",
    "certificate_name": "certificate_of_another_host",
    "loop": "upstream_is_a_proxy",
}


async def check(inspection: Inspection) -> AsyncIterator[CheckResult]:
    """Reach every origin of the upstream, and compare the clocks. Leaves the upstream if all can be reached."""
    dates: dict[str, str] = {}
    has_failed = False
    upstream = Upstream(inspection.upstream, inspection.clock)
    inspection.resources.push_async_callback(upstream.aclose)
    for route in routes.routes(inspection.upstream, upstream.http):
        try:
            reached = await route.reach()
        except routes.RouteError as error:
            has_failed = True
            yield route_finding(route, error, inspection.environ)
            # Whatever is behind the proxy has the same problem.
            if route.proxy is not None and error.step.startswith("proxy"):
                break
        else:
            yield passed("reached", reached.description)
            if reached.date:
                dates[route.host] = reached.date
    for skew in _clocks(inspection, dates):
        yield skew
    if not has_failed:
        inspection.reached = upstream


def _clocks(inspection: Inspection, dates: Mapping[str, str]) -> Iterator[CheckResult]:
    """Compare this machine's clock with the Date header of each host. Leaves what the stage identity needs of it."""
    for host, date in dates.items():
        skew = clock_finding(date, inspection.clock.now(), host)
        if skew is None:
            continue
        yield skew
        if skew.outcome != "passed":
            inspection.has_wrong_clock = True
            return  # one clock is compared with several: the other difference would be the same
        inspection.clock_agrees_with = host


def route_finding(route: routes.OriginRoute, error: routes.RouteError, environ: Mapping[str, str]) -> CheckResult:
    code = CODES[error.step]
    advice = ""
    variable = next((name for name in _ENVIRONMENT if environ.get(name)), None)
    if variable and route.proxy is None and error.step in ("resolve", "connect"):
        # Most programs read it; this one does not, so that its requests do not depend on who starts it.
        advice = f"the environment names a proxy in {variable}, which v3bridge does not use: set upstream.proxy to it"
    if error.step == "certificate_trust" and route.upstream.tls.ca_file:
        advice = (
            "upstream.tls.ca_file replaces the system's list: it must hold the certificate of this issuer's root; "
            "without ca_file the system's list counts"
        )
    if error.step == "proxy_authentication" and route.proxy is not None and route.proxy.user:
        advice = "the name or the password in upstream.proxy is refused: " + remedy(code)
    return found(code, str(error), advice=advice)


def clock_finding(date: str, now: float, host: str) -> CheckResult | None:
    """Compare this machine's clock with a Date header; None for one that cannot be read."""
    behind = seconds_behind(date, now)
    if behind is None:
        return None
    # A Date has whole seconds, and the response took a moment.
    if abs(behind) <= TOLERANCE:
        return passed("clock_right", f"the clock agrees with that of {host}")
    direction = "behind" if behind > 0 else "ahead of"
    text = f"this machine's clock is {wording.duration(round(abs(behind) / 60) * 60)} {direction} that of {host}"
    if abs(behind) < CLOCK_WRONG_SECONDS:
        return found("clock_inexact", f"{text}; up to {TOLERANCE:.0f} s make no difference")
    return found(
        "clock_wrong",
        f"{text}; tokens are still renewed in time, because their lifetimes count and not their dates, but usage is "
        "booked on wrong days and months, and other programs may refuse tokens",
    )


def seconds_behind(date: str, now: float) -> float | None:
    """Return by how many seconds a Date header is ahead of this machine's clock; None if it cannot be read."""
    try:
        return parsedate_to_datetime(date).timestamp() - now
    except (ValueError, OverflowError):
        return None
