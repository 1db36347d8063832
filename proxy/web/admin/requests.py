"""What a request to the admin interface says about itself: its origin, its address, and what its sender can show."""

import asyncio
import ipaddress
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from aiohttp import hdrs, web

from proxy import errors
from proxy.web.client_address import ClientAddressResolver, parse_address

LOOPBACK = ("127.0.0.0/8", "::1/128")
FORM_SECONDS = 10.0  # in which a form is sent; few connections are admitted, and nothing else ends them
_FORM = re.compile(r'application/x-www-form-urlencoded *(; *charset="?utf-8"?)?', re.IGNORECASE)
_JSON_SUFFIX = ".json"


def wants_page(request: web.Request) -> bool:
    """Return whether the sender is a browser that shows the response as a page."""
    return not request.path.endswith(_JSON_SUFFIX) and "text/html" in request.headers.get(hdrs.ACCEPT, "")


def is_loopback_name(host: str) -> bool:
    """Return whether a host name of a URL stands for the machine that uses it."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    address = parse_address(host)
    return address is not None and address.is_loopback


def host_name(request: web.Request) -> str:
    """Return the name of the header Host, without a port."""
    try:
        return (urlsplit(f"//{request.host}").hostname or "").rstrip(".")
    except ValueError:
        return ""


class Transport:
    """How requests arrive: directly, or through TLS fronts, which are trusted proxies and programs of this machine."""

    def __init__(self, trusted: tuple[str, ...], host: str) -> None:
        self.addresses = ClientAddressResolver((*trusted, *LOOPBACK))
        self._certain = ClientAddressResolver(trusted)
        self._fronts = tuple(ipaddress.ip_network(network) for network in (*trusted, *LOOPBACK))
        self._host = host

    def is_private(self, request: web.Request) -> bool:
        """Return whether no third party can read the request: TLS, or a browser on the machine it is sent to.

        That is also where browsers keep Secure cookies. A tunnel (ssh -L) and a published port of a container are
        loopback for the browser, wherever this process is: the header Host tells.
        """
        forwarded = request.headers.get("X-Forwarded-Proto", "") if self._is_front(request) else ""
        return request.secure or forwarded == "https" or (not forwarded and is_loopback_name(host_name(request)))

    def is_address_claimed(self, request: web.Request) -> bool:
        """Return whether any program of this machine could have chosen the client's address."""
        return self.addresses.from_request(request) != self._certain.from_request(request)

    def check_host(self, request: web.Request) -> None:
        """Raise BadRequest for a name that another site may have given to a loopback address (DNS rebinding)."""
        name = host_name(request)
        local = request.get_extra_info("sockname")
        listens_on = parse_address(str(local[0])) if local else None
        if listens_on is None or not listens_on.is_loopback or name == self._host.lower():
            return
        if not is_loopback_name(name) and parse_address(name) is None:
            raise errors.BadRequest(
                "the admin interface is reached at 127.0.0.1 or localhost; a proxy in front must set the header Host to"
                " the address that it connects to"
            )

    def _is_front(self, request: web.Request) -> bool:
        peer = parse_address(request.remote or "")
        return peer is not None and any(peer in network for network in self._fronts)


def check_same_site(request: web.Request) -> None:
    """Raise ForbiddenOrigin for a form of another site."""
    site = request.headers.get("Sec-Fetch-Site")
    # Browsers that send it cannot be told to lie; it is also right where a proxy changes Host.
    if site is not None:
        if site not in ("same-origin", "none"):
            raise ForbiddenOrigin
        return
    origin = request.headers.get(hdrs.ORIGIN)
    if origin is not None and urlsplit(origin).netloc != request.host:
        raise ForbiddenOrigin


async def form(request: web.Request) -> Mapping[str, str]:
    """Return the fields of a form. Raises UnsupportedForm for a body that is no plain form in UTF-8, and SlowForm."""
    if not request.body_exists:
        return {}
    # Compared and not parsed: aiohttp's parser takes seconds for 16 KiB of parameters. It also writes files to disk,
    # and decodes fields by any codec that their sender names: 256 KiB of Punycode take five seconds.
    sent = request.headers.getall(hdrs.CONTENT_TYPE, ())
    if hdrs.CONTENT_ENCODING in request.headers or any(_FORM.fullmatch(content_type) is None for content_type in sent):
        raise UnsupportedForm
    try:
        async with asyncio.timeout(FORM_SECONDS):
            fields = await request.post()
    except TimeoutError:
        raise SlowForm from None
    return {name: value for name in fields if isinstance(value := fields[name], str)}


class UnsupportedForm(errors.ClientError):
    """A body that is no plain form in UTF-8."""

    status = 415

    def __init__(self) -> None:
        super().__init__(
            "the fields of a form are sent as application/x-www-form-urlencoded, in UTF-8 and not compressed"
        )


class SlowForm(errors.ClientError):
    """A form that was not sent in time."""

    status = 408

    def __init__(self) -> None:
        super().__init__(f"the form was not sent within {FORM_SECONDS:.0f} seconds")


class ForbiddenOrigin(errors.ClientError):
    """A form that this interface did not make, or made for another session."""

    status = 403

    def __init__(self) -> None:
        super().__init__("this form was not sent by a page of your session: open the page again and repeat it")
