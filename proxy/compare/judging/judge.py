"""Two replies to one call become a comparison: what differs, what a rule hides, what has moved, and why the rest is so.

Pure but for what it is handed: how JSON values are compared, and how keys are taken out of texts. It asks nobody; what
was asked a second time is handed in with the first.
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
    """A reply and its body, read once. `asked` are the uids that its request is about."""

    reply: SideResponse
    body: ResponseBody
    asked: frozenset[str] = frozenset()


def parse_response(call: V3Request, reply: SideResponse) -> ParsedResponse:
    """A side's reply to a call, ready to be compared."""
    return ParsedResponse(reply, responses.read_body(call, reply), unknown_uids.requested(call))


class ResponsePair(NamedTuple):
    """Both sides' replies to one call."""

    old: SideResponse
    new: SideResponse


class Judge:
    """Knows the settings of a run; keeps nothing from call to call."""

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

    def asks_twice(self, call: V3Request) -> bool:
        """Whether a call is of the sample that the old side is asked twice, whatever comes of it."""
        return verdict.in_noise_sample(call.id, self._settings.noise.share)

    def differences(self, call: V3Request, old: SideResponse, new: SideResponse) -> list[Difference]:
        """What no rule hides, slowness left out: where there is any, asking again tells whether the data has moved."""
        sides = parse_response(call, old), parse_response(call, new)
        if _trouble(*sides) or _key_refused(call, *sides):
            return []
        return self.rules.apply(call.endpoint, self._found(*sides), call.uids).left

    def compare(
        self,
        call: V3Request,
        at: float,
        pair: ResponsePair,
        *,
        old_again: SideResponse | None = None,
        new_again: SideResponse | None = None,
    ) -> Comparison:
        """Judge a call that was asked at a moment, and perhaps asked again since, of one side or of both."""
        paid = (pair.new.parts or 0) + ((new_again.parts or 0) if new_again else 0)
        old, new = parse_response(call, pair.old), parse_response(call, pair.new)
        if trouble := _trouble(old, new) or _key_refused(call, old, new):
            return Comparison(call, at, trouble=self._trimming.text(trouble, 300), parts=paid)
        later = tuple(parse_response(call, again) if again else None for again in (old_again, new_again))
        applied = self._applied(call, old, new)
        moved = self._moved((old, new), later, applied.left)
        refused = old.body.refused and new.body.refused
        found = [
            self._finding(each, self.causes.of(call.endpoint, each, refused=refused))
            for each in applied.left
            if _key(each) not in moved
        ]
        return Comparison(
            call,
            at,
            findings=tuple(each for each in found if each.cause != "uid not known"),
            unknown_uids=tuple(each for each in found if each.cause == "uid not known"),
            moved=tuple(self._finding(each, "moved") for each in applied.left if _key(each) in moved),
            hidden=applied.hidden,
            wavers=self._wavers(call, old, later[0]) if self.asks_twice(call) else None,
            old_seconds=pair.old.seconds,
            new_seconds=pair.new.seconds,
            parts=paid,
            price=_price(call, pair.new),
        )

    def _finding(self, difference: Difference, cause: Cause) -> Finding:
        return Finding(self._trimming.difference(difference), cause)

    def _applied(self, call: V3Request, old: ParsedResponse, new: ParsedResponse) -> RuleOutcome:
        found, (one, other) = self._found(old, new), (old.reply.seconds, new.reply.seconds)
        if self._settings.latency is not None and other > one + self._settings.latency:
            found.append(Difference("latency", paths.LATENCY, paths.LATENCY, one, other))
        return self.rules.apply(call.endpoint, found, call.uids)

    def _found(self, old: ParsedResponse, new: ParsedResponse) -> list[Difference]:
        """All differences of two replies that can be compared."""
        found = _whole(old, new)
        if old.reply.status != new.reply.status and not (old.body.refused and new.body.refused):
            return self._uids.explained(found, old.asked)
        if old.body.problem is None and new.body.problem is None:
            found += self._diff(old.body.document, new.body.document)
        return self._uids.explained(found, old.asked)

    def _wavers(self, call: V3Request, old: ParsedResponse, again: ParsedResponse | None) -> tuple[str, ...] | None:
        """Where the old side disagrees with itself; None without a second answer to go by."""
        if again is None or _trouble(old, again):
            return None
        left = self._applied(call, old, again).left
        return tuple(sorted({self._trimming.difference(each).path for each in left}))

    def _changed(self, side: ParsedResponse, again: ParsedResponse | None) -> set[tuple[str, str, str]]:
        """Where a side says something else now."""
        return {_key(each) for each in self._found(side, again)} if again and not _trouble(side, again) else set()

    def _moved(
        self,
        first: tuple[ParsedResponse, ParsedResponse],
        later: tuple[ParsedResponse | None, ...],
        differences: Sequence[Difference],
    ) -> set[tuple[str, str, str]]:
        """The differences that are gone where either side was asked again, and those where both have changed since.

        That the old side alone says something else now proves nothing of the new one: it may be wrong about both. What
        is of the whole reply is no data: it has moved where the old side itself has.
        """
        (old, new), (again, new_again) = first, later
        by_old, by_new = self._changed(old, again), self._changed(new, new_again)
        moved = {
            _key(each)
            for each in differences
            if _key(each) in by_old and (_key(each) in by_new or paths.is_whole(each.path))
        }
        for one, other in _pairs(first, later):
            if not (_is_like(one, old) and _is_like(other, old)):
                continue
            there = {_key(each) for each in self._found(one, other)}
            moved |= {_key(each) for each in differences if not paths.is_whole(each.path)} - there
        return moved


