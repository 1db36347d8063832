"""Stages graphql and schema: every token is accepted, and the schema has what the mappings read.

One query for each application and one introspection, both free of charge. A stored token that is refused is replaced
by a new one, unless the run has requested one for the application already.
"""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from proxy import errors, model
from proxy.doctor import findings, identity
from proxy.doctor.findings import CheckResult, found, passed, skipped
from proxy.doctor.inspection import Inspection
from proxy.kit import shipped
from proxy.kit.wording import counted
from proxy.mapping import drift, loader
from proxy.upstream import classify, graphql, http_post, introspection

AFFECTED_MAX = 6  # v3 fields that one finding names
SITE = "octopart"  # the default of upstream.site
RESPONSE_BYTES = 4_194_304  # limit of a response to an introspection

SERVICE = findings.CheckedService("graphql", classify.SERVICE, "GraphQL", "upstream.graphql_url")


# Findings about one application; the others are about the service.
_APPLICATION_CODES = {
    "token_refused",
    "scope_missing",
    "client_refused",
    "scope_refused",
    "grant_refused",
    "token_rate_limited",
    "token_unusable",
    "identity_clock_wrong",
}


class DiagnosedError(Exception):
    """A request has failed for a reason that has a finding."""

    def __init__(self, finding: CheckResult) -> None:
        super().__init__(finding.text)
        self.finding = finding


class Answered(NamedTuple):
    """Data of a response, and the errors beside them."""

    data: Any
    errors: Sequence[model.GraphQLError]


async def check(inspection: Inspection) -> AsyncIterator[CheckResult]:
    """Try every token. Leaves the applications whose token is accepted."""
    for name in list(inspection.tokens):
        if name not in inspection.tokens:
            yield skipped("its token was that of an application above, and is refused", name)
            continue
        try:
            yield await _try_token(inspection, name)
        except errors.QueryRefused as error:
            # The token was accepted: what refuses the query is a schema that has changed, or something unknown.
            inspection.refusal = error
        except errors.QuotaExhausted:
            # Lists and introspection are free, but a plan without parts may not even have those: see the stage plan.
            yield passed("token_accepted", "the token is accepted", name)
        except DiagnosedError as error:
            yield error.finding
            if error.finding.outcome == "skipped" or error.finding.code in _APPLICATION_CODES:
                continue
            return  # the service fails, whichever application asks
        inspection.accepted.add(name)


async def check_schema(inspection: Inspection) -> AsyncIterator[CheckResult]:
    """Compare the schema; where it has all that the mappings read, a refused query has another reason."""
    has_drift = False
    async for finding in _schema(inspection):
        has_drift = has_drift or finding.outcome == "failed"
        yield finding
    if inspection.refusal is not None and not has_drift:
        yield found("graphql_refuses", f"{classify.SERVICE} refuses a free query: {inspection.refusal.message}")


async def _try_token(inspection: Inspection, name: str) -> CheckResult:
    """Send a free query with the application's token, and again with a new one if a stored one is refused."""
    started = inspection.clock.monotonic()
    try:
        await send(inspection, name, graphql.PROBE)
    except DiagnosedError as error:
        if error.finding.code != "token_refused":
            raise
        if inspection.identity_clock is not None:
            raise DiagnosedError(_clock_finding(inspection.identity_clock, name)) from error
        if name not in inspection.stored_tokens:
            raise
        await identity.forget(inspection, name)
        async for finding in identity.request(inspection, name):
            if finding.outcome == "failed":
                raise DiagnosedError(finding) from error
        await send(inspection, name, graphql.PROBE)
        return passed("token_replaced", "the stored token was refused, a new one is accepted", name)
    milliseconds = (inspection.clock.monotonic() - started) * 1000
    return passed("token_accepted", f"the token is accepted; a query took {milliseconds:.0f} ms", name)


def _clock_finding(clock: CheckResult, name: str) -> CheckResult:
    """Return the finding for a token that is refused because of the clock of the identity service."""
    if clock.outcome == "failed":
        return skipped("the token is refused, which follows from the clock of the identity service", name)
    return found("identity_clock_wrong", f"the token is refused; {clock.text}", application=name)


