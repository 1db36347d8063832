"""Probe requests over HTTP: each is sent once, with a client of its own, and its response is kept as it is."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import aiohttp
import msgspec

from proxy.conformance.assumptions import ProbeRequest
from proxy.kit.clock import Clock

# Seconds between token requests: the identity service allows two a second (contract graphql.md §4.1).
TOKEN_INTERVAL = 0.5
_FORM = "application/x-www-form-urlencoded"
_MEDIA_TYPE = "application/json"


@dataclass(frozen=True, slots=True)
class Account:
    """Credentials of an application, and its plan features (None: all). `form` replaces fields of its token request;
    `token` is a token that exists."""

    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    form: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    token: str | None = field(default=None, repr=False)
    application_id: str = ""
    features: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """Services under test. `accounts` holds the application under test under None, and others by the condition
    (`needs`) that they meet. `interval`: seconds between queries."""

    graphql_url: str
    token_url: str
    accounts: Mapping[str | None, Account]
    scope: str = "supply.domain"
    interval: float = 0.0


class ProbeResponse(msgspec.Struct, frozen=True):
    """HTTP response to a probe request: what expressions observe. Header names are in lower case; `body` is decoded
    JSON, else text."""

    status: int
    headers: dict[str, str]
    body: Any


class ProbeError(Exception):
    """A request has no response, or could not be sent. The message is the reason, without credentials."""


class Pacer:
    """Keeps a minimum interval in seconds between requests."""

    def __init__(self, interval: float, clock: Clock, sleep: Callable[[float], Awaitable[None]]) -> None:
        self._interval, self._clock, self._sleep = interval, clock, sleep
        self._last: float | None = None

    async def wait(self) -> None:
        """Wait until the next request may be sent."""
        if self._last is not None:
            pause = self._last + self._interval - self._clock.monotonic()
            if pause > 0:
                await self._sleep(pause)
        self._last = self._clock.monotonic()


class Prober:
    """Sends probe requests, and requests one token for each account that they need. `token_requests` counts both kinds
    of token requests."""

    def __init__(
        self,
        target: Target,
        session: aiohttp.ClientSession,
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._target, self._session = target, session
        self._token_pacer = Pacer(TOKEN_INTERVAL, clock, sleep)
        self._query_pacer = Pacer(target.interval, clock, sleep)
        self._tokens: dict[Account, str | ProbeError] = {}
        self.token_requests = 0

    async def send(self, request: ProbeRequest) -> ProbeResponse:
        """Send the request. Raises ProbeError."""
        account = self._target.accounts[request.needs]
        values = {
            "client_id": account.client_id,
            "client_secret": account.client_secret,
            "application_id": account.application_id,
            "graphql_url": self._target.graphql_url,
            "token_url": self._target.token_url,
        }
        # Only where it is used: probes of the identity service need no token of their own.
        if request.kind == "graphql" or "{token}" in str(msgspec.to_builtins(request)):
            values["token"] = await self._token(account)
        if request.kind == "token":
            return await self._send_token_request(request, values)
        await self._query_pacer.wait()
        if request.kind == "http":
            return await self._exchange(request, values, _filled(request.url, values), request.body, {})
        headers = {"Authorization": f"Bearer {values['token']}", "Content-Type": _MEDIA_TYPE, "Accept": _MEDIA_TYPE}
        return await self._exchange(request, values, self._target.graphql_url, _query(request), headers)

    async def _send_token_request(self, request: ProbeRequest, values: Mapping[str, str]) -> ProbeResponse:
        await self._token_pacer.wait()
        self.token_requests += 1
        form = {name: _filled(value, values) for name, value in request.form.items()}
        # A body is sent as it is, so that a request that is not a form can be probed, too.
        body = request.body if request.body is not None else urlencode(form)
        headers = {"Content-Type": _FORM, "Accept": _MEDIA_TYPE}
        return await self._exchange(request, values, self._target.token_url, body, headers)

    @property
    def secrets(self) -> frozenset[str]:
        """Everything that was sent or received and must not be shown."""
        accounts = self._target.accounts.values()
        configured = {value for each in accounts for value in (each.client_id, each.client_secret, each.token)}
        ids = {each.application_id for each in accounts}
        received = {token for token in self._tokens.values() if isinstance(token, str)}
        return frozenset(value for value in (configured | ids | received) if value)

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
        if account.token is not None:
            return account.token
        form = {
            "grant_type": "client_credentials",
            "client_id": account.client_id,
            "client_secret": account.client_secret,
            "scope": self._target.scope,
            **dict(account.form),
        }
        response = await self._send_token_request(ProbeRequest(kind="token", form=form), {})
        token = response.body.get("access_token") if isinstance(response.body, dict) else None
        if not isinstance(token, str):
            reason = response.body.get("error", "") if isinstance(response.body, dict) else ""
            raise ProbeError(f"no access token: the identity service responded {response.status} {reason}".rstrip())
        return token

    async def _exchange(
        self, request: ProbeRequest, values: Mapping[str, str], url: str, body: str | None, headers: dict[str, str]
    ) -> ProbeResponse:
        given = {name.title(): value for name, value in request.headers.items()}
        changed = {name: _filled(value, values) for name, value in (headers | given).items() if value is not None}
        data = None if body is None else _filled(body, values).encode()
        # aiohttp would add a type of its own to a body without one.
        skipped = ("Content-Type", "Accept")
        try:
            async with self._session.request(
                request.method, url, data=data, headers=changed, allow_redirects=False, skip_auto_headers=skipped
            ) as response:
                return ProbeResponse(response.status, _headers(response), _decoded(await response.read()))
        except TimeoutError:
            raise ProbeError("no response in time") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise ProbeError(f"no response: {type(error).__name__}") from None


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


def _decoded(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body.decode("utf-8", "replace")
