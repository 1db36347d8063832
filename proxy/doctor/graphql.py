"""Stage graphql: every token is accepted, and the schema has what the mappings read.

One query for each application and one introspection, both free of charge. A stored token that is refused is replaced
by a new one, unless the run has requested one for the application already.
"""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from proxy import errors, model
from proxy.doctor import identity, services
from proxy.doctor.findings import CheckResult
from proxy.doctor.inspection import Diagnosis, Inspection, passed, skipped
from proxy.kit import shipped
from proxy.kit.wording import counted
from proxy.mapping import drift, loader
from proxy.upstream import classify, graphql, http_post, introspection
from proxy.upstream.auth import identity as identity_service

AFFECTED_MAX = 6  # v3 fields that one finding names
SITE = "octopart"  # the default of upstream.site
RESPONSE_BYTES = 4_194_304  # limit of a response to an introspection

SERVICE = services.diagnoses("graphql", classify.SERVICE, "GraphQL", "upstream.graphql_url")
TOKEN_REFUSED = Diagnosis(
    "token_refused",
    "the token is of another identity service than the GraphQL service knows, or was revoked",
    "check that upstream.token_url and upstream.graphql_url belong together; run the check again in some minutes",
)
SCOPE_MISSING = Diagnosis("scope_missing", "the token has no scope for supply data", identity_service.SCOPE_ADVICE)
RATE_LIMITED = Diagnosis(
    "graphql_rate_limited",
    "the GraphQL service gets more requests than it allows, perhaps from other programs behind this address",
    "wait as long as it says; set `rate` of the application lower if it comes back",
)
REFUSED = Diagnosis(
    "graphql_refuses",
    "the GraphQL service refuses a query that v3bridge sends to every plan",
    "check upstream.graphql_url; if it is right, update v3bridge, or report it with the text above",
)
SCHEMA_DRIFT = Diagnosis(
    "schema_drift",
    "the schema of the GraphQL service has changed; requests that need the field fail",
    "update v3bridge; until then, clients can leave out the field with hide[], or without its include[]",
)
SCHEMA_CHANGED = Diagnosis(
    "schema_changed",
    "the schema of the GraphQL service has changed in a way that may concern single responses",
    "update v3bridge; compare some parts with `v3bridge compare`",
    "warning",
)
SITE_UNKNOWN = Diagnosis(
    "site_unknown",
    "upstream.site is not the name of the catalog site, from which the field of a part's page has its name",
    "set upstream.site to octopart, or delete its line",
)
INTROSPECTION_REFUSED = Diagnosis(
    "introspection_refused",
    "the GraphQL service does not show its schema",
    "nothing: fields that are gone show as errors in responses; `v3bridge conform` finds them, too",
    "warning",
)


