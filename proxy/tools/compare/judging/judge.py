"""Judge: turns the two responses to one request into a comparison.

Finds the differences, leaves out those that are known, separates prices and stock that changed during the run, names
the causes of the rest and applies the user's rules. Pure: the redaction and repeated responses are passed in.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
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


class LookedUp(NamedTuple):
    """What was asked about the responses: names of objects by their uids, and offers by the links that lead to them."""

    names: dict[str, str]
    owners: dict[str, set[known.Offer]]


NOTHING = LookedUp({}, {})


class Judge:
    """Judge of response pairs, stateless between requests. `uids` are those of a site's own table, in addition to the
    recorded ones; `standing` are rules that have not expired."""

    def __init__(
        self,
        standing: Sequence[IgnoreRule],
        causes: Causes,
        redact: Callable[[str], str],
        uids: frozenset[str] = frozenset(),
    ) -> None:
        self._rules = standing
        self.causes = causes
        self._trimming = Trimming(redact)
        self._uids = unknown_uids.RECORDED | uids
        self._has_table = bool(uids)

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
        changing, moved = {_key(each) for each in left if paths.is_changing(each.path)}, set[tuple[str, str, str]]()
        again = json_values.parse(baseline_again) if baseline_again else None
        if again and again.problem is None and again.status == baseline.status:
            # What the repeated baseline does not differ in has changed, and the candidate shows it as it is now.
            moved = changing - {_key(each) for each in self._found(request, again, candidate, looked_up.names)}
        used = UnsupportedUses(
            request,
            self.causes,
            responses[1].unsupported,
            baseline=baseline.value,
            candidate=candidate.value,
            all_uids_known=self._has_table,
        )
        refused = baseline.is_refusal and candidate.is_refusal
        found: dict[str, list[Finding]] = {"moved": [], "uid not known": [], "": []}
        for each in left:
            # Changed data is neither side's fault, so it is listed separately and does not count.
            cause = "moved" if _key(each) in moved else self.causes.of(request.endpoint, each, refused=refused)
            cause = used.cause(each, cause)
            if rule := next((rule for rule in self._rules if rule.matches(each, cause)), None):
                ignored[rule.name] += 1
            else:
                finding = Finding(self._trimming.difference(each), cause)
                found[cause if cause in found else ""].append(finding)
        return Comparison(
            request,
            tuple(found[""]),
            tuple(found["moved"]),
            tuple(found["uid not known"]),
            dict(ignored),
            baseline.status == candidate.status == 200,
            bool(changing),
        )

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
            refusals = (each.value for each in (candidate, baseline) if each.is_refusal)
            messages = (value.get("message") for value in refusals if isinstance(value, dict))
            message = next((text for text in messages if isinstance(text, str) and text), "")
            statuses = baseline.status, candidate.status
            differences.append(Difference("status", paths.STATUS, paths.STATUS, *statuses, message))
        elif one != other:
            differences.append(Difference("unreadable", paths.BODY, paths.BODY, one or "JSON", other or "JSON"))
        # A body of another status has nothing in common with it: its differences would hide the status.
        both_refused = baseline.is_refusal and candidate.is_refusal
        if one is None and other is None and (baseline.status == candidate.status or both_refused):
            found = diff.diff(baseline.value, candidate.value)
            # Neither has the result of a query that only one side refuses, so nothing else of that counts.
            refused = tuple(each.place.removesuffix("error") for each in found if is_refused_query(each))
            differences += [each for each in found if is_refused_query(each) or not each.place.startswith(refused)]
        return unknown_uids.explained(differences, unknown_uids.requested(request), self._uids, names)


def _key(difference: Difference) -> tuple[str, str, str]:
    return difference.kind, difference.path, difference.place


class Trimming(NamedTuple):
    """Redaction and truncation of the values that a comparison shows: a field of a catalog may have ten megabytes, or
    contain lone surrogates. `redact` removes keys from a text."""

    redact: Callable[[str], str]

    def difference(self, difference: Difference) -> Difference:
        """Redact and truncate a difference."""
        return msgspec.structs.replace(
            difference,
            path=self.value(difference.path, longest=PATH_MAX),
            place=self.value(difference.place, longest=PATH_MAX),
            baseline=self.value(difference.baseline),
            candidate=self.value(difference.candidate),
            message=self.value(difference.message, longest=PATH_MAX),
        )

    def value(self, value: Any, depth: int = 0, longest: int = TEXT_MAX) -> Any:
        """Truncate the texts, lists and objects of a JSON value."""
        if isinstance(value, str):
            # Redacted first, because a truncated key would not be recognized, and without lone surrogates.
            text = self.redact(value).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            return text if len(text) <= longest else text[: longest - 1] + CUT
        if isinstance(value, list | dict) and value and depth >= DEPTH_MAX:
            return CUT
        if isinstance(value, list):
            kept = [self.value(each, depth + 1) for each in value[:ENTRIES_MAX]]
            return [*kept, CUT] if len(value) > ENTRIES_MAX else kept
        if isinstance(value, dict):
            first = list(value.items())[:ENTRIES_MAX]
            shown = {self.value(name, longest=PATH_MAX): self.value(each, depth + 1) for name, each in first}
            return {**shown, CUT: CUT} if len(value) > ENTRIES_MAX else shown
        return value
