"""Judge: turns the two responses to one request into a comparison.

Finds the differences, applies the rules, separates data that changed during the run, and names the causes of the rest.
Pure: the redaction and repeated responses are passed in.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from proxy.tools.compare.judging import diff, paths, relations, unknown_uids, unsupported_uses, verdict
from proxy.tools.compare.judging.causes import Causes, is_refused_query
from proxy.tools.compare.judging.findings import Cause, Comparison, Difference, Finding
from proxy.tools.compare.judging.rules import RuleOutcome, RuleSet
from proxy.tools.compare.judging.settings import ComparisonSettings
from proxy.tools.compare.judging.unknown_uids import UnknownUids
from proxy.tools.compare.redaction import Trimming
from proxy.traffic import v3_response
from proxy.traffic.v3_request import V3Request
from proxy.traffic.v3_response import ResponseBody, SideResponse
from proxy.v3 import endpoints

DATA = "data"  # of a GraphQL response, whose keys have an order
_KEY = re.compile(r'"((?:[^"\\]|\\.)*)":')


class ParsedResponse(NamedTuple):
    """Response with its parsed body. `requested_uids` are the uids that the request names; `failure` is the reason why
    the response proves nothing, None for one that can be compared; `names` are those of looked up uids.
    """

    response: SideResponse
    body: ResponseBody
    requested_uids: frozenset[str] = frozenset()
    failure: str | None = None
    names: Mapping[str, str] = unknown_uids.NO_NAMES

    @property
    def succeeded(self) -> bool:
        """True for a 200 that is no error document."""
        return self.response.status == 200 and not self.body.refused


def parse_response(
    request: V3Request, response: SideResponse, names: Mapping[str, str] = unknown_uids.NO_NAMES
) -> ParsedResponse:
    """Parse a side's response to a request for comparison."""
    failure = response.failure or v3_response.refusal(response, request.client)
    body = v3_response.read_body(request, response)
    return ParsedResponse(response, body, unknown_uids.requested(request), failure, names)


class ResponsePair(NamedTuple):
    """Responses of both sides to one request."""

    baseline: SideResponse
    candidate: SideResponse


