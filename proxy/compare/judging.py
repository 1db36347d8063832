"""Two replies to one call become a comparison: what differs, what a rule hides, what has moved, and why the rest is so.

Pure but for what it is handed: how JSON values are compared, and how keys are taken out of texts. It asks nobody; what
was asked a second time is handed in with the first.
"""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from proxy import endpoints
from proxy.compare import bodies, noise, patterns
from proxy.compare.bodies import Side
from proxy.compare.calls import Call
from proxy.compare.causes import Causes
from proxy.compare.comparison import Comparison
from proxy.compare.differences import Cause, Difference, Finding
from proxy.compare.replies import Document, Reply
from proxy.compare.result import NO_APPLICATION
from proxy.compare.rules import Applied, Rules
from proxy.compare.settings import Settings
from proxy.compare.trimming import Trimming
from proxy.compare.unknown_uids import UnknownUids

KEY_REFUSED = (401, 403)

Diff = Callable[[Document, Document], list[Difference]]  # diff.documents


class Pair(NamedTuple):
    """Both sides' replies to one call."""

    old: Reply
    new: Reply


class Judge:
    """Knows the settings of a run; keeps nothing from call to call."""

    def __init__(
        self,
        settings: Settings,
        rules: Rules,
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

    def asks_twice(self, call: Call) -> bool:
        """Whether a call is of the sample that the old side is asked twice, whatever comes of it."""
        return noise.sampled(call.id, self._settings.noise.share)

    def differences(self, call: Call, old: Reply, new: Reply) -> list[Difference]:
        """What no rule hides, slowness left out: where there is any, asking again tells whether the data has moved."""
        sides = bodies.side(call, old), bodies.side(call, new)
        if _trouble(*sides) or _key_refused(call, *sides):
            return []
        return self.rules.apply(call.endpoint, self._found(*sides), call.uids).left

    def compare(
        self, call: Call, at: float, pair: Pair, *, old_again: Reply | None = None, new_again: Reply | None = None
    ) -> Comparison:
        """Judge a call that was asked at a moment, and perhaps asked again since, of one side or of both."""
        paid = (pair.new.parts or 0) + ((new_again.parts or 0) if new_again else 0)
        old, new = bodies.side(call, pair.old), bodies.side(call, pair.new)
        if trouble := _trouble(old, new) or _key_refused(call, old, new):
            return Comparison(call, at, trouble=self._trimming.text(trouble, 300), parts=paid)
        later = tuple(bodies.side(call, again) if again else None for again in (old_again, new_again))
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

    def _applied(self, call: Call, old: Side, new: Side) -> Applied:
        found, (one, other) = self._found(old, new), (old.reply.seconds, new.reply.seconds)
        if self._settings.latency is not None and other > one + self._settings.latency:
            found.append(Difference("latency", patterns.LATENCY, patterns.LATENCY, one, other))
        return self.rules.apply(call.endpoint, found, call.uids)

    def _found(self, old: Side, new: Side) -> list[Difference]:
        """All differences of two replies that can be compared."""
        found = _whole(old, new)
        if old.reply.status != new.reply.status and not (old.body.refused and new.body.refused):
            return self._uids.explained(found, old.asked)
        if old.body.problem is None and new.body.problem is None:
            found += self._diff(old.body.document, new.body.document)
        return self._uids.explained(found, old.asked)

    def _wavers(self, call: Call, old: Side, again: Side | None) -> tuple[str, ...] | None:
        """Where the old side disagrees with itself; None without a second answer to go by."""
        if again is None or _trouble(old, again):
            return None
        left = self._applied(call, old, again).left
        return tuple(sorted({self._trimming.difference(each).path for each in left}))

    def _changed(self, side: Side, again: Side | None) -> set[tuple[str, str, str]]:
        """Where a side says something else now."""
        return {_key(each) for each in self._found(side, again)} if again and not _trouble(side, again) else set()

    def _moved(
        self, first: tuple[Side, Side], later: tuple[Side | None, ...], differences: Sequence[Difference]
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
            if _key(each) in by_old and (_key(each) in by_new or patterns.is_whole(each.path))
        }
        for one, other in _pairs(first, later):
            if not (_is_like(one, old) and _is_like(other, old)):
                continue
            there = {_key(each) for each in self._found(one, other)}
            moved |= {_key(each) for each in differences if not patterns.is_whole(each.path)} - there
        return moved


def _pairs(first: tuple[Side, Side], later: tuple[Side | None, ...]) -> list[tuple[Side, Side]]:
    """The pairs that were there after the first."""
    (old, new), (old_again, new_again) = first, later
    if old_again and new_again:
        return [(old_again, new_again), (old_again, new)]
    if old_again:
        return [(old_again, new)]
    return [(old, new_again)] if new_again else []


def _is_like(side: Side, first: Side) -> bool:
    """Whether an answer is one of the first's sort: what an error or a page of HTML lacks is not gone."""
    return (
        side.reply.trouble is None
        and side.body.problem is None
        and (side.reply.status, side.body.refused) == (first.reply.status, first.body.refused)
    )


def _trouble(old: Side, new: Side) -> str | None:
    """Why there is nothing to compare, and of which side. The old side is the measure: it must be readable."""
    if old.reply.trouble:
        return f"old: {old.reply.trouble}"
    if new.reply.trouble:
        return f"new: {new.reply.trouble}"
    if old.body.problem and old.reply.status < 400:
        return f"old: {old.body.problem}"
    return None


def _key_refused(call: Call, old: Side, new: Side) -> str | None:
    """The words for a call whose key one side alone does not know: that says nothing of its answers."""
    if new.reply.status in KEY_REFUSED and old.reply.status not in KEY_REFUSED:
        return f"new: {NO_APPLICATION} {call.client}{_said(new)}"
    if old.reply.status in KEY_REFUSED and new.reply.status not in KEY_REFUSED:
        return f"old: the side does not know the key of {call.client}{_said(old)}"
    return None


def _said(side: Side) -> str:
    """Status and message of a refusal."""
    message = _message(side)
    return f" (HTTP {side.reply.status}: {message})" if message else f" (HTTP {side.reply.status})"


def _message(side: Side) -> str:
    """What a side that refuses says; empty where it says nothing."""
    value = side.body.document.value
    message = value.get("message") if side.body.refused and isinstance(value, dict) else None
    return message if isinstance(message, str) else ""


def _whole(old: Side, new: Side) -> list[Difference]:
    """What differs in the replies as such."""
    if old.reply.status != new.reply.status:
        said = _message(new) or _message(old)
        return [Difference("status", patterns.STATUS, patterns.STATUS, old.reply.status, new.reply.status, said)]
    one, other = old.body, new.body
    if (one.problem is None) != (other.problem is None):
        return [_body("unreadable", one.problem or "JSON", other.problem or "JSON")]
    if one.problem is not None and old.reply.body != new.reply.body:
        return [_body("value", one.problem, other.problem)]
    return [_body("format", one.function, other.function)] if one.function != other.function else []


def _body(kind: Literal["unreadable", "value", "format"], old: str | None, new: str | None) -> Difference:
    return Difference(kind, patterns.BODY, patterns.BODY, old, new)


def _key(difference: Difference) -> tuple[str, str, str]:
    return difference.kind, difference.path, difference.place


def _price(call: Call, reply: Reply) -> int | None:
    """What the reply says of its cost; where nothing can cost parts, it need not say so."""
    known = endpoints.of(call.path)
    return 0 if reply.price is None and known is not None and known.free else reply.price
