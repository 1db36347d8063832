"""One run of conformance: selects the probes that budget and accounts allow, sends each once over HTTP, by a client of
its own, and judges the assumptions by the answers as they are."""

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import aiohttp
import msgspec

from proxy.kit import counted
from proxy.redaction import HIDDEN, Redaction

MAIN, NO_PARTS, NO_SPECS = "", "an application without parts (`parts: 0`)", "an application without TECH_SPECS"
# Seconds between requests: the vendor advises at most 300 queries a minute (contract graphql.md §2.1), and the identity
# service allows two tokens a second (§4.1), counted from when the first one arrives.
QUERY_PAUSE, TOKEN_PAUSE = 0.2, 0.65
SCOPE = "supply.domain"
Verdict = Literal["confirmed", "contradicted", "not tested"]
# The service is unavailable, or wants less traffic: nothing that an assumption is about.
UNAVAILABLE = (429, 502, 503, 504)
UNANSWERED_MAX = 3  # probes in a row without an answer, after which a run ends: each may have been billed
UNEXPECTED = (LookupError, TypeError, ValueError, AttributeError)  # of functions, by an answer of another shape
PART_LIMIT = "You have exceeded your part limit"
# Ids of applications, organizations, users and requests; tokens; e-mail addresses: a user sends results in.
_PRIVATE = re.compile(
    r"[0-9a-fA-F]{8}(?:-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}|eyJ[\w-]+\.[\w-]+(?:\.[\w-]+)?"
    r"|(?!api@nexar\.com)[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
)


@dataclass(frozen=True, eq=False)
class Probe:
    """GraphQL request. `parts` is the most that it can cost, `account` which application sends it; `features` are those
    of a plan that its selection needs; `token` replaces the access token. `after_new_token`: it is sent with a token
    when another one has been requested."""

    document: str
    variables: Mapping[str, Any] = field(default_factory=dict)
    parts: int = 0
    account: str = MAIN
    features: tuple[str, ...] = ()
    token: str | None = None
    after_new_token: bool = False


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


class NotTested(Exception):  # noqa: N818 (named by what has happened)
    """The answers say nothing about the assumption, for this reason."""


class Assumption(NamedTuple):
    """Assumption: its name, the question, the evidence, what depends on it, its probe, and the function that checks the
    answer: it returns True, or what was observed instead."""

    name: str
    question: str
    evidence: str
    matters: str
    probe: Probe
    check: Callable[[Answer], Any]


@dataclass(frozen=True)
class Account:
    """Credentials of an application, and its plan features (None: all)."""

    client_id: str
    client_secret: str = field(repr=False)
    features: frozenset[str] | None = None


@dataclass(eq=False)
class ProbeError(Exception):
    """A probe has no answer, for a reason without credentials."""

    reason: str
    was_sent: bool = False


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
        if probe.account not in self._tokens:
            self._tokens[probe.account] = await self._request_token(probe.account)
        if probe.after_new_token:
            await self._request_token(probe.account)
        await asyncio.sleep(self.pauses[0])
        token = self._tokens[probe.account] if probe.token is None else probe.token
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        before = self.ledger() if self.ledger else 0
        query = {"query": probe.document, "variables": probe.variables}
        answer = await self._post(self.graphql_url, headers, json=query)
        billed = self.ledger() - before if self.ledger else None
        # The service bills the part objects at root fields (contract graphql.md §6).
        data, returned = answer.body.get("data") if isinstance(answer.body, dict) else None, 0
        for root in data.values() if isinstance(data, dict) else ():
            if isinstance(root, dict):  # a search
                results = [each for each in root.get("results") or () if isinstance(each, dict)]
                returned += sum(isinstance(each.get("part"), dict) for each in results)
            else:
                listed = [each for each in root if isinstance(each, dict)] if isinstance(root, list) else []
                returned += sum(len(each.get("parts") or ()) if "parts" in each else "mpn" in each for each in listed)
        return Answer(answer.status, answer.body, returned, billed)

    async def _request_token(self, account: str) -> str:
        await asyncio.sleep(self.pauses[1])
        own = self.accounts[account]
        form = {"client_id": own.client_id, "client_secret": own.client_secret, "scope": SCOPE}
        granted = await self._post(self.token_url, {}, data={"grant_type": "client_credentials", **form})
        token = granted.body.get("access_token") if isinstance(granted.body, dict) else None
        if not isinstance(token, str):
            raise ProbeError(f"no access token: the identity service responded {granted.status}")
        return token

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


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """Outcome of one assumption: what was `observed` where it does not hold, and why it was not tested."""

    name: str
    question: str
    verdict: Verdict
    observed: Any = None
    reason: str = ""


