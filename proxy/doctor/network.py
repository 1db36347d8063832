"""Checks of the way to the upstream: names, connections with TLS, and the clock.

Each address gets a HEAD request without credentials: nothing of it can be billed or counted.
"""

import asyncio
import socket
import ssl
from email.utils import parsedate_to_datetime

import aiohttp
import yarl

from proxy import config, errors
from proxy.doctor.check import Problem, Subject
from proxy.kit import wording

TOLERANCE = 60.0  # seconds that clocks may differ
CLOCK_WRONG_SECONDS = 300.0  # from which a clock is wrong; less than that, but more than the tolerance, is a warning
# The variable is not read, so that requests do not depend on who starts the program.
PROXY_ADVICE = "where only a proxy leads out, set upstream.proxy: HTTPS_PROXY of the environment is not read"
_SECONDS = aiohttp.ClientTimeout(sock_connect=config.CONNECT_SECONDS, sock_read=config.CONNECT_SECONDS)


async def dns(subject: Subject, _: str) -> str:
    """Resolve the names of the upstream's hosts, or of the proxy that leads to them."""
    upstream = subject.gateway.upstream
    urls = [upstream.proxy.reveal()] if upstream.proxy else [upstream.graphql_url, upstream.token_url]
    places = [(url.host or "", url.port or 0) for url in map(yarl.URL, urls)]
    hosts = {upstream.connections_to.get(place, place)[0]: None for place in places}
    for host in hosts:
        try:
            await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except OSError as error:
            advice = f"check the addresses under upstream, and the DNS servers; {PROXY_ADVICE}"
            raise Problem(f"the name {host} is not resolved: {error.strerror}", advice) from error
    return f"{' and '.join(hosts)} resolved"


async def tls(subject: Subject, _: str) -> str:
    """Reach the upstream's services, with TLS. Leaves their Date headers."""
    gateway, reached = subject.gateway, []
    urls = {yarl.URL(url).origin(): url for url in (gateway.upstream.token_url, gateway.upstream.graphql_url)}
    for origin, url in urls.items():
        reached.append(f"{origin.host}:{origin.port} {'with' if origin.scheme == 'https' else 'without'} TLS")
        try:
            async with gateway.http.head(url, timeout=_SECONDS, allow_redirects=False) as response:
                status, date = response.status, response.headers.get("Date")
        except (aiohttp.ClientError, OSError) as error:  # TimeoutError is an OSError
            if problem := _of_route(subject, origin, error):
                raise problem from error
            continue  # a server without a response to HEAD can be reached all the same
        if status == errors.UpstreamLoop.status:
            text = f"{origin.host} is a v3bridge, perhaps this one: its requests would never end"
            advice = "set upstream.connect_to to the address of the service, or remove its line from the hosts file"
            raise Problem(text, advice)
        if date:
            subject.dates[origin.host or ""] = date
    return ", ".join(reached)


def _of_route(subject: Subject, origin: yarl.URL, error: Exception) -> Problem | None:
    """Return the problem of the step at which a request has failed; None if it was sent."""
    host, proxy = origin.host, subject.gateway.upstream.proxy
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        reason = getattr(error.certificate_error, "verify_message", "it is refused")
        advice = "where a device inspects TLS, name its root certificate in SSL_CERT_FILE; else check the clock"
        return Problem(f"the certificate of {host} is refused: {reason}", advice)
    if isinstance(error, aiohttp.ClientHttpProxyError) or (proxy and origin.scheme == "https"):
        status = getattr(error, "status", "no response")  # its text may have the password
        advice = "check its rules, and upstream.proxy: http://NAME:PASSWORD@HOST:PORT, best as env:NAME"
        return Problem(f"the proxy makes no connection to {host}: {status}", advice)
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
        is_tls = isinstance(getattr(error, "os_error", None), ssl.SSLError)
        advice = "check http:// or https://, and the port" if is_tls else f"check port and firewall; {PROXY_ADVICE}"
        return Problem(f"no connection{' with TLS' if is_tls else ''} to {host}:{origin.port}: {error}", advice)
    return None


async def clock(subject: Subject, _: str) -> str:
    """Compare this machine's clock with the Date header of each host, whose unit is a second."""
    for host, date in subject.dates.items():
        try:
            behind = parsedate_to_datetime(date).timestamp() - subject.clock.now()
        except (ValueError, OverflowError):
            continue
        if abs(behind) > TOLERANCE:
            direction = "behind" if behind > 0 else "ahead of"
            text = f"it is {wording.duration(round(abs(behind) / 60) * 60)} {direction} that of {host}"
            advice = "synchronize it (chrony, systemd-timesyncd or ntpd): usage is booked on wrong days and months"
            raise Problem(text, advice, is_warning=abs(behind) < CLOCK_WRONG_SECONDS)
    return f"agrees with that of {' and '.join(subject.dates) or 'nobody: no host says what time it is'}"
