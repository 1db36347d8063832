"""Ignore rules of compare.yaml: application, expiry, and usage counts.

The first rule that matches a difference takes it. A rule for the cause "no source" applies to each such field of
v3_fields.yaml, with the reason from that list, and ignores a difference only where the candidate shows the value that
the list states. A rule with forms ignores only values of one of these forms. The counts of an earlier run can serve as
a limit.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from proxy import errors
from proxy.tools.compare.judging import paths, tolerances
from proxy.tools.compare.judging.causes import KNOWN_PATHS, Causes, FieldEntry
from proxy.tools.compare.judging.findings import ABSENT, Difference
from proxy.tools.compare.judging.settings import IgnoreRule, ShippedRule
from proxy.tools.compare.results import ComparisonResult, RuleUse

BOTH = ("value", "type", "format")  # kinds of differences with a value on both sides


class RuleOutcome(NamedTuple):
    """Differences that no rule ignores, and the number of ignored ones by rule name."""

    left: list[Difference]
    ignored: dict[str, int]


class RuleSet:
    """Rules as of a date; expired rules ignore nothing."""

    def __init__(self, rules: Sequence[IgnoreRule], causes: Causes, today: date) -> None:
        self._all = tuple(rules)
        self._causes = causes
        self._today = today
        self._standing = tuple(rule for rule in rules if not self._expired(rule))
        self._at = lru_cache(KNOWN_PATHS)(self._rules_at)

    @property
    def varying(self) -> frozenset[str]:
        """Names of the rules whose counts vary between runs although the services are unchanged."""
        return frozenset(rule.name or "" for rule in self._all if rule.varies)

    @property
    def expired(self) -> tuple[IgnoreRule, ...]:
        """Rules that have expired."""
        return tuple(rule for rule in self._all if self._expired(rule))

    def apply(
        self,
        endpoint: str,
        differences: Sequence[Difference],
        requested_uids: frozenset[str] = frozenset(),
        foreign: frozenset[str] = frozenset(),
    ) -> RuleOutcome:
        """Separate the differences of one response that rules ignore. `requested_uids` are the uids that the request
        names, `foreign` the texts that belong to another element of the response: these have no form."""
        left: list[Difference] = []
        ignored: Counter[str] = Counter()
        for difference in differences:
            name = self._matching_rule(endpoint, difference, requested_uids, foreign)
            if name is None:
                left.append(difference)
            else:
                ignored[name] += 1
        return RuleOutcome(left, dict(ignored))

    def uses(self, ignored: Mapping[str, int]) -> tuple[RuleUse, ...]:
        """Report the usage of each rule, with one entry per field without a source; shipped rules only where used."""
        uses = [
            use
            for rule in self._all
            for use in (self._fields(rule, ignored) or (self._use(rule, ignored),))
            if use.ignored or not isinstance(rule, ShippedRule)
        ]
        known = {use.name for use in uses}
        gone = (RuleUse(name, "a rule that is not there any more", None, ignored[name], False) for name in ignored)
        return (*uses, *(use for use in gone if use.name not in known))

    def _expired(self, rule: IgnoreRule) -> bool:
        return rule.expires is not None and rule.expires < self._today

    def _rules_at(self, endpoint: str, path: str) -> tuple[IgnoreRule, ...]:
        return tuple(
            rule
            for rule in self._standing
            if (not rule.endpoint or endpoint in rule.endpoint)
            and (rule.path is None or paths.matches(rule.path, path))
        )

    def _matching_rule(
        self, endpoint: str, difference: Difference, requested_uids: frozenset[str], foreign: frozenset[str]
    ) -> str | None:
        """Return the name of the rule that ignores a difference; None where there is none."""
        for rule in self._at(endpoint, difference.path):
            if not (_lets_pass(rule, difference) and _has_form(rule, difference, requested_uids, foreign)):
                continue
            if rule.cause is None:
                return rule.name or ""
            row = self._row(rule, endpoint, difference)
            if row is not None:
                return _name(rule, row)
        return None

    def _row(self, rule: IgnoreRule, endpoint: str, difference: Difference) -> FieldEntry | None:
        of = self._causes.without_source if rule.cause == "no source" else self._causes.derived
        return of(endpoint, difference)

    def _fields(self, rule: IgnoreRule, ignored: Mapping[str, int]) -> tuple[RuleUse, ...]:
        if rule.cause is None:
            return ()
        rows = {_name(rule, row): row for row in self._causes.rows()}
        return tuple(self._use(rule, ignored, name, row.entry.note) for name, row in rows.items() if name in ignored)

    def _use(
        self, rule: IgnoreRule, ignored: Mapping[str, int], name: str | None = None, reason: str | None = None
    ) -> RuleUse:
        name = name or rule.name or ""
        expires = rule.expires.isoformat() if rule.expires else None
        return RuleUse(name, reason or rule.reason, expires, ignored.get(name, 0), self._expired(rule))


def _name(rule: IgnoreRule, row: FieldEntry) -> str:
    return f"{rule.name}: {row.name}"


def _lets_pass(rule: IgnoreRule, difference: Difference) -> bool:
    """Return true if the rule's tolerances and normal forms accept the difference, irrespective of its path."""
    if rule.tolerate is not None:
        return difference.kind in BOTH and rule.tolerate.allows(difference.baseline, difference.candidate)
    if rule.normalize:
        return _reads_the_same(rule, difference)
    return rule.ignore == "all" or difference.kind in rule.ignore


