"""Judge: makes a comparison of the two responses to one request.

It finds the differences, applies the rules, separates data that has changed meanwhile, and names the causes of the
rest. Pure: how JSON is compared and how keys are redacted is passed in, and so are repeated responses.
"""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from proxy import endpoints
from proxy.compare import responses
from proxy.compare.judging import paths, unknown_uids, verdict
from proxy.compare.judging.causes import Causes
from proxy.compare.judging.findings import Cause, Comparison, Difference, Finding
from proxy.compare.judging.rules import RuleOutcome, RuleSet
from proxy.compare.judging.settings import ComparisonSettings
from proxy.compare.judging.unknown_uids import UnknownUids
from proxy.compare.redaction import Trimming
from proxy.compare.requests import V3Request
from proxy.compare.responses import JsonDocument, ResponseBody, SideResponse
from proxy.compare.results import NO_APPLICATION

KEY_REFUSED = (401, 403)

Diff = Callable[[JsonDocument, JsonDocument], list[Difference]]  # diff.documents


class ParsedResponse(NamedTuple):
    """A response and its body, read once. `asked` are the uids that its request is about."""

    response: SideResponse
    body: ResponseBody
    asked: frozenset[str] = frozenset()


def parse_response(request: V3Request, response: SideResponse) -> ParsedResponse:
    """A side's response to a request, ready to be compared."""
    return ParsedResponse(response, responses.read_body(request, response), unknown_uids.requested(request))


class ResponsePair(NamedTuple):
    """Both sides' responses to one request."""

    baseline: SideResponse
    candidate: SideResponse


class Judge:
    """Knows the settings of a run; keeps nothing from request to request."""

    def __init__(
        self,
        settings: ComparisonSettings,
        rules: RuleSet,
        causes: Causes,
        diff: Diff,
        redact: Callable[[str], str],
        *,
        uids: frozenset[str] = frozenset(),
    ) -> None:
        """`uids` are those of a site's own table."""
        self._settings = settings
        self.rules = rules
        self.causes = causes
        self._diff = diff
        self._trimming = Trimming(redact)
        self._uids = UnknownUids(uids)

    def is_in_noise_sample(self, request: V3Request) -> bool:
        """Whether a request is of the sample that the baseline is asked twice, whatever comes of it."""
        return verdict.in_noise_sample(request.id, self._settings.noise.share)

    def differences(self, request: V3Request, baseline: SideResponse, candidate: SideResponse) -> list[Difference]:
        """What no rule hides, slowness left out: where there is any, asking again tells whether the data has moved."""
        sides = parse_response(request, baseline), parse_response(request, candidate)
        if _failure(*sides) or _key_refused(request, *sides):
            return []
        return self.rules.apply(request.endpoint, self._found(*sides), request.uids).left

    def compare(
        self,
        request: V3Request,
        at: float,
        pair: ResponsePair,
        *,
        baseline_again: SideResponse | None = None,
        candidate_again: SideResponse | None = None,
    ) -> Comparison:
        """Judge a request that was asked at a moment, and perhaps asked again since, of one side or of both."""
        paid = (pair.candidate.parts or 0) + ((candidate_again.parts or 0) if candidate_again else 0)
        baseline, candidate = parse_response(request, pair.baseline), parse_response(request, pair.candidate)
        if failure := _failure(baseline, candidate) or _key_refused(request, baseline, candidate):
            return Comparison(request, at, failure=self._trimming.text(failure, 300), parts=paid)
        later = tuple(parse_response(request, again) if again else None for again in (baseline_again, candidate_again))
        applied = self._applied(request, baseline, candidate)
        moved = self._moved((baseline, candidate), later, applied.left)
        refused = baseline.body.refused and candidate.body.refused
        found = [
            self._finding(each, self.causes.of(request.endpoint, each, refused=refused))
            for each in applied.left
            if _key(each) not in moved
        ]
        return Comparison(
            request,
            at,
            findings=tuple(each for each in found if each.cause != "uid not known"),
            unknown_uids=tuple(each for each in found if each.cause == "uid not known"),
            moved=tuple(self._finding(each, "moved") for each in applied.left if _key(each) in moved),
            hidden=applied.hidden,
            flaky_fields=self._flaky_fields(request, baseline, later[0]) if self.is_in_noise_sample(request) else None,
            baseline_seconds=pair.baseline.seconds,
            candidate_seconds=pair.candidate.seconds,
            parts=paid,
            price=_price(request, pair.candidate),
        )

    def _finding(self, difference: Difference, cause: Cause) -> Finding:
        return Finding(self._trimming.difference(difference), cause)

    def _applied(self, request: V3Request, baseline: ParsedResponse, candidate: ParsedResponse) -> RuleOutcome:
        found, (one, other) = self._found(baseline, candidate), (baseline.response.seconds, candidate.response.seconds)
        if self._settings.latency is not None and other > one + self._settings.latency:
            found.append(Difference("latency", paths.LATENCY, paths.LATENCY, one, other))
        return self.rules.apply(request.endpoint, found, request.uids)

    def _found(self, baseline: ParsedResponse, candidate: ParsedResponse) -> list[Difference]:
        """All differences of two responses that can be compared."""
        found = _whole(baseline, candidate)
        if baseline.response.status != candidate.response.status and not (
            baseline.body.refused and candidate.body.refused
        ):
            return self._uids.explained(found, baseline.asked)
        if baseline.body.problem is None and candidate.body.problem is None:
            found += self._diff(baseline.body.document, candidate.body.document)
        return self._uids.explained(found, baseline.asked)

    def _flaky_fields(
        self, request: V3Request, baseline: ParsedResponse, again: ParsedResponse | None
    ) -> tuple[str, ...] | None:
        """Where the baseline disagrees with itself; None without a second response to go by."""
        if again is None or _failure(baseline, again):
            return None
        left = self._applied(request, baseline, again).left
        return tuple(sorted({self._trimming.difference(each).path for each in left}))

    def _changed(self, side: ParsedResponse, again: ParsedResponse | None) -> set[tuple[str, str, str]]:
        """Where a side says something else now."""
        return {_key(each) for each in self._found(side, again)} if again and not _failure(side, again) else set()

    def _moved(
        self,
        first: tuple[ParsedResponse, ParsedResponse],
        later: tuple[ParsedResponse | None, ...],
        differences: Sequence[Difference],
    ) -> set[tuple[str, str, str]]:
        """The differences that are gone where either side was asked again, and those where both have changed since.

        A change of the baseline alone proves nothing about the candidate, which may be wrong about both. Status and
        body are not data: they have changed where the baseline's own have.
        """
        (baseline, candidate), (again, candidate_again) = first, later
        by_baseline, by_candidate = self._changed(baseline, again), self._changed(candidate, candidate_again)
        moved = {
            _key(each)
            for each in differences
            if _key(each) in by_baseline and (_key(each) in by_candidate or paths.is_whole(each.path))
        }
        for one, other in _pairs(first, later):
            if not (_is_like(one, baseline) and _is_like(other, baseline)):
                continue
            there = {_key(each) for each in self._found(one, other)}
            moved |= {_key(each) for each in differences if not paths.is_whole(each.path)} - there
        return moved


