"""Stage plan: the part limit and the features that the Nexar application has, against those that are configured.

Nothing here returns parts. An exhausted part limit shows in the error of a search for a part that nobody has, with no
results selected; only the portal shows what is left of another. Of the features only TECH_SPECS shows without a part,
because aggregations need it.
"""

import re
from collections.abc import AsyncIterator, Iterator
from typing import NamedTuple

from proxy import config, errors
from proxy.doctor import graphql
from proxy.doctor.findings import CheckResult, found, passed, remedy, skipped
from proxy.doctor.inspection import Inspection
from proxy.gateway.core import StoredState, UsageRow
from proxy.kit.wording import counted
from proxy.model import GraphQLReply

SMALL_LIMIT = 100  # parts: that of an evaluation
LOW_PERCENT = 90.0
TECH_SPECS = "TECH_SPECS"
# The features of v3's fields that show only on a part.
SHOWN_BY_PARTS = {"LEAD_TIME": "factory_lead_days", "DATASHEETS": "datasheets", "CAD_MODELS": "cad_models"}


class PartLimit(NamedTuple):
    """What is known of the part limit: its number, and whether the upstream refuses requests for it."""

    number: int | None
    is_refused: bool


async def check(inspection: Inspection) -> AsyncIterator[CheckResult]:
    """Check the plan of each application whose token is accepted."""
    unused = StoredState.unused(inspection.settings, inspection.clock)
    rows = await inspection.stored(lambda state: state.usage(), unused)
    usages = {row.application: row for row in rows if row.key is None}
    for name in sorted(inspection.accepted):
        application = inspection.settings.applications[name]
        try:
            refusal = parse_probe(await graphql.send(inspection, name, PROBE), name)
        except graphql.DiagnosedError as error:
            yield error.finding
            return
        row = usages[name]
        for finding in limit_findings(_part_limit(refusal, row), application, name):
            yield finding
        yield ledger_finding(name, application, row)
        for finding in _mark_findings(row, refusal, name):
            yield finding
        for finding in feature_findings(refusal, application, name):
            yield finding


def _mark_findings(row: UsageRow, refusal: object, name: str) -> Iterator[CheckResult]:
    """Yield the finding about a quota that is marked as exhausted, while the upstream accepts requests."""
    if row.exhausted_until is not None and not isinstance(refusal, errors.QuotaExhausted):
        text = "the store has the quota as exhausted, but the upstream accepts requests"
        yield found(
            "quota_marked_exhausted",
            text,
            advice=remedy("quota_marked_exhausted").replace("NAME", name),
            application=name,
        )


# A search that nothing matches and that selects no part; its aggregation needs TECH_SPECS.
PROBE = graphql.probe(
    "planCheck",
    'query planCheck { supSearchMpn(q: "v3bridge-doctor-matches-no-part", limit: 0) '
    '{ hits specAggs(attributeNames: ["resistance"]) { valueType } } }',
)


class FeatureRefused(NamedTuple):
    """The upstream refuses the aggregation; `message` is its reason."""

    message: str


def parse_probe(reply: GraphQLReply, name: str) -> errors.QuotaExhausted | errors.QueryRefused | FeatureRefused | None:
    """Return what the response to the probe refuses; None if nothing. Raises DiagnosedError."""
    for error in reply.reported:
        is_about_specs = isinstance(error.path, list) and "specAggs" in error.path
        # Its text and path are not documented (contract graphql.md §11).
        if is_about_specs or re.search(rf"{TECH_SPECS}|\bfeature\b", error.message):
            return FeatureRefused(error.message)
    try:
        graphql.data_of(reply, name)
    except (errors.QuotaExhausted, errors.QueryRefused) as refusal:
        return refusal
    return None


def limit_findings(limit: PartLimit, application: config.ApplicationSettings, name: str) -> list[CheckResult]:
    number = limit.number
    if number == 0:
        return [found("plan_without_parts", "this plan has no parts: its part limit is 0", application=name)]
    if limit.is_refused:
        shown = "part limit" if number is None else f"part limit of {number:,}"
        small = ", that of an evaluation," if number is not None and number <= SMALL_LIMIT else ""
        findings = [found("part_limit_reached", f"the {shown}{small} is exhausted", application=name)]
    elif number is None:
        text = "the part limit is not exhausted; its number shows only when it is"
        return [passed("part_limit_open", text, name)]
    elif number <= SMALL_LIMIT:
        findings = [found("part_limit_small", f"the part limit is {number:,}", application=name)]
    else:
        findings = [passed("part_limit_open", f"the part limit is {number:,}", name)]
    if isinstance(application.parts, int) and number is not None and application.parts != number:
        text = f"`parts` is {application.parts:,}, the part limit of the plan is {number:,}"
        findings.append(found("part_limit_differs", text, application=name))
    return findings


def ledger_finding(name: str, application: config.ApplicationSettings, row: UsageRow) -> CheckResult:
    """Return the finding about the parts that are left of the limit of the configuration."""
    spent, limit = row.used + row.uncertain, application.parts
    if not isinstance(limit, int):
        return passed("quota_unlimited", f"parts: unlimited; {counted(spent, 'part')} used in {row.period}", name)
    remaining = max(0, limit - spent)
    reset = f"until {row.resets_at[:10]}" if row.resets_at else "for ever"
    text = f"{remaining:,} of {counted(limit, 'part')} remain {reset} (`parts` and the ledger)"
    if limit == 0:
        text = "`parts` is 0, so that only requests that are free of charge are sent"
        return found("quota_exhausted", text, advice="set `parts` to the part limit of the plan", application=name)
    if remaining == 0:
        advice = "" if row.resets_at else "raise `parts` if the plan has more; no date changes this by itself"
        return found("quota_exhausted", text, advice=advice, application=name)
    if 100 * spent >= LOW_PERCENT * limit:
        return found("quota_low", text, application=name)
    return passed("quota_remaining", text, name)


def feature_findings(refusal: object, application: config.ApplicationSettings, name: str) -> list[CheckResult]:
    """Return the findings about the features of a plan, as far as they show without parts."""
    findings = []
    configured = application.allowed_features
    if isinstance(refusal, FeatureRefused) and TECH_SPECS in configured:
        text = f"`features` has {TECH_SPECS}, which the upstream refuses: {refusal.message}"
        findings.append(found("feature_missing", text, application=name))
    elif refusal is None and TECH_SPECS not in configured:
        text = f"the plan includes {TECH_SPECS}, which `features` leaves out: specs stay empty"
        findings.append(found("feature_unused", text, application=name))
    elif refusal is None:
        findings.append(passed("feature_included", f"the plan includes {TECH_SPECS}", name))
    shown = (
        SHOWN_BY_PARTS
        if refusal is None or isinstance(refusal, FeatureRefused)
        else {TECH_SPECS: "specs", **SHOWN_BY_PARTS}
    )
    if fields := ", ".join(f"{feature} ({field})" for feature, field in shown.items() if feature in configured):
        findings.append(skipped(f"not checked, because only a part shows it, which costs one: {fields}", name))
    return findings


def _part_limit(refusal: object, row: UsageRow) -> PartLimit:
    """Put together what the upstream says now, and what it said when it refused the quota."""
    is_refused = isinstance(refusal, errors.QuotaExhausted)
    said = refusal.part_limit if isinstance(refusal, errors.QuotaExhausted) else None
    if said is None:
        # An earlier limit of 0 is history once requests are accepted: the plan has grown.
        said = None if row.part_limit == 0 and not is_refused else row.part_limit
    return PartLimit(said, is_refused)