def _has_form(
    rule: IgnoreRule, difference: Difference, requested_uids: frozenset[str], foreign: frozenset[str]
) -> bool:
    """Return true if the value has a form that the rule requires: the candidate's value, or the baseline's if that may
    be missing.
    """
    if not rule.form:
        return True
    if type(difference.candidate) is str and difference.candidate in foreign:
        return False
    missing = difference.kind == "missing" and "missing" in rule.ignore
    return tolerances.has_form(
        difference.baseline if missing else difference.candidate, rule.form, difference.place, requested_uids
    )


def _reads_the_same(rule: IgnoreRule, difference: Difference) -> bool:
    if difference.kind == "order":
        return "sorted" in rule.normalize
    if difference.kind not in (*BOTH, "missing", "extra"):
        return False
    baseline, candidate = (
        tolerances.normalized(value, rule.normalize) for value in (difference.baseline, difference.candidate)
    )
    return baseline is not ABSENT and candidate is not ABSENT and bool(baseline == candidate)


class IgnoredCounts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Number of compared requests, and of ignored differences by rule name. Written by --save-ignored."""

    requests: int
    ignored: dict[str, int]

    def exceeded(self, ignored: Mapping[str, int], requests: int, margin: float) -> Iterator[str]:
        """Describe the rules that ignore more per request than in the earlier run, beyond a relative `margin`."""
        for name, times in sorted(ignored.items()):
            before = self.ignored.get(name, 0)
            if times * self.requests > before * requests * (1 + margin):
                yield (
                    f"the rule {name} ignores {times} differences of {requests} requests, more than the baseline: "
                    f"{before} of {self.requests}"
                )


def read_ignored_counts(path: Path) -> IgnoredCounts:
    """Read the counts of an earlier run. Raises ConfigError, with the command that writes the file."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=IgnoredCounts)
    except OSError as error:
        reason = f"cannot be read: {error.strerror}"
    except msgspec.DecodeError as error:
        reason = f"is not a baseline: {error}"
    raise errors.ConfigError(f"the baseline {path} {reason}; --save-ignored FILE writes one")


def render_ignored_counts(result: ComparisonResult) -> str:
    """Render the counts of a run."""
    counts = IgnoredCounts(
        sum(row.requests for row in result.rows), {rule.name: rule.ignored for rule in result.rules if rule.ignored}
    )
    return msgspec.json.format(msgspec.json.encode(counts, order="sorted"), indent=2).decode() + "\n"
