"""Probe requests over HTTP: each is sent once, with a client of its own, and its response is kept as it is."""

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote_plus, urlencode

import aiohttp
import msgspec

from proxy.kit.clock import Clock
from proxy.tools.conform.assumptions import ProbeRequest

# Token requests a second: the identity service allows two (contract graphql.md §4.1). A little less, because it counts
# from when the first one arrives, which may be later than the second one's way takes.
TOKENS_A_SECOND = 1.6
_TOKEN_PATH = "/connect/token"  # noqa: S105 - a path
_FORM = "application/x-www-form-urlencoded"
_MEDIA_TYPE = "application/json"


Sleep = Callable[[float], Awaitable[None]]


class RequestPacer:
    """Rate limit of `a_second` requests, evenly spaced; 0 is unlimited."""

    def __init__(self, a_second: float, clock: Clock, sleep: Sleep) -> None:
        self._apart = 1 / a_second if a_second else 0.0
        self._clock = clock
        self._sleep = sleep
        self._next = 0.0

    async def turn(self) -> None:
        now = self._clock.monotonic()
        at = max(now, self._next)
        self._next = at + self._apart
        if at > now:
            await self._sleep(at - now)

    def hold(self, seconds: float) -> None:
        """Delay all requests by at least `seconds` from now."""
        self._next = max(self._next, self._clock.monotonic() + seconds)


@dataclass(frozen=True, slots=True)
class Account:
    """Credentials of an application, and its plan features (None: all)."""

    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    features: frozenset[str] | None = None

    @property
    def basic_credentials(self) -> str:
        """Client id and secret, encoded for a Basic header (RFC 6749 §2.3.1)."""
        return base64.b64encode(f"{quote_plus(self.client_id)}:{quote_plus(self.client_secret)}".encode()).decode()


@dataclass(frozen=True, slots=True)
class Target:
    """Services under test. `accounts` holds the application under test under None, and others by the condition
    (`needs`) that they meet. `queries_a_second` and `tokens_a_second` are rate limits; 0: none."""

    graphql_url: str
    token_url: str
    accounts: Mapping[str | None, Account]
    scope: str = "supply.domain"
    queries_a_second: float = 0.0
    tokens_a_second: float = TOKENS_A_SECOND


class ProbeResponse(msgspec.Struct, frozen=True):
    """HTTP response to a probe request: what expressions observe. Header names are in lower case; `body` is decoded
    JSON, else text; `text` is the body as received, after so many `seconds`."""

    status: int
    headers: dict[str, str]
    body: Any
    text: str = ""
    seconds: float = 0.0

    @property
    def token(self) -> str | None:
        """The access token in a token response."""
        token = self.body.get("access_token") if isinstance(self.body, dict) else None
        return token if isinstance(token, str) else None


class ProbeError(Exception):
    """A request has no response, or could not be sent. The message is the reason, without credentials."""

    def __init__(self, reason: str, *, was_sent: bool = False) -> None:
        super().__init__(reason)
        self.was_sent = was_sent