async def _schema(inspection: Inspection) -> AsyncIterator[CheckResult]:
    """Compare the schema with what the mappings read; it is the same for all applications."""
    settings = inspection.settings
    uids = Path(settings.uids) if settings.uids else None
    mappings = loader.load(shipped.path("mappings"), inspection.upstream.site, uids)
    operation = introspection.operation(mappings.schema.named_types())
    try:
        answered = await send(inspection, min(inspection.accepted), operation)
    except (errors.QueryRefused, errors.QuotaExhausted) as error:
        yield found("introspection_refused", f"the schema was not compared: {error.message}")
        return
    except DiagnosedError as error:
        yield error.finding
        return
    differences = drift.compare(mappings, answered.data.types)
    site = inspection.upstream.site
    for difference in differences:
        # The one field whose name is configured: its default is no mistake of the configuration.
        if difference.place == f"SupPart.{site}Url" and site != SITE:
            yield found("site_unknown", f"upstream.site is {site}, but {difference.place} does not exist")
        else:
            yield drift_finding(difference)
    if not differences:
        count = sum(len(getattr(kind, "fields", ())) for kind in mappings.schema.named_types().values())
        yield passed("schema_complete", f"the schema has all {count} fields that the mappings read")


def drift_finding(difference: drift.Drift) -> CheckResult:
    affected = difference.affected
    named = ", ".join(affected[:AFFECTED_MAX]) + (
        f" and {len(affected) - AFFECTED_MAX} more" if len(affected) > AFFECTED_MAX else ""
    )
    code = "schema_drift" if difference.breaks else "schema_changed"
    relation = "without its source" if difference.breaks else "read from it"
    return found(code, f"{difference.place} {difference.problem}; {relation}: {named or 'nothing known'}")


async def send(inspection: Inspection, name: str, operation: classify.GraphQLOperation[Any]) -> Answered:
    """Send an operation that costs nothing, and return its data. Raises DiagnosedError, QueryRefused and
    QuotaExhausted."""
    return parse_response(await post(inspection, name, operation), operation, name, inspection.clock.now())


async def post(inspection: Inspection, name: str, operation: classify.GraphQLOperation[Any]) -> http_post.HttpResponse:
    """Send an operation with the application's token, and return the response, whatever it is. Raises
    DiagnosedError."""
    assert inspection.session is not None  # noqa: S101 - run.py skips the stage otherwise
    headers = {
        "Authorization": f"Bearer {inspection.tokens[name]}",
        "Content-Type": "application/json",
        "Accept": "application/json",
    }
    request = http_post.HttpRequest(
        inspection.upstream.graphql_url, classify.SERVICE, operation.payload, headers, False, max_bytes=RESPONSE_BYTES
    )
    try:
        return await http_post.post(inspection.session, request)
    except errors.ServerError as error:
        raise DiagnosedError(SERVICE.failure_finding(error)) from error


def parse_response(
    reply: http_post.HttpResponse, operation: classify.GraphQLOperation[Any], name: str, now: float
) -> Answered:
    """Return the data of a response. Raises DiagnosedError, QueryRefused and QuotaExhausted."""
    envelope = classify.decode(operation, reply)
    if refusal := classify.token_refusal(reply, envelope):
        text = f"{classify.SERVICE} refuses the token: {refusal}"
        raise DiagnosedError(found("token_refused", text, application=name))
    if classify.lacks_scope(envelope):
        text = f"{classify.SERVICE} accepts the token, but not for supply data ({classify.OUT_OF_SCOPE})"
        raise DiagnosedError(found("scope_missing", text, application=name))
    try:
        data = classify.data(reply, envelope, now)
    except errors.TooManyRequests as error:
        wait = f"; it asks to wait for {counted(error.retry_after, 'second')}" if error.retry_after else ""
        text = f"{classify.SERVICE} limits requests (HTTP {reply.status}){wait}"
        raise DiagnosedError(found("graphql_rate_limited", text)) from error
    except errors.ServerError as error:
        if isinstance(error, errors.QueryRefused):
            raise
        raise DiagnosedError(SERVICE.response_finding(reply, error)) from error
    return Answered(data, (envelope.errors if envelope else None) or ())