class RunResult(msgspec.Struct, frozen=True):
    """Result of a run, without credentials and ids. `at_worst` is what its probes could return, `returned` are the part
    objects in the answers, `billed` those in the ledger of a sandbox; `uncertain` ones had no answer."""

    outcomes: tuple[Outcome, ...]
    requests: int
    at_worst: int
    returned: int
    uncertain: int
    billed: int | None


class Selection(msgspec.Struct):
    """Probes that a run sends, in their order, with the most parts that they can cost; `left_out` has the reason for
    each of the others."""

    probes: list[Probe]
    left_out: dict[Probe, str]
    at_worst: int = 0


def select(assumptions: Sequence[Assumption], budget: int, service: Service) -> Selection:
    """Select the probes of assumptions whose account there is, up to `budget` parts at worst, cheap ones first."""
    chosen = Selection([], {})
    for probe in sorted(dict.fromkeys(each.probe for each in assumptions), key=lambda probe: probe.parts):
        account = service.accounts.get(probe.account)
        lacking = set(probe.features) - account.features if account and account.features is not None else set()
        if account is None:
            chosen.left_out[probe] = f"needs {probe.account}"
        elif lacking:
            chosen.left_out[probe] = f"the application's plan lacks {', '.join(sorted(lacking))} (`features`)"
        elif chosen.at_worst + probe.parts > budget:
            chosen.left_out[probe] = f"the budget of {counted(budget, 'part')} is too small"
        else:
            chosen.probes.append(probe)
            chosen.at_worst += probe.parts
    return chosen


async def run(
    assumptions: Sequence[Assumption], selection: Selection, service: Service, tell: Callable[[int], None]
) -> RunResult:
    """Send the selected probes and judge the assumptions. `tell` is called with the number of probes that are done."""
    answers: dict[Probe, Answer | str] = {**selection.left_out}  # or the reason why there is none
    sent = unanswered = uncertain = 0
    for done, probe in enumerate(selection.probes, 1):
        if unanswered == UNANSWERED_MAX:
            answers[probe] = f"the service left {UNANSWERED_MAX} requests in a row without an answer"
        else:
            sent += 1
            try:
                answers[probe] = await service.send(probe)
                unanswered = 0
            except ProbeError as error:
                answers[probe] = error.reason
                unanswered += error.was_sent
                uncertain += probe.parts if error.was_sent else 0
        tell(done)
    accounts = service.accounts.values()
    secrets = Redaction([text for each in accounts for text in (each.client_id, each.client_secret)])
    outcomes = tuple(judge(assumption, answers[assumption.probe], secrets) for assumption in assumptions)
    found = [answer for answer in answers.values() if isinstance(answer, Answer)]
    billed = sum(answer.billed or 0 for answer in found) if service.ledger else None
    returned = sum(answer.returned for answer in found)
    return RunResult(outcomes, sent, selection.at_worst, returned, uncertain, billed)


def judge(assumption: Assumption, answer: Answer | str, secrets: Redaction) -> Outcome:
    """Judge one assumption by the answer to its probe, or the reason why there is none; the outcome is without
    `secrets`."""
    probe, observed, reason = assumption.probe, None, ""
    if isinstance(answer, str):
        reason = answer
    elif answer.status in UNAVAILABLE or (answer.status >= 500 and not isinstance(answer.body, dict)):
        reason = f"the service responded {answer.status}"
    elif probe.account == MAIN and any(text.startswith(PART_LIMIT) for text in answer.messages):
        reason = "the application's part limit is exhausted"
    elif answer.status == 401 and probe.token is None:
        reason = "the service does not accept the access token"
    else:
        try:
            observed = assumption.check(answer)
        except NotTested as error:
            reason = str(error)
        except UNEXPECTED:
            observed = [answer.messages or answer.status]
    verdict: Verdict = "not tested" if reason else "confirmed" if observed is True else "contradicted"
    shown = _redacted(observed if verdict == "contradicted" else None, secrets)
    return Outcome(assumption.name, assumption.question, verdict, shown, _redacted(reason, secrets))


def _redacted(value: Any, secrets: Redaction) -> Any:
    if isinstance(value, str):
        return _PRIVATE.sub(HIDDEN, secrets.text(value))
    if isinstance(value, dict):
        return {_redacted(key, secrets): _redacted(below, secrets) for key, below in value.items()}
    return [_redacted(each, secrets) for each in value] if isinstance(value, list | tuple) else value