# Findings about one application; the others are about the service.
_OF_APPLICATION = {
    diagnosis.code
    for diagnosis in (
        TOKEN_REFUSED,
        SCOPE_MISSING,
        identity.REFUSED,
        identity.SCOPE_REFUSED,
        identity.GRANT_REFUSED,
        identity.RATE_LIMITED,
        identity.TOKEN_UNUSABLE,
        identity.CLOCK_WRONG,
    )
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
    """Try every token, then compare the schema. Leaves the applications whose token is accepted."""
    refusal: errors.QueryRefused | None = None
    for name in list(inspection.tokens):
        if name not in inspection.tokens:
            yield skipped("its token was that of an application above, and is refused", name)
            continue
        try:
            yield await _try_token(inspection, name)
        except errors.QueryRefused as error:
            # The token was accepted: what refuses the query is a schema that has changed, or something unknown.
            refusal = error
        except errors.QuotaExhausted:
            # Lists and introspection are free, but a plan without parts may not even have those: see the stage plan.
            yield passed("token_accepted", "the token is accepted", name)
        except DiagnosedError as error:
            yield error.finding
            if error.finding.outcome == "skipped" or error.finding.code in _OF_APPLICATION:
                continue
            return  # the service fails, whichever application asks
        inspection.accepted.add(name)
    if not inspection.accepted:
        return
    has_drift = False
    async for finding in _schema(inspection):
        has_drift = has_drift or finding.outcome == "failed"
        yield finding
    if refusal is not None and not has_drift:
        yield REFUSED.finding(f"{classify.SERVICE} refuses a free query: {refusal.message}")


async def _try_token(inspection: Inspection, name: str) -> CheckResult:
    """Send a free query with the application's token, and again with a new one if a stored one is refused."""
    started = inspection.clock.monotonic()
    try:
        await send(inspection, name, graphql.PROBE)
    except DiagnosedError as error:
        if error.finding.code != TOKEN_REFUSED.code:
            raise
        if inspection.identity_clock is not None:
            raise DiagnosedError(_of_clock(inspection.identity_clock, name)) from error
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


def _of_clock(clock: CheckResult, name: str) -> CheckResult:
    """Return the finding for a token that is refused because of the clock of the identity service."""
    if clock.outcome == "failed":
        return skipped("the token is refused, which follows from the clock of the identity service", name)
    return identity.CLOCK_WRONG.finding(f"the token is refused; {clock.text}", application=name)


async def _schema(inspection: Inspection) -> AsyncIterator[CheckResult]:
    """Compare the schema with what the mappings read; it is the same for all applications."""
    settings = inspection.settings
    uids = Path(settings.uids) if settings.uids else None
    mappings = loader.load(shipped.path("mappings"), inspection.upstream.site, uids)
    operation = introspection.operation(mappings.schema.named_types())
    try:
        answered = await send(inspection, min(inspection.accepted), operation)
    except (errors.QueryRefused, errors.QuotaExhausted) as error:
        yield INTROSPECTION_REFUSED.finding(f"the schema was not compared: {error.message}")
        return
    except DiagnosedError as error:
        yield error.finding
        return
    differences = drift.compare(mappings, answered.data.types)
    site = inspection.upstream.site
    for difference in differences:
        # The one field whose name is configured: its default is no mistake of the configuration.
        if difference.place == f"SupPart.{site}Url" and site != SITE:
            yield SITE_UNKNOWN.finding(f"upstream.site is {site}, but {difference.place} does not exist")
        else:
            yield of_drift(difference)
    if not differences:
        count = sum(len(getattr(kind, "fields", ())) for kind in mappings.schema.named_types().values())
        yield passed("schema_complete", f"the schema has all {count} fields that the mappings read")


def of_drift(difference: drift.Drift) -> CheckResult:
    """Return the finding for one difference of the schema."""
    affected = difference.affected
    named = ", ".join(affected[:AFFECTED_MAX]) + (
        f" and {len(affected) - AFFECTED_MAX} more" if len(affected) > AFFECTED_MAX else ""
    )
    diagnosis = SCHEMA_DRIFT if difference.breaks else SCHEMA_CHANGED
    relation = "without its source" if difference.breaks else "read from it"
    return diagnosis.finding(f"{difference.place} {difference.problem}; {relation}: {named or 'nothing known'}")


async def send(inspection: Inspection, name: str, operation: classify.GraphQLOperation[Any]) -> Answered:
    """Send an operation that costs nothing, and return its data. Raises DiagnosedError, QueryRefused and
    QuotaExhausted."""
    return of_response(await post(inspection, name, operation), operation, name, inspection.clock.now())


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
        raise DiagnosedError(SERVICE.of_failure(error)) from error


def of_response(
    reply: http_post.HttpResponse, operation: classify.GraphQLOperation[Any], name: str, now: float
) -> Answered:
    """Return the data of a response. Raises DiagnosedError, QueryRefused and QuotaExhausted."""
    envelope = classify.decode(operation, reply)
    if refusal := classify.token_refusal(reply, envelope):
        text = f"{classify.SERVICE} refuses the token: {refusal}"
        raise DiagnosedError(TOKEN_REFUSED.finding(text, application=name))
    if classify.lacks_scope(envelope):
        text = f"{classify.SERVICE} accepts the token, but not for supply data ({classify.OUT_OF_SCOPE})"
        raise DiagnosedError(SCOPE_MISSING.finding(text, application=name))
    try:
        data = classify.data(reply, envelope, now)
    except errors.TooManyRequests as error:
        wait = f"; it asks to wait for {counted(error.retry_after, 'second')}" if error.retry_after else ""
        text = f"{classify.SERVICE} limits requests (HTTP {reply.status}){wait}"
        raise DiagnosedError(RATE_LIMITED.finding(text)) from error
    except errors.ServerError as error:
        if isinstance(error, errors.QueryRefused):
            raise
        raise DiagnosedError(SERVICE.of_response(reply, error)) from error
    return Answered(data, (envelope.errors if envelope else None) or ())