class Judge:
    """Judge of response pairs, stateless between requests."""

    def __init__(
        self,
        settings: ComparisonSettings,
        rules: RuleSet,
        causes: Causes,
        redact: Callable[[str], str],
        *,
        uids: frozenset[str] = frozenset(),
    ) -> None:
        """`uids` are those of a site's own table, in addition to the recorded ones."""
        self._settings = settings
        self.rules = rules
        self.causes = causes
        self._trimming = Trimming(redact)
        self._uids = UnknownUids(uids)
        self._has_table = bool(uids)

    def is_in_noise_sample(self, request: V3Request) -> bool:
        """Return true if the baseline gets this request twice in any case, for the measurement of noise."""
        return verdict.in_noise_sample(request.id, self._settings.noise.share)

    def differences(self, request: V3Request, baseline: SideResponse, candidate: SideResponse) -> list[Difference]:
        """Return the differences that no rule ignores, latency excluded.

        Where there are any, the caller repeats the request to detect data that changed meanwhile. Empty where the
        responses cannot be compared.
        """
        sides = parse_response(request, baseline), parse_response(request, candidate)
        if _failure(*sides):
            return []
        return self._ruled(request, self._found(*sides), *sides).left

    def compare(
        self,
        request: V3Request,
        at: float,
        pair: ResponsePair,
        *,
        baseline_again: SideResponse | None = None,
        candidate_again: SideResponse | None = None,
        names: Mapping[str, str] = unknown_uids.NO_NAMES,
    ) -> Comparison:
        """Judge one request, sent at `at`; either side's response to a repetition may be given, and the names of the
        objects that uids denote.
        """
        paid = (pair.candidate.parts or 0) + ((candidate_again.parts or 0) if candidate_again else 0)
        baseline, candidate = parse_response(request, pair.baseline, names), parse_response(request, pair.candidate)
        if failure := _failure(baseline, candidate):
            return Comparison(request, at, failure=self._trimming.text(failure, 300), parts=paid)
        later = tuple(
            parse_response(request, again, names) if again else None for again in (baseline_again, candidate_again)
        )
        applied = self._applied(request, baseline, candidate)
        moved = self._moved((baseline, candidate), later, applied.left)
        refused = baseline.body.refused and candidate.body.refused
        used = unsupported_uses.UnsupportedUses(
            request,
            self.causes,
            candidate.response.unsupported,
            baseline=baseline.body.document.value,
            candidate=candidate.body.document.value,
            all_uids_known=self._has_table,
        )
        found = [
            self._finding(each, used.cause(each, self.causes.of(request.endpoint, each, refused=refused)))
            for each in applied.left
            # Changed data is neither side's fault, so it is listed separately and does not count.
            if _key(each) not in moved
        ]
        return Comparison(
            request,
            at,
            findings=tuple(each for each in found if each.cause != "uid not known"),
            unknown_uids=tuple(each for each in found if each.cause == "uid not known"),
            moved=tuple(self._finding(each, "moved") for each in applied.left if _key(each) in moved),
            ignored=applied.ignored,
            flaky_fields=self._flaky_fields(request, baseline, later[0]) if self.is_in_noise_sample(request) else None,
            baseline_seconds=pair.baseline.seconds,
            candidate_seconds=pair.candidate.seconds,
            parts=paid,
            price=_price(request, pair.candidate),
            succeeded=baseline.succeeded and candidate.succeeded,
        )

    def _finding(self, difference: Difference, cause: Cause) -> Finding:
        return Finding(self._trimming.difference(difference), cause)

    def _applied(self, request: V3Request, baseline: ParsedResponse, candidate: ParsedResponse) -> RuleOutcome:
        found, (one, other) = self._found(baseline, candidate), (baseline.response.seconds, candidate.response.seconds)
        if self._settings.latency is not None and other > one + self._settings.latency:
            found.append(Difference("latency", paths.LATENCY, paths.LATENCY, one, other))
        return self._ruled(request, found, baseline, candidate)

    def _ruled(
        self, request: V3Request, found: list[Difference], baseline: ParsedResponse, candidate: ParsedResponse
    ) -> RuleOutcome:
        bodies = baseline.body.document.value, candidate.body.document.value
        foreign = relations.foreign(found, *bodies, candidate.response.click_links)
        return self.rules.apply(request.endpoint, found, request.uids, foreign)

    def _found(self, baseline: ParsedResponse, candidate: ParsedResponse) -> list[Difference]:
        """Return all differences of two comparable responses, before rules."""
        differences = _whole(baseline, candidate)
        # A body of another status has nothing in common with it: its differences would hide the status.
        if _status(baseline) != _status(candidate) and not (baseline.body.refused and candidate.body.refused):
            return self._uids.explained(differences, baseline.requested_uids, baseline.names)
        if baseline.body.problem is None and candidate.body.problem is None:
            differences += _without_refused(diff.diff_documents(baseline.body.document, candidate.body.document))
            if not differences and baseline.body.ordered and _keys(baseline) != _keys(candidate):
                differences.append(Difference("order", DATA, DATA, _keys(baseline), _keys(candidate)))
        return self._uids.explained(differences, baseline.requested_uids, baseline.names)

    def _flaky_fields(
        self, request: V3Request, baseline: ParsedResponse, again: ParsedResponse | None
    ) -> tuple[str, ...] | None:
        """Return the paths at which the baseline differs from itself; None without a second comparable response."""
        if again is None or _failure(baseline, again):
            return None
        left = self._applied(request, baseline, again).left
        return tuple(sorted({self._trimming.difference(each).path for each in left}))

    def _changed(self, side: ParsedResponse, again: ParsedResponse | None) -> set[tuple[str, str, str]]:
        """Return the keys of differences between a side's first and second response."""
        return {_key(each) for each in self._found(side, again)} if again and not _failure(side, again) else set()

    def _moved(
        self,
        first: tuple[ParsedResponse, ParsedResponse],
        later: tuple[ParsedResponse | None, ...],
        differences: Sequence[Difference],
    ) -> set[tuple[str, str, str]]:
        """Return the keys of differences that are explained by changed data.

        A difference has moved if it is absent between later responses, or if both sides have changed there. A change of
        the baseline alone proves nothing about the candidate, which may be wrong both times. Status and body are not
        data: for these, a change of the baseline is enough.
        """
        (baseline, candidate), (again, candidate_again) = first, later
        by_baseline, by_candidate = self._changed(baseline, again), self._changed(candidate, candidate_again)
        moved = {
            _key(each)
            for each in differences
            if _key(each) in by_baseline and (_key(each) in by_candidate or paths.is_whole(each.path))
        }
        for one, other in _pairs(first, later):
            # An error would seem to have no difference left.
            if not (_is_like(one, baseline) and _is_like(other, baseline)):
                continue
            there = {_key(each) for each in self._found(one, other)}
            moved |= {_key(each) for each in differences if not paths.is_whole(each.path)} - there
        return moved


