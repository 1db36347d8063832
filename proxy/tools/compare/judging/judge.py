"""Judge: turns the two responses to one request into a comparison.

Finds the differences, applies the rules, separates prices and stock that changed during the run, and names the causes
of the rest. Pure: the redaction and repeated responses are passed in.
"""

from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

from proxy.tools.compare.judging import diff, paths, relations, unknown_uids, unsupported_uses
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

CHANGING = frozenset(("price", "stock"))  # subjects of differences that may have changed within one run


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

    def may_have_moved(self, request: V3Request, baseline: SideResponse, candidate: SideResponse) -> bool:
        """Return true if a price or stock differs: the caller repeats the request, to detect one that changed
        meanwhile."""
        sides = parse_response(request, baseline), parse_response(request, candidate)
        if _failure(*sides):
            return False
        return any(map(_is_changing, self._ruled(request, self._found(*sides), *sides).left))

    def compare(
        self,
        request: V3Request,
        at: float,
        pair: ResponsePair,
        *,
        baseline_again: SideResponse | None = None,
        names: Mapping[str, str] = unknown_uids.NO_NAMES,
    ) -> Comparison:
        """Judge one request, sent at `at`; the baseline's response to a repetition may be given, and the names of the
        objects that uids denote.
        """
        paid = pair.candidate.parts or 0
        baseline, candidate = parse_response(request, pair.baseline, names), parse_response(request, pair.candidate)
        if failure := _failure(baseline, candidate):
            return Comparison(request, at, failure=self._trimming.text(failure, 300), parts=paid)
        applied = self._applied(request, baseline, candidate)
        again = parse_response(request, baseline_again, names) if baseline_again else None
        moved = self._moved(baseline, candidate, again, applied.left)
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
        return self.rules.apply(request.endpoint, found, request.uids, relations.foreign(found, *bodies))

    def _found(self, baseline: ParsedResponse, candidate: ParsedResponse) -> list[Difference]:
        """Return all differences of two comparable responses, before rules."""
        differences = _whole(baseline, candidate)
        # A body of another status has nothing in common with it: its differences would hide the status.
        if _status(baseline) != _status(candidate) and not (baseline.body.refused and candidate.body.refused):
            return self._uids.explained(differences, baseline.requested_uids, baseline.names)
        if baseline.body.problem is None and candidate.body.problem is None:
            differences += _without_refused(diff.diff_documents(baseline.body.document, candidate.body.document))
        return self._uids.explained(differences, baseline.requested_uids, baseline.names)

    def _moved(
        self,
        baseline: ParsedResponse,
        candidate: ParsedResponse,
        again: ParsedResponse | None,
        differences: list[Difference],
    ) -> set[tuple[str, str, str]]:
        """Return the keys of the differences in prices and stock that the repeated baseline does not have: the data has
        changed, and the candidate shows it as it is now."""
        changing = {_key(each) for each in differences if _is_changing(each)}
        # An error would seem to have no difference left.
        if not changing or again is None or not _is_like(again, baseline):
            return set()
        return changing - {_key(each) for each in self._found(again, candidate)}


def _is_changing(difference: Difference) -> bool:
    return paths.subject(difference.path) in CHANGING


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
    is_suppressed = side.body.refused and side.response.status == 200
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


def _body(kind: Literal["unreadable", "value", "format"], baseline: str | None, candidate: str | None) -> Difference:
    return Difference(kind, paths.BODY, paths.BODY, baseline, candidate)


def _key(difference: Difference) -> tuple[str, str, str]:
    return difference.kind, difference.path, difference.place


def _price(request: V3Request, response: SideResponse) -> int | None:
    """Return the cost that the response states, 0 for an endpoint that is always free; None where unknown."""
    known = endpoints.of(request.path)
    return 0 if response.price is None and known is not None and known.free else response.price
