"""Stage plan: the part limit and the features that the Nexar application has, against those that are configured.

Nothing here returns parts. An exhausted part limit shows in the error of a search for a part that nobody has, with no
results selected; only the portal shows what is left of another. Of the features only TECH_SPECS shows without a part,
because aggregations need it.
"""

import re
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from proxy import config, errors, model
from proxy.doctor import graphql, stored
from proxy.doctor.findings import CheckResult, found, passed, remedy, skipped
from proxy.doctor.inspection import Inspection
from proxy.gateway.quota import usage
from proxy.kit.wording import counted
from proxy.stores.protocols import EntryUsage, ExhaustedQuota, Store
from proxy.upstream import classify, http_post

_NO_LEDGER: tuple[list[EntryUsage], list[ExhaustedQuota]] = ([], [])
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
    usages, marked = await stored.use(inspection, _ledger, _NO_LEDGER)
    for name in sorted(inspection.accepted):
        application = inspection.settings.applications[name]
        try:
            reply = await graphql.post(inspection, name, PROBE)
            refusal = parse_probe(reply, name, inspection.clock.now())
        except graphql.DiagnosedError as error:
            yield error.finding
            return
        exhausted = next((quota for quota in marked if quota.account == name), None)
        for finding in limit_findings(_part_limit(refusal, exhausted), application, name):
            yield finding
        yield ledger_finding(name, application, usages, inspection.clock.now())
        for finding in _mark_findings(exhausted, refusal, name, inspection.clock.now()):
            yield finding
        for finding in feature_findings(refusal, application, name):
            yield finding


def _mark_findings(exhausted: ExhaustedQuota | None, refusal: object, name: str, now: float) -> Iterator[CheckResult]:
    """Yield the finding about a quota that is marked as exhausted, while the upstream accepts requests."""
    if exhausted is not None and exhausted.until > now and not isinstance(refusal, errors.QuotaExhausted):
        text = "the store has the quota as exhausted, but the upstream accepts requests"
        yield found(
            "quota_marked_exhausted",
            text,
            advice=remedy("quota_marked_exhausted").replace("NAME", name),
            application=name,
        )


class _PlanEnvelope(msgspec.Struct, frozen=True):
    data: dict[str, Any] | None = None
    errors: list[model.GraphQLError] | None = None


@dataclass(frozen=True, slots=True)
class _PlanProbe:
    """A search that nothing matches and that selects no part; its aggregation needs TECH_SPECS."""

    name: str = "planCheck"
    payload: bytes = msgspec.json.encode(
        {
            "operationName": "planCheck",
            "query": 'query planCheck { supSearchMpn(q: "v3bridge-doctor-matches-no-part", limit: 0) '
            '{ hits specAggs(attributeNames: ["resistance"]) { valueType } } }',
        }
    )
    decode: Callable[[bytes], _PlanEnvelope] = msgspec.json.Decoder(_PlanEnvelope).decode


PROBE = _PlanProbe()


class FeatureRefused(NamedTuple):
    """The upstream refuses the aggregation; `message` is its reason."""

    message: str


def parse_probe(
    reply: http_post.HttpResponse, name: str, now: float
) -> errors.QuotaExhausted | errors.QueryRefused | FeatureRefused | None:
    """Return what the response to the probe refuses; None if nothing. Raises DiagnosedError."""
    envelope = classify.decode(PROBE, reply)
    for error in (envelope.errors if envelope else None) or ():
        is_about_specs = isinstance(error.path, list) and "specAggs" in error.path
        # Its text and path are not documented (contract graphql.md §11).
        if is_about_specs or re.search(rf"{TECH_SPECS}|\bfeature\b", error.message):
            return FeatureRefused(error.message)
    try:
        graphql.parse_response(reply, PROBE, name, now)
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


def ledger_finding(
    name: str, application: config.ApplicationSettings, usages: list[EntryUsage], now: float
) -> CheckResult:
    """Return the finding about the parts that the ledger has left."""
    row = usage.rows({name: application}, usages, [], now)[0]
    spent = row.used + row.uncertain
    if row.limit is None:
        return passed("quota_unlimited", f"parts: unlimited; {counted(spent, 'part')} used in {row.period}", name)
    remaining = row.remaining or 0
    reset = f"until {row.resets_at[:10]}" if row.resets_at else "for ever"
    text = f"{remaining:,} of {counted(row.limit, 'part')} remain {reset} (`parts` and the ledger)"
    if row.limit == 0:
        text = "`parts` is 0, so that only requests that are free of charge are sent"
        return found("quota_exhausted", text, advice="set `parts` to the part limit of the plan", application=name)
    if remaining == 0:
        advice = "" if row.resets_at else "raise `parts` if the plan has more; no date changes this by itself"
        return found("quota_exhausted", text, advice=advice, application=name)
    if (row.percent or 0.0) >= LOW_PERCENT:
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


def _part_limit(refusal: object, exhausted: ExhaustedQuota | None) -> PartLimit:
    """Put together what the upstream says now, and what it said when it refused the quota."""
    is_refused = isinstance(refusal, errors.QuotaExhausted)
    said = classify.part_limit(str(refusal)) if is_refused else None
    if said is None and exhausted is not None:
        said = classify.part_limit(exhausted.reason)
        # An earlier limit of 0 is history once requests are accepted: the plan has grown.
        said = None if said == 0 and not is_refused else said
    return PartLimit(said, is_refused)


async def _ledger(store: Store) -> tuple[list[EntryUsage], list[ExhaustedQuota]]:
    return await store.all_usage(), await store.exhausted_quotas()
