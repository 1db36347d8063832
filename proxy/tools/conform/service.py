"""Services under test, over HTTP: each probe is sent once, by a client of its own, and its answer kept as it is."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp

MAIN, NO_PARTS, NO_SPECS = "", "an application without parts (`parts: 0`)", "an application without TECH_SPECS"
# Seconds between requests: the vendor advises at most 300 queries a minute (contract graphql.md §2.1), and the identity
# service allows two tokens a second (§4.1), counted from when the first one arrives.
QUERY_PAUSE, TOKEN_PAUSE = 0.2, 0.65
SCOPE = "supply.domain"


@dataclass(frozen=True, eq=False)
class Probe:
    """GraphQL request, or a token request without a document. `parts` is the most that it can cost, `account` which
    application sends it; `features` are those of a plan that its selection needs; `token` replaces the access token.
    Where `only_if` is false for the answer to the probe `after`, it is not sent to a service that is paid for."""

    document: str = ""
    variables: Mapping[str, Any] = field(default_factory=dict)
    parts: int = 0
    account: str = MAIN
    features: tuple[str, ...] = ()
    token: str | None = None
    after: "Probe | None" = None
    only_if: Callable[["Answer"], bool] = lambda _: True


@dataclass(frozen=True)
class Answer:
    """Response: decoded JSON, else text; `returned` part objects at root fields, and the parts that the service has
    `billed`, where it has a ledger."""

    status: int
    body: Any
    returned: int = 0
    billed: int | None = None

    @property
    def data(self) -> Any:
        return self.body["data"]

    @property
    def errors(self) -> list[dict[str, Any]]:
        found = self.body.get("errors") if isinstance(self.body, dict) else None
        return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []

    @property
    def messages(self) -> list[str]:
        return [str(each.get("message")) for each in self.errors]


@dataclass(frozen=True)
class Account:
    """Credentials of an application, and its plan features (None: all)."""

    client_id: str
    client_secret: str = field(repr=False)
    features: frozenset[str] | None = None


class ProbeError(Exception):
    """A probe has no answer. The message is the reason, without credentials."""

    def __init__(self, reason: str, *, was_sent: bool = False) -> None:
        super().__init__(reason)
        self.was_sent = was_sent


@dataclass
class Service:
    """Services under test; `accounts` are by what they meet, `ledger` counts the parts that were billed so far."""

    graphql_url: str
    token_url: str
    accounts: Mapping[str, Account]
    session: aiohttp.ClientSession
    ledger: Callable[[], int] | None = None
    pauses: tuple[float, float] = (QUERY_PAUSE, TOKEN_PAUSE)
    _tokens: dict[str, str] = field(default_factory=dict)

    async def send(self, probe: Probe) -> Answer:
        """Send a probe. Raises ProbeError."""
        if not probe.document:
            return await self._request_token(probe.account)
        if probe.account not in self._tokens:
            answer = await self._request_token(probe.account)
            token = answer.body.get("access_token") if isinstance(answer.body, dict) else None
            if not isinstance(token, str):
                raise ProbeError(f"no access token: the identity service responded {answer.status}")
            self._tokens[probe.account] = token
        await asyncio.sleep(self.pauses[0])
        token = self._tokens[probe.account] if probe.token is None else probe.token
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        before = self.ledger() if self.ledger else 0
        query = {"query": probe.document, "variables": probe.variables}
        answer = await self._post(self.graphql_url, headers, json=query)
        billed = self.ledger() - before if self.ledger else None
        return Answer(answer.status, answer.body, _returned(answer.body), billed)

    async def _request_token(self, account: str) -> Answer:
        await asyncio.sleep(self.pauses[1])
        own = self.accounts[account]
        form = {"client_id": own.client_id, "client_secret": own.client_secret, "scope": SCOPE}
        return await self._post(self.token_url, {}, data={"grant_type": "client_credentials", **form})

    async def _post(self, url: str, headers: dict[str, str], **content: Any) -> Answer:
        try:
            async with self.session.post(url, headers=headers, allow_redirects=False, **content) as response:
                text, status = await response.text("utf-8", "replace"), response.status
        except TimeoutError:
            raise ProbeError("no answer in time", was_sent=True) from None
        except aiohttp.ClientConnectorError:
            raise ProbeError("no connection") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise ProbeError(f"no answer: {type(error).__name__}", was_sent=True) from None
        try:
            return Answer(status, json.loads(text))
        except ValueError:
            return Answer(status, text)


def _returned(body: Any) -> int:
    """Count the part objects at root fields, which the service bills (contract graphql.md §6)."""
    data = body.get("data") if isinstance(body, dict) else None
    return sum(map(_parts, data.values())) if isinstance(data, dict) else 0


def _parts(root: Any) -> int:
    if isinstance(root, dict):  # a search
        return sum(isinstance(each.get("part"), dict) for each in root.get("results") or () if isinstance(each, dict))
    listed = [each for each in root if isinstance(each, dict)] if isinstance(root, list) else []
    return sum(len(each.get("parts") or ()) if "parts" in each else "mpn" in each for each in listed)