def _pairs(
    first: tuple[ParsedResponse, ParsedResponse], later: tuple[ParsedResponse | None, ...]
) -> list[tuple[ParsedResponse, ParsedResponse]]:
    """Return the later pairs to compare; where a side was not repeated, its first response is used."""
    (baseline, candidate), (baseline_again, candidate_again) = first, later
    if baseline_again and candidate_again:
        return [(baseline_again, candidate_again), (baseline_again, candidate)]
    if baseline_again:
        return [(baseline_again, candidate)]
    return [(baseline, candidate_again)] if candidate_again else []


def _is_like(side: ParsedResponse, first: ParsedResponse) -> bool:
    """Return true if a response has the same status class as the first one.

    A difference that is absent from an error or from an HTML page has not disappeared.
    """
    return (
        side.failure is None
        and side.body.problem is None
        and (side.response.status, side.body.refused) == (first.response.status, first.body.refused)
    )


def _failure(baseline: ParsedResponse, candidate: ParsedResponse) -> str | None:
    """Return the reason why two responses cannot be compared, prefixed with the side; None if they can.

    The baseline is the reference and must be readable; an unreadable candidate is a difference.
    """
    if baseline.failure:
        return f"baseline: {baseline.failure}"
    if candidate.failure:
        return f"candidate: {candidate.failure}"
    if baseline.body.problem and baseline.response.status < 400:
        return f"baseline: {baseline.body.problem}"
    return None


def _status(side: ParsedResponse) -> int | str:
    """Return the HTTP status; the class of an error whose status is suppressed."""
    is_suppressed = side.body.refused and side.response.status == 200 and not side.body.ordered
    return str(side.body.document.value["__class__"]) if is_suppressed else side.response.status


def _without_refused(differences: list[Difference]) -> list[Difference]:
    """Leave out what else differs in the result of a query that only one side refuses: it has nothing in common."""
    refused = [each.place.removesuffix(".error") for each in differences if is_refused_query(each)]
    return [
        each
        for each in differences
        if is_refused_query(each) or not any(each.place.startswith(f"{place}.") for place in refused)
    ]


def _message(side: ParsedResponse) -> str:
    """Return the message of an error response; empty where it has none."""
    value = side.body.document.value
    message = value.get("message") if side.body.refused and isinstance(value, dict) else None
    return message if isinstance(message, str) else ""


def _whole(baseline: ParsedResponse, candidate: ParsedResponse) -> list[Difference]:
    """Compare status, body format and JSONP function; the JSON values are compared elsewhere."""
    one_status, other_status = _status(baseline), _status(candidate)
    if one_status != other_status:
        message = _message(candidate) or _message(baseline)
        return [Difference("status", paths.STATUS, paths.STATUS, one_status, other_status, message)]
    one, other = baseline.body, candidate.body
    if (one.problem is None) != (other.problem is None):
        return [_body("unreadable", one.problem or "JSON", other.problem or "JSON")]
    if one.problem is not None and baseline.response.body != candidate.response.body:
        return [_body("value", one.problem, other.problem)]
    return [_body("format", one.function, other.function)] if one.function != other.function else []


def _keys(side: ParsedResponse) -> list[str]:
    """Return the keys of a response's objects in their order."""
    return _KEY.findall(msgspec.json.encode(side.body.document.value).decode())


def _body(kind: Literal["unreadable", "value", "format"], baseline: str | None, candidate: str | None) -> Difference:
    return Difference(kind, paths.BODY, paths.BODY, baseline, candidate)


def _key(difference: Difference) -> tuple[str, str, str]:
    return difference.kind, difference.path, difference.place


def _price(request: V3Request, response: SideResponse) -> int | None:
    """Return the cost that the response states, 0 for an endpoint that is always free; None where unknown."""
    known = endpoints.of(request.path)
    return 0 if response.price is None and known is not None and known.free else response.price
