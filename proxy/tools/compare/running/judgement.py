"""Judge and summary of a run, assembled from settings, rules and causes."""

import datetime
from collections.abc import Callable
from typing import NamedTuple

from proxy.kit.clock import Clock
from proxy.tools.compare.judging import causes, judge, rules, summary, v3_fields
from proxy.tools.compare.judging.settings import ComparisonSettings

SITE = "octopart"  # default; it is part of a field's name, and does not influence a judgement


class Judgement(NamedTuple):
    """A judge, and the summary that makes a result of its findings."""

    judge: judge.Judge
    summary: summary.Summary


def build(
    chosen: ComparisonSettings,
    site: str | None,
    clock: Clock,
    redact: Callable[[str], str],
    *,
    baseline: rules.IgnoredCounts | None = None,
    uids: frozenset[str] = frozenset(),
) -> Judgement:
    """Build judge and summary; rules that expire are checked against today's date. `site` and `uids`, those of its own
    table, are of the service whose responses are judged; `baseline` limits how much rules may hide."""
    why = causes.Causes(v3_fields.load(site or SITE))
    today = datetime.datetime.fromtimestamp(clock.now(), datetime.UTC).date()
    book = rules.RuleSet(chosen.rules, why, today)
    judged = judge.Judge(chosen, book, why, redact, uids=uids)
    return Judgement(judged, summary.Summary(chosen, book, why, baseline))