class Prober:
    """Sends probe requests, and requests one token for each account that they need. `token_requests` counts both kinds
    of token requests."""

    def __init__(
        self,
        target: Target,
        session: aiohttp.ClientSession,
        clock: Clock,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._target, self._session, self._clock = target, session, clock
        self._token_pacer = RequestPacer(target.tokens_a_second, clock, sleep)
        self._query_pacer = RequestPacer(target.queries_a_second, clock, sleep)
        self._tokens: dict[Account, str | ProbeError] = {}
        self._earlier_tokens: dict[Account, str] = {}
        self._received: set[str] = set()
        self.token_requests = 0

    async def log_in(self) -> None:
        """Request the token of the application under test. Raises ProbeError."""
        await self._token(self._target.accounts[None])

    async def send(self, request: ProbeRequest) -> ProbeResponse:
        """Send the request. Raises ProbeError."""
        account = self._target.accounts[request.needs]
        values = {
            "client_id": account.client_id,
            "client_secret": account.client_secret,
            # Without a slash at its end, so that requests can add one.
            "graphql_url": self._target.graphql_url.rstrip("/"),
            "token_url": self._target.token_url,
            "identity_url": self._target.token_url.removesuffix(_TOKEN_PATH),
            "basic_credentials": account.basic_credentials,
        }
        texts = str(msgspec.to_builtins(request))
        # Only where it is used: probes of the identity service need no token of their own.
        if request.kind == "graphql" or "{token}" in texts:
            values["token"] = await self._token(account)
        if "{earlier_token}" in texts:
            if account not in self._earlier_tokens:
                raise ProbeError("there is no second access token")
            values["earlier_token"] = self._earlier_tokens[account]
        if request.renews_token:
            return await self._renew_token(request, values, account)
        if request.kind == "token":
            return await self._send_token_request(request, values)
        await self._query_pacer.turn()
        if request.kind == "http":
            return await self._exchange(request, values, _filled(request.url, values), request.body, {})
        headers = {"Authorization": f"Bearer {values['token']}", "Content-Type": _MEDIA_TYPE, "Accept": _MEDIA_TYPE}
        return await self._exchange(request, values, self._target.graphql_url, _query(request), headers)

    async def _send_token_request(self, request: ProbeRequest, values: Mapping[str, str]) -> ProbeResponse:
        await self._token_pacer.turn()
        self.token_requests += 1
        form = {name: _filled(value, values) for name, value in request.form.items()}
        # A body is sent as it is, so that a request that is not a form can be probed, too.
        body = request.body if request.body is not None else urlencode(form)
        headers = {"Content-Type": _FORM, "Accept": _MEDIA_TYPE}
        response = await self._exchange(request, values, self._target.token_url, body, headers)
        if response.token is not None:
            self._received.add(response.token)
        return response

    async def _renew_token(self, request: ProbeRequest, values: Mapping[str, str], account: Account) -> ProbeResponse:
        earlier = await self._token(account)
        response = await self._send_token_request(request, values)
        if response.token is not None:
            self._earlier_tokens[account], self._tokens[account] = earlier, response.token
        return response

    @property
    def secrets(self) -> frozenset[str]:
        """Everything that was sent or received and must not be shown."""
        accounts = self._target.accounts.values()
        configured = {value for each in accounts for value in (each.client_id, each.client_secret)}
        encoded = {each.basic_credentials for each in accounts}
        return frozenset(value for value in (configured | encoded | self._received) if value)

    async def _token(self, account: Account) -> str:
        """Return the access token of an account, which is requested once, whether or not that succeeds."""
        if account not in self._tokens:
            try:
                self._tokens[account] = await self._request_token(account)
            except ProbeError as error:
                self._tokens[account] = error
        token = self._tokens[account]
        if isinstance(token, ProbeError):
            raise token
        return token

    async def _request_token(self, account: Account) -> str:
        form = {
            "grant_type": "client_credentials",
            "client_id": account.client_id,
            "client_secret": account.client_secret,
            "scope": self._target.scope,
        }
        response = await self._send_token_request(ProbeRequest(kind="token", form=form), {})
        if response.token is None:
            reason = response.body.get("error", "") if isinstance(response.body, dict) else ""
            raise ProbeError(f"no access token: the identity service responded {response.status} {reason}".rstrip())
        return response.token

    async def _exchange(
        self, request: ProbeRequest, values: Mapping[str, str], url: str, body: str | None, headers: dict[str, str]
    ) -> ProbeResponse:
        given = {name.title(): value for name, value in request.headers.items()}
        changed = {name: _filled(value, values) for name, value in (headers | given).items() if value is not None}
        data = None if body is None else _filled(body, values).encode()
        # aiohttp would add a type of its own to a body without one.
        skipped = ("Content-Type", "Accept")
        began = self._clock.monotonic()
        try:
            async with self._session.request(
                request.method, url, data=data, headers=changed, allow_redirects=False, skip_auto_headers=skipped
            ) as response:
                content = await response.read()
                return _response(response, content, self._clock.monotonic() - began)
        except TimeoutError:
            raise ProbeError("no response in time", was_sent=True) from None
        except aiohttp.ClientConnectorError:
            raise ProbeError("no connection") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise ProbeError(f"no response: {type(error).__name__}", was_sent=True) from None


def _query(request: ProbeRequest) -> str:
    if request.body is not None:
        return request.body
    variables = {} if request.variables is None else {"variables": request.variables}
    return json.dumps({"query": request.document, **variables})


def _filled(text: str, values: Mapping[str, str]) -> str:
    # Not str.format: GraphQL documents and JSON are full of braces.
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def _headers(response: aiohttp.ClientResponse) -> dict[str, str]:
    names = {name.lower() for name in response.headers}
    return {name: ", ".join(response.headers.getall(name)) for name in sorted(names)}


def _response(response: aiohttp.ClientResponse, content: bytes, seconds: float) -> ProbeResponse:
    text = content.decode("utf-8", "replace")
    try:
        body = json.loads(text)
    except ValueError:
        body = text
    return ProbeResponse(response.status, _headers(response), body, text, seconds)
