"""Passive checks: what exchanges that others have made say about the assumptions. Costs nothing and sends nothing."""

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from proxy.tools.conform import expressions, redaction
from proxy.tools.conform.assumptions import PassiveCheck
from proxy.tools.conform.exchanges import UpstreamExchange, view
from proxy.tools.conform.reading import Catalogue
from proxy.tools.conform.results import Outcome, Verdict

_PLACE = re.compile(r"(?:nodes\.(\w+)|\[?(\w+))")
_KEYS_MAX, _ALIKE_MAX = 10_000, 4  # subjects that are remembered for pairs: keys of a check, subjects of a key


@dataclass(slots=True)
class _Tally:
    exchanges: int = 0
    contradicting: int = 0
    first: str = ""
    last: str = ""
    example: str = ""  # the smallest subject that contradicts, as JSON


@dataclass(slots=True)
class Passive:
    """Checks exchanges one by one. Only counts, times and the smallest examples are kept, and small subjects that later
    exchanges are compared with."""

    catalogue: Catalogue
    exchanges: int = 0
    hosts: Counter[str] = field(default_factory=Counter)
    _tallies: dict[str, _Tally] = field(default_factory=dict)
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
            tally = self._tallies.setdefault(assumption.id, _Tally())
            tally.exchanges += 1
            tally.first, tally.last = tally.first or exchange.at, exchange.at or tally.last
            failed = [json.dumps(subject, ensure_ascii=False) for verdict, subject in verdicts if not verdict]
            if failed:
                tally.contradicting += 1
                tally.example = min(filter(None, (tally.example, *failed)), key=len)
                contradicted.append(assumption.id)
        return contradicted

    def outcomes(self) -> tuple[Outcome, ...]:
        """Return the outcomes so far, redacted."""
        hidden = redaction.ResultRedaction(())
        return tuple(hidden.outcome(self._outcome(each.id), is_private=False) for each in self.catalogue.assumptions)

    def behavior(self) -> dict[str, Any]:
        """Return the behavior that a sandbox needs in order to imitate what contradicts assumptions, as far as the
        examples say it: the opposite of what is true or false, or the only value of an example."""
        behavior = {}
        for assumption in self.catalogue.assumptions:
            tally = self._tallies.get(assumption.id)
            if tally is None or not tally.contradicting or assumption.sandbox is None:
                continue
            subject = json.loads(tally.example)
            value = next(iter(subject.values())) if isinstance(subject, dict) and len(subject) == 1 else subject
            if isinstance(assumption.expected, bool):
                behavior[assumption.sandbox] = not assumption.expected
            elif type(value) is type(assumption.expected):
                behavior[assumption.sandbox] = value
        return behavior

    def _outcome(self, id_: str) -> Outcome:
        assumption = next(each for each in self.catalogue.assumptions if each.id == id_)
        tally = self._tallies.get(id_)
        if tally is None:
            kinds = ", ".join(dict.fromkeys(each.of for each in assumption.passive))
            reason = f"no exchange that says something: {kinds}" if kinds else "only a probe can test it"
            return Outcome(id_, assumption.tier, "not tested", reason=reason)
        verdict: Verdict = "contradicted" if tally.contradicting else "confirmed"
        return Outcome(
            id_,
            assumption.tier,
            verdict,
            expected=True,
            got=json.loads(tally.example) if tally.example else True,
            reason=f"{tally.contradicting} of {tally.exchanges} exchanges" if tally.contradicting else "",
            exchanges=tally.exchanges,
            first=tally.first,
            last=tally.last,
        )

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


def _evaluated(expression: str, value: Any) -> Any:
    """Return what an expression yields; null where a function gets a value that it does not take."""
    try:
        return expressions.evaluate(expressions.compile_expression(expression), value)
    except ValueError:
        return None