def _pairs(
    first: tuple[ParsedResponse, ParsedResponse], later: tuple[ParsedResponse | None, ...]
) -> list[tuple[ParsedResponse, ParsedResponse]]:
    """The pairs that were there after the first."""
    (baseline, candidate), (baseline_again, candidate_again) = first, later
    if baseline_again and candidate_again:
        return [(baseline_again, candidate_again), (baseline_again, candidate)]
    if baseline_again:
        return [(baseline_again, candidate)]
    return [(baseline, candidate_again)] if candidate_again else []


def _is_like(side: ParsedResponse, first: ParsedResponse) -> bool:
    """Whether a response is one of the first's sort: what an error or a page of HTML lacks is not gone."""
    return (
        side.response.failure is None
        and side.body.problem is None
        and (side.response.status, side.body.refused) == (first.response.status, first.body.refused)
    )


def _failure(baseline: ParsedResponse, candidate: ParsedResponse) -> str | None:
    """Why there is nothing to compare, and of which side. The baseline is the measure: it must be readable."""
    if baseline.response.failure:
        return f"baseline: {baseline.response.failure}"
    if candidate.response.failure:
        return f"candidate: {candidate.response.failure}"
    if baseline.body.problem and baseline.response.status < 400:
        return f"baseline: {baseline.body.problem}"
    return None


def _key_refused(request: V3Request, baseline: ParsedResponse, candidate: ParsedResponse) -> str | None:
    """The words for a request whose key one side alone does not know: that says nothing of its responses."""
    if candidate.response.status in KEY_REFUSED and baseline.response.status not in KEY_REFUSED:
        return f"candidate: {NO_APPLICATION} {request.client}{_message_suffix(candidate)}"
    if baseline.response.status in KEY_REFUSED and candidate.response.status not in KEY_REFUSED:
        return f"baseline: the side does not know the key of {request.client}{_message_suffix(baseline)}"
    return None


def _message_suffix(side: ParsedResponse) -> str:
    """Status and message of a refusal."""
    message = _message(side)
    return f" (HTTP {side.response.status}: {message})" if message else f" (HTTP {side.response.status})"


def _message(side: ParsedResponse) -> str:
    """What a side that refuses says; empty where it says nothing."""
    value = side.body.document.value
    message = value.get("message") if side.body.refused and isinstance(value, dict) else None
    return message if isinstance(message, str) else ""


def _whole(baseline: ParsedResponse, candidate: ParsedResponse) -> list[Difference]:
    """What differs in the responses as such."""
    if baseline.response.status != candidate.response.status:
        message = _message(candidate) or _message(baseline)
        return [
            Difference(
                "status", paths.STATUS, paths.STATUS, baseline.response.status, candidate.response.status, message
            )
        ]
    one, other = baseline.body, candidate.body
    if (one.problem is None) != (other.problem is None):
        return [_body("unreadable", one.problem or "JSON", other.problem or "JSON")]
    if one.problem is not None and baseline.response.body != candidate.response.body:
        return [_body("value", one.problem, other.problem)]
    return [_body("format", one.function, other.function)] if one.function != other.function else []


def _body(kind: Literal["unreadable", "value", "format"], baseline: str | None, candidate: str | None) -> Difference:
    return Difference(kind, paths.BODY, paths.BODY, baseline, candidate)


def _key(difference: Difference) -> tuple[str, str, str]:
    return difference.kind, difference.path, difference.place


def _price(request: V3Request, response: SideResponse) -> int | None:
    """What the response says of its cost; where nothing can cost parts, it need not say so."""
    known = endpoints.of(request.path)
    return 0 if response.price is None and known is not None and known.free else response.price
