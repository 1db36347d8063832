"""Passive checks: what exchanges that others have made say about the assumptions. Costs nothing and sends nothing."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from proxy.evidence import records
from proxy.evidence.records import DIGESTS_MAX, ObservedAssumption, TrafficEvidence
from proxy.tools.conform import expressions, redaction
from proxy.tools.conform.assumptions import Assumption, PassiveCheck
from proxy.tools.conform.exchanges import UpstreamExchange, view
from proxy.tools.conform.reading import Catalogue
from proxy.tools.conform.results import Outcome

_PLACE = re.compile(r"(?:nodes\.(\w+)|\[?(\w+))")
_HIDDEN = redaction.ResultRedaction(())
_KEYS_MAX, _ALIKE_MAX = 10_000, 4  # subjects that are remembered for pairs: keys of a check, subjects of a key


@dataclass(slots=True)
class Passive:
    """Checks exchanges one by one. Only what `evidence` returns is kept, and small subjects that later exchanges are
    compared with."""

    catalogue: Catalogue
    exchanges: int = 0
    hosts: Counter[str] = field(default_factory=Counter)
    _observed: dict[str, ObservedAssumption] = field(default_factory=dict)
    _earlier: dict[tuple[str, int], dict[str, list[tuple[str, Any]]]] = field(default_factory=dict)

    def add_all(self, found: Iterable[UpstreamExchange]) -> None:
        """Check exchanges."""
        for exchange in found:
            self.add(exchange)

    def add(self, exchange: UpstreamExchange) -> list[str]:
        """Check an exchange. Returns the ids of the assumptions that it contradicts."""
        self.exchanges += 1
        self.hosts[exchange.host] += 1
        shown, contradicted = view(exchange), []
        for assumption in self.catalogue.assumptions:
            verdicts = [
                (verdict, subject)
                for index, check in enumerate(assumption.passive)
                for verdict, subject in self._verdicts((assumption.id, index), check, shown)
            ]
            if not verdicts:
                continue
            failed = [subject for verdict, subject in verdicts if not verdict]
            new = TrafficEvidence(0, (_observed(assumption, exchange.at, failed),))
            known = (self._observed[assumption.id],) if assumption.id in self._observed else ()
            (self._observed[assumption.id],) = records.merge(TrafficEvidence(0, known), new).observed
            if failed:
                contradicted.append(assumption.id)
        return contradicted

    def evidence(self) -> TrafficEvidence:
        """Return what the exchanges so far say, redacted."""
        return TrafficEvidence(self.exchanges, tuple(self._observed.values()))

    def _verdicts(self, key: tuple[str, int], check: PassiveCheck, shown: dict[str, Any]) -> list[tuple[bool, Any]]:
        place = _PLACE.match(check.each)
        # Most exchanges have nothing of what most checks are about, and expressions are slow.
        if place and not (shown["nodes"].get(place[1]) if place[1] else shown.get(place[2])):
            return []
        subjects = _evaluated(check.each, shown)
        if not subjects:
            return []
        listed = subjects if isinstance(subjects, list) else [subjects]
        if check.pairs:
            listed = [pair for each in listed for pair in self._pairs(key, check.pairs, each)]
        if not check.holds:
            return [(True, each) for each in listed]
        judged = [(_evaluated(check.holds, each), each) for each in listed if each is not None]
        return [(bool(verdict), each) for verdict, each in judged if verdict is not None]

    def _pairs(self, key: tuple[str, int], pairs: tuple[str, str], subject: Any) -> list[Any]:
        """Return the subject with each earlier one that has the same value of the first expression, and another of the
        second."""
        alike, apart = (json.dumps(_evaluated(each, subject), sort_keys=True) for each in pairs)
        earlier = self._earlier.setdefault(key, {})
        if len(earlier) >= _KEYS_MAX and alike not in earlier:
            del earlier[next(iter(earlier))]
        known = earlier.setdefault(alike, [])
        found = [{"one": each, "other": subject} for other, each in known if other != apart]
        if all(other != apart for other, _ in known) and len(known) < _ALIKE_MAX:
            known.append((apart, subject))
        return found


def outcomes(evidence: TrafficEvidence, catalogue: Catalogue) -> tuple[Outcome, ...]:
    """Return the outcome of each assumption."""
    observed = {each.id: each for each in evidence.observed}
    return tuple(_outcome(each, observed.get(each.id)) for each in catalogue.assumptions)


def _outcome(assumption: Assumption, seen: ObservedAssumption | None) -> Outcome:
    if seen is None:
        kinds = ", ".join(dict.fromkeys(each.of for each in assumption.passive))
        reason = f"no exchange that says something: {kinds}" if kinds else "only a probe can test it"
        return Outcome(assumption.id, assumption.tier, "not tested", reason=reason)
    reason = ""
    if seen.contradicting:
        ended = "" if seen.example else "; the example has ended after 24 hours"
        reason = f"{seen.contradicting} of {seen.exchanges} exchanges{ended}"
    return Outcome(
        assumption.id,
        assumption.tier,
        "contradicted" if seen.contradicting else "confirmed",
        expected=True,
        got=json.loads(seen.example) if seen.example else not seen.contradicting,
        reason=reason,
        exchanges=seen.exchanges,
        first=seen.first,
        last=seen.last,
    )


def behavior(evidence: TrafficEvidence, catalogue: Catalogue) -> dict[str, Any]:
    """Return the behavior that a sandbox needs in order to imitate what contradicts assumptions, as far as the examples
    say it: the opposite of what is true or false, or the only value of an example."""
    needed = {}
    contradicted = {each.id: each for each in evidence.contradicted}
    for assumption in catalogue.assumptions:
        if assumption.sandbox is None or assumption.id not in contradicted:
            continue
        subject = json.loads(contradicted[assumption.id].example or "null")
        value = next(iter(subject.values())) if isinstance(subject, dict) and len(subject) == 1 else subject
        if isinstance(assumption.expected, bool):
            needed[assumption.sandbox] = not assumption.expected
        elif type(value) is type(assumption.expected):
            needed[assumption.sandbox] = value
    return needed


def _observed(assumption: Assumption, at: str, failed: list[Any]) -> ObservedAssumption:
    """Return what one exchange says. `failed`: what of it contradicts the assumption."""
    seen = ObservedAssumption(
        assumption.id, assumption.tier, assumption.statement, assumption.used_by, exchanges=1, first=at, last=at
    )
    if not failed:
        return seen
    texts = sorted({json.dumps(_HIDDEN.value(subject), ensure_ascii=False) for subject in failed}, key=len)
    return msgspec.structs.replace(
        seen,
        contradicting=1,
        contradicted=at,
        digests=tuple(hashlib.blake2b(text.encode(), digest_size=8).hexdigest() for text in texts[:DIGESTS_MAX]),
        example=texts[0],
        example_at=at,
    )


def _evaluated(expression: str, value: Any) -> Any:
    """Return what an expression yields; null where a function gets a value that it does not take."""
    try:
        return expressions.evaluate(expression, value)
    except ValueError:
        return None
