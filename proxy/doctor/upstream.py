"""Checks of the upstream, by HEAD requests without credentials, then by operations that return no part, with the
service's own tokens and their limits. An exhausted limit shows in the error of a search for a part that nobody has.
"""

import asyncio
import re
import socket
import ssl
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Any

import aiohttp
import yarl

from proxy import config, errors, model
from proxy.doctor import Problem, Subject
from proxy.kit import counted, duration
from proxy.planning import documents, queries
from proxy.planning.documents import Document, PartialData

TOLERANCE = 60.0  # seconds that clocks may differ
CLOCK_WRONG_SECONDS = 300.0  # from which a clock is wrong; less than that, but more than the tolerance, is a warning
# The variable is not read, so that requests do not depend on who starts the program.
PROXY_ADVICE = "where only a proxy leads out, set upstream.proxy: HTTPS_PROXY of the environment is not read"
HEAD_SECONDS = aiohttp.ClientTimeout(sock_connect=config.CONNECT_SECONDS, sock_read=config.CONNECT_SECONDS)
SECONDS = 30.0  # that an operation may take, or a token request
LOW_PERCENT = 90.0
TECH_SPECS = "TECH_SPECS"  # the only feature that shows without a part, because aggregations need it
FEATURE = re.compile(rf"{TECH_SPECS}|\bfeature\b")
NOBODYS = "v3bridge-doctor-matches-no-part"
MARKET = {"country": "US", "currency": "USD"}
FREE = Document("probe", "query probe { supCategories { id } }", dict[str, Any]).operation({}, 0)
PLAN = documents.count(frozenset({"specAggs"})).operation(
    {"q": NOBODYS, **MARKET, "limit": 0, "size": 1, "attributes": ["resistance"], "selection": "EXPLICIT"}, 0
)
REFERENCES = ["3", "1", "4", "2", "5"]
ORDER = Document(
    "orderCheck",
    "query orderCheck($queries: [SupPartMatchQuery!]!) { supMultiMatch(queries: $queries) { reference } }",
    dict[str, Any],
).operation({"queries": [{"mpn": f"{NOBODYS}-{each}", "limit": 1, "reference": each} for each in REFERENCES]}, 0)


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
    gateway = subject.gateway
    urls = {yarl.URL(url).origin(): url for url in (gateway.upstream.token_url, gateway.upstream.graphql_url)}
    for origin, url in urls.items():
        try:
            async with gateway.http.head(url, timeout=HEAD_SECONDS, allow_redirects=False) as response:
                status, date = response.status, response.headers.get("Date")
        except (aiohttp.ClientError, OSError) as error:  # TimeoutError is an OSError
            host = origin.host
            if isinstance(error, aiohttp.ClientConnectorCertificateError):
                reason = getattr(error.certificate_error, "verify_message", "it is refused")
                advice = "where a device inspects TLS, name its root certificate in SSL_CERT_FILE; else check the clock"
                raise Problem(f"the certificate of {host} is refused: {reason}", advice) from error
            if isinstance(error, aiohttp.ClientHttpProxyError) or (gateway.upstream.proxy and origin.scheme == "https"):
                why = getattr(error, "status", "no response")  # its text may have the password
                advice = "check its rules, and upstream.proxy: http://NAME:PASSWORD@HOST:PORT, best as env:NAME"
                raise Problem(f"the proxy makes no connection to {host}: {why}", advice) from error
            if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
                what, advice = "connection", f"check port and firewall; {PROXY_ADVICE}"
                if isinstance(getattr(error, "os_error", None), ssl.SSLError):
                    what, advice = "connection with TLS", "check http:// or https://, and the port"
                raise Problem(f"no {what} to {host}:{origin.port}: {error}", advice) from error
            continue  # a server without a response to HEAD can be reached all the same
        if status == errors.UpstreamLoop.status:
            text = f"{origin.host} is a v3bridge, perhaps this one: its requests would never end"
            advice = "set upstream.connect_to to the address of the service, or remove its line from the hosts file"
            raise Problem(text, advice)
        if date:
            subject.dates[origin.host or ""] = date
    return ", ".join(f"{each.host}:{each.port} {'with' if each.scheme == 'https' else 'without'} TLS" for each in urls)


async def clock(subject: Subject, _: str) -> str:
    """Compare this machine's clock with the Date header of each host, whose unit is a second."""
    for host, date in subject.dates.items():
        with suppress(ValueError, OverflowError):  # of a date that is none
            behind = parsedate_to_datetime(date).timestamp() - subject.clock.now()
            if abs(behind) > TOLERANCE:
                direction = "behind" if behind > 0 else "ahead of"
                text = f"it is {duration(round(abs(behind) / 60) * 60)} {direction} that of {host}"
                advice = "synchronize it (chrony, systemd-timesyncd or ntpd): usage is booked on wrong days and months"
                raise Problem(text, advice, is_warning=abs(behind) < CLOCK_WRONG_SECONDS)
    return f"agrees with that of {' and '.join(subject.dates) or 'nobody: no host says what time it is'}"


