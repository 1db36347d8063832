"""One run: selects the probe requests that budget and accounts allow, sends them, judges the assumptions."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import msgspec
from graphql import FieldNode, GraphQLError, OperationDefinitionNode, parse

from proxy.kit.wording import counted
from proxy.tools.conform import expressions, redaction
from proxy.tools.conform.assumptions import CONDITIONS, Assumption, ProbeRequest
from proxy.tools.conform.probes import Account, ProbeError, ProbeResponse
from proxy.tools.conform.reading import Catalogue
from proxy.tools.conform.results import Outcome, ResponseTime, RunCost

TIMED = {
    "whole_part": "a part with all fields",
    "plain_part": "with the fields of a plain v3 request",
}
"""Requests whose times are part of the result, in words for people."""
_TIERS = ("core", "complete", "strict")
# The service is unavailable, or wants less traffic: no observation of what an assumption is about.
_UNAVAILABLE = (429, 502, 503, 504)
# Requests in a row without a response, after which a run ends: each may have been billed, and takes its whole timeout.
_UNANSWERED_MAX = 3
# The text is known, a status or code for it is not (contract graphql.md §3.2).
_HITS = "query ($queries: [SupPartMatchQuery!]!) { supMultiMatch(queries: $queries) { hits } }"
_PART_LIMIT = "You have exceeded your part limit"


@dataclass(frozen=True, slots=True)
class Selection:
    """Requests that a run sends, in their order; `left_out` has the reason for each of the others."""

    requests: tuple[str, ...]
    left_out: Mapping[str, str]
    at_worst: int


def select(catalogue: Catalogue, budget: int, accounts: Mapping[str | None, Account]) -> Selection:
    """Select requests whose condition is met, core and cheap ones first, up to `budget` parts at worst."""
    left_out: dict[str, str] = {}
    chosen: set[str] = set()
    remaining = budget
    for name in sorted(catalogue.requests, key=_priority(catalogue)):
        request = catalogue.requests[name]
        account = accounts.get(request.needs)
        lacking = [] if account is None else _lacking(request, account)
        if account is None:
            left_out[name] = f"needs {CONDITIONS[request.needs or '']}"
        elif lacking:
            left_out[name] = f"the application's plan lacks {', '.join(lacking)} (`features`)"
        elif request.parts > remaining:
            left_out[name] = f"the budget of {counted(budget, 'part')} is too small"
        else:
            chosen.add(name)
            remaining -= request.parts
    # Sent in the order of the files, whose authors may let a request follow another.
    ordered = tuple(name for name in catalogue.requests if name in chosen)
    return Selection(ordered, left_out, budget - remaining)


def _lacking(request: ProbeRequest, account: Account) -> list[str]:
    return [] if account.features is None else sorted(set(request.features) - account.features)


def _priority(catalogue: Catalogue) -> Callable[[str], tuple[int, int]]:
    tiers = dict.fromkeys(catalogue.requests, len(_TIERS))
    for assumption in catalogue.assumptions:
        for name in assumption.requests:
            tiers[name] = min(tiers[name], _TIERS.index(assumption.tier))
    return lambda name: (tiers[name], catalogue.requests[name].parts)


class Sender(Protocol):
    """Sends probe requests: a Prober, or what a test puts in its place."""

    @property
    def token_requests(self) -> int:
        """Number of token requests so far."""

    @property
    def secrets(self) -> frozenset[str]:
        """Everything that must not be shown."""

    async def log_in(self) -> None:
        """Check the credentials of the application under test. Raises ProbeError."""

    async def send(self, request: ProbeRequest) -> ProbeResponse:
        """Send a request. Raises ProbeError."""


class Observations(NamedTuple):
    """Outcomes of all assumptions, and what they cost. `uncertain` parts may have been billed by requests without a
    response. `times` are those of the requests in TIMED."""

    outcomes: tuple[Outcome, ...]
    cost: RunCost
    uncertain: int
    times: dict[str, ResponseTime]


async def run(
    catalogue: Catalogue, selection: Selection, prober: Sender, progress: Callable[[int], None] = lambda _: None
) -> Observations:
    """Send the selected requests, each once, and judge all assumptions. `progress` is called with the number of
    requests that are done. The outcomes are redacted."""
    responses: dict[str, ProbeResponse] = {}
    failures = dict(selection.left_out)
    parts = uncertain = sent = unanswered = 0
    # With wrong credentials, refused token requests would contradict what is assumed about token requests.
    reason = await _refusal(prober)
    failures |= dict.fromkeys(selection.requests, reason) if reason else {}
    requests = () if reason else selection.requests
    for done, name in enumerate(requests, 1):
        if unanswered == _UNANSWERED_MAX:
            failures[name] = f"the service left {_UNANSWERED_MAX} requests in a row without a response"
            continue
        sent += 1
        try:
            responses[name] = await prober.send(catalogue.requests[name])
        except ProbeError as error:
            failures[name] = str(error)
            unanswered += error.was_sent
            uncertain += catalogue.requests[name].parts if error.was_sent else 0
        else:
            unanswered = 0
            parts += count_parts(catalogue.requests[name], responses[name])
        progress(done)
    if subjects := sorted({number for name in responses for number in catalogue.requests[name].subjects}):
        sent += 1
        absent = await _absent(prober, subjects)
        failures |= {name: reason for name in responses if (reason := _missing(catalogue.requests[name], absent))}
    judge, hidden = _Judge(catalogue, responses, failures), redaction.ResultRedaction(prober.secrets)
    return Observations(
        tuple(hidden.outcome(judge.outcome(assumption)) for assumption in catalogue.assumptions),
        RunCost(sent, prober.token_requests, selection.at_worst if requests else 0, parts),
        uncertain,
        {
            name: ResponseTime(round(response.seconds, 3), len(response.text.encode()))
            for name in TIMED
            if (response := responses.get(name)) is not None and name not in failures
        },
    )


async def _absent(prober: Sender, numbers: Sequence[str]) -> frozenset[str]:
    """Return those part numbers that the service does not have: it is asked for their hits, and returns no parts."""
    queries = [{"mpn": number, "limit": 0} for number in numbers]
    try:
        response = await prober.send(ProbeRequest(document=_HITS, variables={"queries": queries}))
    except ProbeError:
        return frozenset()
    results = expressions.evaluate("data.supMultiMatch[*].hits", response.body) or []
    return frozenset(number for number, hits in zip(numbers, results, strict=False) if hits == 0)


def _missing(request: ProbeRequest, absent: frozenset[str]) -> str:
    """Return why the response to a request says nothing; empty if the service has all parts that it is about."""
    missing = [number for number in request.subjects if number in absent]
    return f"no such part: {', '.join(missing)}" if missing else ""


async def _refusal(prober: Sender) -> str:
    """Return why the application under test gets no access token; empty if it does."""
    try:
        await prober.log_in()
    except ProbeError as error:
        return str(error)
    return ""


@dataclass(frozen=True, slots=True)
class _Judge:
    catalogue: Catalogue
    responses: Mapping[str, ProbeResponse]
    failures: Mapping[str, str]

    def outcome(self, assumption: Assumption) -> Outcome:
        for name in assumption.requests:
            if name in self.failures:
                return Outcome(assumption.id, assumption.tier, "not tested", reason=self.failures[name])
        # First: the page of a failing gateway would confirm whatever says that something is absent or refused.
        unrelated = self._unrelated_failure(assumption)
        if unrelated:
            return Outcome(assumption.id, assumption.tier, "not tested", reason=unrelated)
        observed, reason = self._observe(assumption)
        expected = _expectation(assumption)
        if _holds(assumption, observed):
            return Outcome(assumption.id, assumption.tier, "confirmed", expected, observed)
        reason = reason or self._error_messages(assumption)
        return Outcome(assumption.id, assumption.tier, "contradicted", expected, observed, reason)

    def _observe(self, assumption: Assumption) -> tuple[Any, str]:
        """Return the observed value, and why it cannot be computed."""
        value = {name: msgspec.structs.asdict(self.responses[name]) for name in assumption.requests}
        try:
            return expressions.evaluate(assumption.observe, value), ""
        except ValueError as error:
            return None, str(error)

    def _unrelated_failure(self, assumption: Assumption) -> str:
        """Return why the responses say nothing about the assumption; empty if they do."""
        for name in assumption.requests:
            request, response = self.catalogue.requests[name], self.responses[name]
            if response.status in _UNAVAILABLE or _is_failure_page(response):
                return f"the service responded {response.status}"
            if request.kind != "graphql":
                continue
            if request.needs != "no_parts" and any(text.startswith(_PART_LIMIT) for text in _messages(response)):
                return "the application's part limit is exhausted"
            if response.status == 401 and not _sends_own_token(request):
                return "the service does not accept the access token"
        return ""

    def _error_messages(self, assumption: Assumption) -> str:
        messages = [text for name in assumption.requests for text in _messages(self.responses[name])]
        return "; ".join(dict.fromkeys(messages))


def _sends_own_token(request: ProbeRequest) -> bool:
    return any(name.lower() in ("authorization", "token") for name in request.headers)


def _is_failure_page(response: ProbeResponse) -> bool:
    """Whether a gateway has failed. A 500 of the service itself is JSON, and may be what is observed."""
    return response.status >= 500 and not isinstance(response.body, dict)


def _messages(response: ProbeResponse) -> list[str]:
    listed = response.body.get("errors") if isinstance(response.body, dict) else None
    entries = listed if isinstance(listed, list) else []
    return [str(entry["message"]) for entry in entries if isinstance(entry, dict) and "message" in entry]


def _expectation(assumption: Assumption) -> Any:
    return {"pattern": assumption.pattern} if assumption.pattern is not None else assumption.expected


def _holds(assumption: Assumption, observed: Any) -> bool:
    if assumption.pattern is not None:
        return isinstance(observed, str) and re.fullmatch(assumption.pattern, observed) is not None
    return _equal(assumption.expected, observed)


def _equal(expected: Any, observed: Any) -> bool:
    """Compare JSON values; unlike in Python, true is not 1."""
    if isinstance(expected, bool) or isinstance(observed, bool):
        return expected is observed
    if isinstance(expected, list) and isinstance(observed, list):
        return len(expected) == len(observed) and all(map(_equal, expected, observed))
    if isinstance(expected, dict) and isinstance(observed, dict):
        return expected.keys() == observed.keys() and all(_equal(expected[key], observed[key]) for key in expected)
    return bool(expected == observed)


def count_parts(request: ProbeRequest, response: ProbeResponse) -> int:
    """Return the number of part objects at the root fields of a GraphQL response: what the service bills (contract
    graphql.md §6). Parts that are not selected cannot be counted; the ledger of the service may have them."""
    data = response.body.get("data") if isinstance(response.body, dict) else None
    if not isinstance(data, dict):
        return 0
    return sum(_parts(name, data.get(key)) for name, key in _root_fields(request.document))


@lru_cache(maxsize=256)
def _root_fields(document: str) -> tuple[tuple[str, str], ...]:
    """Return name and response key of each root field."""
    try:
        definitions = parse(document, no_location=True).definitions
    except GraphQLError:
        return ()  # a probe with a deliberate mistake
    operations = (each for each in definitions if isinstance(each, OperationDefinitionNode))
    nodes = (node for each in operations for node in each.selection_set.selections if isinstance(node, FieldNode))
    return tuple((node.name.value, (node.alias or node.name).value) for node in nodes)


def _parts(name: str, value: Any) -> int:
    match name:
        case "supSearch" | "supSearchMpn":
            return sum(isinstance(result.get("part"), dict) for result in (value or {}).get("results") or ())
        case "supMultiMatch":
            return sum(len(match.get("parts") or ()) for match in value or ())
        case "supParts":
            return sum(part is not None for part in value or ())
        case _:
            return 0
