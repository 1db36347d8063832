"""Stage network: the names of the upstream's services are resolved, connections and TLS work, the clocks agree.

Each origin gets one connection and a HEAD request, without credentials: nothing of it can be billed or counted.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from email.utils import parsedate_to_datetime

from proxy.doctor import routes
from proxy.doctor.findings import CheckResult
from proxy.doctor.inspection import Diagnosis, Inspection, passed
from proxy.kit.wording import counted
from proxy.upstream import session
from proxy.upstream.auth import identity

CLOCK_WRONG_SECONDS = 300.0  # from which a clock is wrong; less than that, but more than the tolerance, is a warning
_ENVIRONMENT = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")

UNRESOLVED = Diagnosis(
    "name_not_resolved",
    "no DNS server knows the host name, or none can be reached",
    "check the spelling in upstream.graphql_url and upstream.token_url, and the machine's DNS servers; in a network "
    "that only a proxy leaves, set upstream.proxy",
)
UNREACHABLE = Diagnosis(
    "connection_failed",
    "nothing listens there, or a firewall drops the connection",
    "check the port in the address, and that the firewall lets this machine out to it; in a network that only a proxy "
    "leaves, set upstream.proxy",
)
PROXY_FAILED = Diagnosis(
    "proxy_failed", "the outgoing proxy is not there, or refuses the destination", "check upstream.proxy, and its rules"
)
PROXY_AUTHENTICATION = Diagnosis(
    "proxy_authentication_failed",
    "the outgoing proxy wants other credentials, or any at all",
    "set upstream.proxy to http://NAME:PASSWORD@HOST:PORT, best as env:NAME or file:PATH; special characters of the "
    "password are percent-encoded",
)
TLS_FAILED = Diagnosis(
    "tls_failed",
    "the port speaks no TLS, or only versions that are too old",
    "check whether the address should begin with http:// instead of https://, and the port",
)
UNTRUSTED = Diagnosis(
    "certificate_untrusted",
    "a company's network opens TLS connections and shows certificates of its own, or the service's issuer is private",
    "a company that inspects TLS has a root certificate: get it in PEM form from the network's administrators and set "
    "upstream.tls.ca_file to a file with it; if no device inspects TLS here, stop: another server responds",
)
EXPIRED = Diagnosis(
    "certificate_not_valid_now",
    "this machine's clock is wrong, or the service's certificate has expired",
    "compare this machine's clock with a right one (`date -u`); if it is right, the service's operators must act",
)
WRONG_NAME = Diagnosis(
    "certificate_of_another_host",
    "the address leads to another server, such as a proxy's or a login page's",
    "check the host names in upstream.graphql_url and upstream.token_url, the machine's hosts file and its DNS servers",
)
CLOCK_WRONG = Diagnosis(
    "clock_wrong",
    "this machine does not synchronize its clock",
    "synchronize the clock (chrony, systemd-timesyncd or ntpd); in a container, that of its host",
)
CLOCK_INEXACT = Diagnosis(
    "clock_inexact",
    "this machine's clock drifts",
    "synchronize the clock (chrony, systemd-timesyncd or ntpd)",
    "warning",
)
DIAGNOSES: Mapping[routes.Step, Diagnosis] = {
    "resolve": UNRESOLVED,
    "connect": UNREACHABLE,
    "proxy": PROXY_FAILED,
    "proxy_authentication": PROXY_AUTHENTICATION,
    "tls": TLS_FAILED,
    "certificate_trust": UNTRUSTED,
    "certificate_time": EXPIRED,
    "certificate_name": WRONG_NAME,
}


async def check(inspection: Inspection) -> AsyncIterator[CheckResult]:
    """Reach every origin of the upstream, and compare the clocks. Leaves a session if all can be reached."""
    dates: dict[str, str] = {}
    has_failed = False
    for route in routes.routes(inspection.upstream):
        try:
            reached = await route.reach()
        except routes.RouteError as error:
            has_failed = True
            yield of_route(route, error, inspection.environ)
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
        inspection.session = session.open_session(inspection.upstream)
        inspection.resources.push_async_callback(inspection.session.close)


def _clocks(inspection: Inspection, dates: Mapping[str, str]) -> Iterator[CheckResult]:
    """Compare this machine's clock with the Date header of each host. Leaves what the stage identity needs of it."""
    for host, date in dates.items():
        skew = of_clock(date, inspection.clock.now(), host)
        if skew is None:
            continue
        yield skew
        if skew.outcome != "passed":
            inspection.has_wrong_clock = True
            return  # one clock is compared with several: the other difference would be the same
        inspection.clock_agrees_with = host


def of_route(route: routes.OriginRoute, error: routes.RouteError, environ: Mapping[str, str]) -> CheckResult:
    """Return the finding for a connection that failed."""
    diagnosis = DIAGNOSES[error.step]
    advice = diagnosis.remedy
    variable = next((name for name in _ENVIRONMENT if environ.get(name)), None)
    if variable and route.proxy is None and error.step in ("resolve", "connect"):
        # Most programs read it; this one does not, so that its requests do not depend on who starts it.
        advice = f"the environment names a proxy in {variable}, which v3bridge does not use: set upstream.proxy to it"
    if error.step == "certificate_trust" and route.tls.ca_file:
        advice = (
            "upstream.tls.ca_file replaces the system's list: it must hold the certificate of this issuer's root; "
            "without ca_file the system's list counts"
        )
    if error.step == "proxy_authentication" and route.proxy is not None and route.proxy.user:
        advice = "the name or the password in upstream.proxy is refused: " + diagnosis.remedy
    return diagnosis.finding(str(error), advice=advice)


def of_clock(date: str, now: float, host: str) -> CheckResult | None:
    """Compare this machine's clock with a Date header; None for one that cannot be read."""
    behind = seconds_behind(date, now)
    if behind is None:
        return None
    # A Date has whole seconds, and the response took a moment.
    if abs(behind) <= identity.TOLERANCE:
        return passed("clock_right", f"the clock agrees with that of {host}")
    text = f"this machine's clock is {duration(abs(behind))} {'behind' if behind > 0 else 'ahead of'} that of {host}"
    if abs(behind) < CLOCK_WRONG_SECONDS:
        return CLOCK_INEXACT.finding(f"{text}; up to {identity.TOLERANCE:.0f} s make no difference")
    return CLOCK_WRONG.finding(
        f"{text}; tokens are still renewed in time, because their lifetimes count and not their dates, but usage is "
        "booked on wrong days and months, and other programs may refuse tokens"
    )


def seconds_behind(date: str, now: float) -> float | None:
    """Return by how many seconds a Date header is ahead of this machine's clock; None if it cannot be read."""
    try:
        return parsedate_to_datetime(date).timestamp() - now
    except (ValueError, OverflowError):
        return None


def duration(seconds: float) -> str:
    """Return a duration in words, in the unit that fits."""
    if seconds < 120:
        return counted(round(seconds), "second")
    if seconds < 7200:
        return counted(round(seconds / 60), "minute")
    return counted(round(seconds / 3600), "hour") if seconds < 172_800 else counted(round(seconds / 86_400), "day")
