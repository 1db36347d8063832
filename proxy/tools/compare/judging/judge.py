"""Judge: turns the two responses to one request into a comparison.

Finds the differences, leaves out those that are known, separates prices and stock that changed during the run, names
the causes of the rest and applies the user's rules. Pure: the redaction and repeated responses are passed in.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec

from proxy.tools.compare.judging import diff, json_values, known, paths, unknown_uids
from proxy.tools.compare.judging.causes import Causes, is_refused_query
from proxy.tools.compare.judging.findings import Comparison, Difference, Finding, IgnoreRule
from proxy.tools.compare.judging.unsupported_uses import UnsupportedUses
from proxy.traffic.recordings import SideResponse
from proxy.traffic.v3_request import V3Request

TEXT_MAX, PATH_MAX, ENTRIES_MAX, DEPTH_MAX = 500, 300, 20, 6  # of what is shown
CUT = "…"
KEY = attrgetter("kind", "path", "place")  # of a difference, also of the same one to a repeated request


class LookedUp(NamedTuple):
    """What was asked about the responses: names of objects by their uids, and offers by the links that lead to them."""

    names: dict[str, str]
    owners: dict[str, set[known.Offer]]


NOTHING = LookedUp({}, {})


@dataclass(frozen=True)
class Judge:
    """Judge of response pairs, stateless between requests. `uids` are those of a site's own table, in addition to the
    recorded ones; `standing` are rules that have not expired."""

    standing: Sequence[IgnoreRule]
    causes: Causes
    redact: Callable[[str], str]
    uids: frozenset[str] = frozenset()

    def compare(
        self,
        request: V3Request,
        responses: tuple[SideResponse, SideResponse],
        *,
        baseline_again: SideResponse | None = None,
        looked_up: LookedUp = NOTHING,
    ) -> Comparison:
        """Judge one request; the baseline's response to a repetition may be given. Where `may_have_moved` is true, the
        caller repeats it, to detect a price or stock that changed meanwhile."""
        baseline, candidate = map(json_values.parse, responses)
        left, ignored = self._unknown(request, baseline, candidate, looked_up)
        # Prices and stock may change within a run.
        changing, moved = {KEY(each) for each in left if paths.is_changing(each.path)}, set[tuple[str, str, str]]()
        again = json_values.parse(baseline_again) if baseline_again else None
        if again and again.problem is None and again.status == baseline.status:
            # What the repeated baseline does not differ in has changed, and the candidate shows it as it is now.
            moved = changing - {KEY(each) for each in self._found(request, again, candidate, looked_up.names)}
        used = UnsupportedUses(
            request,
            self.causes,
            responses[1].unsupported,
            baseline=baseline.value,
            candidate=candidate.value,
            all_uids_known=bool(self.uids),
        )
        refused = min(baseline.status, candidate.status) >= 400
        found: dict[str, list[Finding]] = {"": [], "moved": [], "uid not known": []}
        for each in left:
            # Changed data is neither side's fault, so it is listed separately and does not count.
            cause = "moved" if KEY(each) in moved else self.causes.of(request.endpoint, each, refused=refused)
            cause = used.cause(each, cause)
            rules = (rule for rule in self.standing if rule.path is None or paths.matches(rule.path, each.path))
            if rule := next((rule for rule in rules if rule.cause in (None, cause)), None):
                ignored[rule.name] += 1
            else:
                found[cause if cause in found else ""].append(Finding(trimmed(each, self.redact), cause))
        counting, changed, unknown = (tuple(each) for each in found.values())
        succeeded = baseline.status == candidate.status == 200
        return Comparison(request, counting, changed, unknown, dict(ignored), succeeded, bool(changing))

    def _unknown(
        self, request: V3Request, baseline: json_values.Body, candidate: json_values.Body, looked_up: LookedUp
    ) -> tuple[list[Difference], Counter[str]]:
        """Return the differences that are not known ones, and the number of these by name."""
        found = self._found(request, baseline, candidate, looked_up.names)
        foreign = known.foreign(found, baseline.value, candidate.value, looked_up.owners)
        left: list[Difference] = []
        ignored: Counter[str] = Counter()
        for each in found:
            if self.causes.lacks_source(request.endpoint, each):
                ignored[known.NO_SOURCE] += 1
            elif name := known.name(request.endpoint, each, request.uids, foreign):
                ignored[name] += 1
            else:
                left.append(each)
        return left, ignored

    def _found(
        self, request: V3Request, baseline: json_values.Body, candidate: json_values.Body, names: Mapping[str, str]
    ) -> list[Difference]:
        """Return all differences of two comparable responses."""
        differences, one, other = list[Difference](), baseline.problem, candidate.problem
        if baseline.status != candidate.status:
            refusals = (each.value for each in (candidate, baseline) if each.status >= 400)
            messages = (value.get("message") for value in refusals if isinstance(value, dict))
            message = next((text for text in messages if isinstance(text, str) and text), "")
            statuses = baseline.status, candidate.status
            differences.append(Difference("status", paths.STATUS, paths.STATUS, *statuses, message))
        elif one != other:
            differences.append(Difference("unreadable", paths.BODY, paths.BODY, one or "JSON", other or "JSON"))
        # A body of another status has nothing in common with it: its differences would hide the status.
        both_refused = min(baseline.status, candidate.status) >= 400
        if one is None and other is None and (baseline.status == candidate.status or both_refused):
            found = diff.diff(baseline.value, candidate.value)
            # Neither has the result of a query that only one side refuses, so nothing else of that counts.
            refused = tuple(each.place.removesuffix("error") for each in found if is_refused_query(each))
            differences += [each for each in found if is_refused_query(each) or not each.place.startswith(refused)]
        uids = unknown_uids.RECORDED | self.uids
        return unknown_uids.explained(differences, unknown_uids.requested(request), uids, names)


def trimmed(value: Any, redact: Callable[[str], str], depth: int = 0, longest: int = TEXT_MAX) -> Any:
    """Redact and truncate the texts, lists and objects of a JSON value or a difference: a field of a catalog may have
    ten megabytes, or contain lone surrogates. `redact` removes keys from a text."""
    if isinstance(value, Difference):
        texts = {name: trimmed(getattr(value, name), redact, longest=PATH_MAX) for name in ("path", "place", "message")}
        sides = {name: trimmed(getattr(value, name), redact) for name in ("baseline", "candidate")}
        return msgspec.structs.replace(value, **texts, **sides)
    if isinstance(value, str):
        # Redacted first, because a truncated key would not be recognized, and without lone surrogates.
        text = redact(value).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return text if len(text) <= longest else text[: longest - 1] + CUT
    if isinstance(value, list | dict) and value and depth >= DEPTH_MAX:
        return CUT
    if isinstance(value, list):
        kept = [trimmed(each, redact, depth + 1) for each in value[:ENTRIES_MAX]]
        return [*kept, CUT] if len(value) > ENTRIES_MAX else kept
    if isinstance(value, dict):
        first = list(value.items())[:ENTRIES_MAX]
        shown = {trimmed(name, redact, longest=PATH_MAX): trimmed(each, redact, depth + 1) for name, each in first}
        return {**shown, CUT: CUT} if len(value) > ENTRIES_MAX else shown
    return value
