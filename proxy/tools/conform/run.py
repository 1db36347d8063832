"""One run: selects the probes that budget and accounts allow, sends each once, and judges the assumptions."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal

import msgspec

from proxy.kit import counted
from proxy.redaction import HIDDEN, Redaction
from proxy.tools.conform.assumptions import Assumption, NotTested
from proxy.tools.conform.service import MAIN, Answer, Probe, ProbeError, Service

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

    def of(self, verdict: Verdict) -> list[Outcome]:
        """Return the outcomes with this verdict."""
        return [outcome for outcome in self.outcomes if outcome.verdict == verdict]


class Selection(msgspec.Struct):
    """Probes that a run sends, in their order; `left_out` has the reason for each of the others."""

    probes: list[Probe]
    left_out: dict[Probe, str]

    @property
    def at_worst(self) -> int:
        """The most parts that the run can cost."""
        return sum(probe.parts for probe in self.probes)


def select(assumptions: Sequence[Assumption], budget: int, service: Service) -> Selection:
    """Select the probes of assumptions whose account there is, up to `budget` parts at worst, cheap ones first."""
    probes = list(dict.fromkeys(probe for assumption in assumptions for probe in assumption.probes))
    chosen = Selection([], {})
    for probe in sorted(probes, key=lambda probe: probe.parts):
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
    return chosen


async def run(
    assumptions: Sequence[Assumption], selection: Selection, service: Service, tell: Callable[[int], None]
) -> RunResult:
    """Send the selected probes and judge the assumptions. `tell` is called with the number of probes that are done."""
    answers: dict[Probe, Answer] = {}
    failures = dict(selection.left_out)
    sent = unanswered = uncertain = 0
    for done, probe in enumerate(selection.probes, 1):
        if unanswered == UNANSWERED_MAX:
            failures[probe] = f"the service left {UNANSWERED_MAX} requests in a row without an answer"
        elif service.ledger is None and not _is_bounded(probe, answers):  # else no part is paid for
            failures[probe] = "it could cost more than the run may"
        else:
            sent += 1
            try:
                answers[probe] = await service.send(probe)
                unanswered = 0
            except ProbeError as error:
                failures[probe] = str(error)
                unanswered += error.was_sent
                uncertain += probe.parts if error.was_sent else 0
        tell(done)
    secrets = [text for each in service.accounts.values() for text in (each.client_id, each.client_secret)]
    outcomes = tuple(_redacted(judge(assumption, answers, failures), secrets) for assumption in assumptions)
    billed = [answer.billed for answer in answers.values() if answer.billed is not None]
    returned = sum(answer.returned for answer in answers.values())
    return RunResult(outcomes, sent, selection.at_worst, returned, uncertain, sum(billed) if service.ledger else None)


def _is_bounded(probe: Probe, answers: Mapping[Probe, Answer]) -> bool:
    """Whether an earlier answer says that a probe costs no more than its parts."""
    if probe.after is None:
        return True
    try:
        return probe.only_if(answers[probe.after])
    except UNEXPECTED:
        return False


def judge(assumption: Assumption, answers: Mapping[Probe, Answer], failures: Mapping[Probe, str]) -> Outcome:
    """Judge one assumption by the answers to its probes."""

    def outcome(verdict: Verdict, observed: Any = None, reason: str = "") -> Outcome:
        return Outcome(assumption.name, assumption.question, verdict, observed, reason)

    for probe in assumption.probes:
        reason = failures.get(probe) or _unrelated(probe, answers[probe])
        if reason:
            return outcome("not tested", reason=reason)
    given = [answers[probe] for probe in assumption.probes]
    try:
        observed = assumption.check(*given)
    except NotTested as error:
        return outcome("not tested", reason=str(error))
    except UNEXPECTED:
        observed = [answer.messages or answer.status for answer in given]
    return outcome("confirmed") if observed is True else outcome("contradicted", observed)


def _unrelated(probe: Probe, answer: Answer) -> str:
    """Return why an answer says nothing about an assumption; empty if it does."""
    if answer.status in UNAVAILABLE or (answer.status >= 500 and not isinstance(answer.body, dict)):
        return f"the service responded {answer.status}"
    if probe.account == MAIN and any(text.startswith(PART_LIMIT) for text in answer.messages):
        return "the application's part limit is exhausted"
    if answer.status == 401 and probe.token is None:
        return "the service does not accept the access token"
    return ""


def _redacted(outcome: Outcome, secrets: Collection[str]) -> Outcome:
    known = Redaction(secrets)

    def redacted(value: Any) -> Any:
        if isinstance(value, str):
            return _PRIVATE.sub(HIDDEN, known.text(value))
        if isinstance(value, dict):
            return {redacted(key): redacted(below) for key, below in value.items()}
        return [redacted(each) for each in value] if isinstance(value, list | tuple) else value

    return msgspec.structs.replace(outcome, observed=redacted(outcome.observed), reason=redacted(outcome.reason))