def _pairs(
    first: tuple[ParsedResponse, ParsedResponse], later: tuple[ParsedResponse | None, ...]
) -> list[tuple[ParsedResponse, ParsedResponse]]:
    """The pairs that were there after the first."""
    (old, new), (old_again, new_again) = first, later
    if old_again and new_again:
        return [(old_again, new_again), (old_again, new)]
    if old_again:
        return [(old_again, new)]
    return [(old, new_again)] if new_again else []


def _is_like(side: ParsedResponse, first: ParsedResponse) -> bool:
    """Whether an answer is one of the first's sort: what an error or a page of HTML lacks is not gone."""
    return (
        side.reply.trouble is None
        and side.body.problem is None
        and (side.reply.status, side.body.refused) == (first.reply.status, first.body.refused)
    )


def _trouble(old: ParsedResponse, new: ParsedResponse) -> str | None:
    """Why there is nothing to compare, and of which side. The old side is the measure: it must be readable."""
    if old.reply.trouble:
        return f"old: {old.reply.trouble}"
    if new.reply.trouble:
        return f"new: {new.reply.trouble}"
    if old.body.problem and old.reply.status < 400:
        return f"old: {old.body.problem}"
    return None


def _key_refused(call: V3Request, old: ParsedResponse, new: ParsedResponse) -> str | None:
    """The words for a call whose key one side alone does not know: that says nothing of its answers."""
    if new.reply.status in KEY_REFUSED and old.reply.status not in KEY_REFUSED:
        return f"new: {NO_APPLICATION} {call.client}{_said(new)}"
    if old.reply.status in KEY_REFUSED and new.reply.status not in KEY_REFUSED:
        return f"old: the side does not know the key of {call.client}{_said(old)}"
    return None


def _said(side: ParsedResponse) -> str:
    """Status and message of a refusal."""
    message = _message(side)
    return f" (HTTP {side.reply.status}: {message})" if message else f" (HTTP {side.reply.status})"


def _message(side: ParsedResponse) -> str:
    """What a side that refuses says; empty where it says nothing."""
    value = side.body.document.value
    message = value.get("message") if side.body.refused and isinstance(value, dict) else None
    return message if isinstance(message, str) else ""


def _whole(old: ParsedResponse, new: ParsedResponse) -> list[Difference]:
    """What differs in the replies as such."""
    if old.reply.status != new.reply.status:
        said = _message(new) or _message(old)
        return [Difference("status", paths.STATUS, paths.STATUS, old.reply.status, new.reply.status, said)]
    one, other = old.body, new.body
    if (one.problem is None) != (other.problem is None):
        return [_body("unreadable", one.problem or "JSON", other.problem or "JSON")]
    if one.problem is not None and old.reply.body != new.reply.body:
        return [_body("value", one.problem, other.problem)]
    return [_body("format", one.function, other.function)] if one.function != other.function else []


def _body(kind: Literal["unreadable", "value", "format"], old: str | None, new: str | None) -> Difference:
    return Difference(kind, paths.BODY, paths.BODY, old, new)


def _key(difference: Difference) -> tuple[str, str, str]:
    return difference.kind, difference.path, difference.place


def _price(call: V3Request, reply: SideResponse) -> int | None:
    """What the reply says of its cost; where nothing can cost parts, it need not say so."""
    known = endpoints.of(call.path)
    return 0 if reply.price is None and known is not None and known.free else reply.price