async def token(subject: Subject, name: str) -> str:
    """Get the access token of an application, from the store or by a token request."""
    await subject.gateway.tokens.get(subject.gateway.applications.by_name[name].credentials, SECONDS)
    return "the identity service gives a token"


async def scope(subject: Subject, name: str) -> str:
    """Try the token by a free operation; one from the store that is refused is replaced."""
    await _sent(subject, name, FREE)
    return "the GraphQL service accepts the token for supply data"


async def _sent(subject: Subject, name: str, operation: model.EncodedOperation) -> Any:
    """Send an operation that returns no part. Return its data, or why the query or the quota is refused."""
    gateway = subject.gateway
    application, deadline = gateway.applications.by_name[name], gateway.clock.monotonic() + SECONDS
    try:
        return await gateway.free.execute(application, operation, deadline)
    except (errors.QueryRefused, errors.QuotaExhausted) as error:
        return error


async def plan(subject: Subject, name: str) -> str:
    """Compare part limit and features of a plan with what is configured and used."""
    found = await _sent(subject, name, PLAN)
    if isinstance(found, errors.QuotaExhausted):
        raise Problem(found.message, "upgrade the plan, or wait for the 1st of the month; an evaluation has no reset")
    application = subject.settings.applications[name]
    # The error's text and path are not documented (contract graphql.md §11).
    reported = found.reported if isinstance(found, PartialData | errors.QueryRefused) else ()
    lacks = any("specAggs" in (each.path or "") or FEATURE.search(each.message) for each in reported)
    if lacks == (TECH_SPECS in application.allowed_features) and application.features != "unknown":
        text = f"the plan {'lacks' if lacks else 'has'} {TECH_SPECS}, and `features` say otherwise"
        by_init = "" if lacks else "; init does so, if you let it fetch its part"
        raise Problem(text, f"correct `features` of the application{by_init}", is_warning=not lacks)
    (row,) = (row for row in await subject.gateway.state.usage() if row.name == name)
    if row.exhausted_until is not None:
        text = "the store has the quota as exhausted, but the upstream accepts requests"
        raise Problem(text, f"run `v3bridge usage --set {name}=PARTS` with the parts that the portal shows as used")
    spent, specs = row.used + row.uncertain, f"{'without' if lacks else 'with'} {TECH_SPECS}"
    if row.limit is None:
        return f"{counted(spent, 'part')} used, no limit, {specs}"
    end = f" until {row.resets_at[:10]}" if row.resets_at else ", and no reset"
    text = f"{row.remaining:,} of {counted(row.limit, 'part')} left{end}"
    if 100 * spent >= LOW_PERCENT * row.limit:
        advice = "see `v3bridge usage` for the keys that use them, and raise `parts` if the plan has more"
        raise Problem(text, advice, is_warning=bool(row.remaining))
    return f"{text}, {specs}"


async def schema(subject: Subject, name: str) -> str:
    """Have the upstream validate the documents by which parts are fetched, for parts that nobody has."""
    projections = documents.ProjectionCache(subject.gateway.mappings)
    whole = documents.of_parts(projections.whole(projections.features).selection)
    sought = [queries.matching(0, 1, mpn=NOBODYS), queries.part("0" * 16)]
    sought += [queries.of_list(root, 0, 0, {"q": NOBODYS}) for root in ("supSearch", "supSearchMpn")]
    operations = [queries.operation(whole, [query.fetch()], **MARKET) for query in sought]
    found = [await _sent(subject, name, operation) for operation in operations]
    if refused := dict.fromkeys(each.message for each in found if isinstance(each, errors.QueryRefused)):
        advice = "correct upstream.site, if the field has its name; else update v3bridge, or report this text"
        raise Problem("; ".join(refused), advice)
    return f"the upstream knows all fields of {', '.join(query.root for query in sought)}"


async def order(subject: Subject, name: str) -> str:
    """Check that a supMultiMatch has its results in the order of its queries, by which they are told apart."""
    found = await _sent(subject, name, ORDER)
    if isinstance(found, errors.BridgeError | PartialData):
        return f"not checked: {getattr(found, 'message', 'errors came with the data')}"
    if [each["reference"] for each in found["supMultiMatch"]] != REFERENCES:
        text = "results of supMultiMatch do not come in the order of its queries"
        raise Problem(text, "do not use the proxy: parts would be mixed up; report this text")
    return "results of supMultiMatch come in the order of the queries"
