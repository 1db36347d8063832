"""Stages graphql and schema: every token is accepted, and the schema has what the mappings read.

One query for each application and one introspection, both free of charge. A stored token that is refused is replaced
by a new one, unless the run has requested one for the application already.
"""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from proxy import errors, model
from proxy.doctor import findings, identity, introspection
from proxy.doctor.findings import CheckResult, found, passed, skipped
from proxy.doctor.inspection import Inspection
from proxy.kit import shipped
from proxy.kit.wording import counted
from proxy.mapping import drift, loader
from proxy.model import GraphQLReply

AFFECTED_MAX = 6  # v3 fields that one finding names
SITE = "octopart"  # the default of upstream.site

SERVICE = findings.CheckedService("graphql", "the GraphQL service", "upstream.graphql_url")
OUT_OF_SCOPE = "AUTH_NOT_AUTHORIZED"  # code of a token that lacks a scope


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


class _Envelope(msgspec.Struct, frozen=True):
    data: dict[str, Any] | None = None
    errors: list[model.GraphQLError] | None = None


class Probe(NamedTuple):
    """Operation whose data says nothing: only whether there is some."""

    name: str
    payload: bytes
    decode: Callable[[bytes], _Envelope] = msgspec.json.Decoder(_Envelope).decode


def probe(name: str, document: str) -> Probe:
    """Encode a document whose one operation has this name."""
    return Probe(name, msgspec.json.encode({"operationName": name, "query": document}))


FREE = probe("probe", "query probe { supCategories { id } }")


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
        yield found("graphql_refuses", f"{SERVICE.name} refuses a free query: {inspection.refusal.message}")


async def _try_token(inspection: Inspection, name: str) -> CheckResult:
    """Send a free query with the application's token, and again with a new one if a stored one is refused."""
    started = inspection.clock.monotonic()
    try:
        data_of(await send(inspection, name, FREE), name)
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
        data_of(await send(inspection, name, FREE), name)
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
        name = min(inspection.accepted)
        introspected = data_of(await send(inspection, name, operation), name)
    except (errors.QueryRefused, errors.QuotaExhausted) as error:
        yield found("introspection_refused", f"the schema was not compared: {error.message}")
        return
    except DiagnosedError as error:
        yield error.finding
        return
    differences = drift.compare(mappings, introspected.types)
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


async def send(
    inspection: Inspection, name: str, operation: Probe | introspection.IntrospectionOperation
) -> GraphQLReply:
    """Send an operation that costs nothing with the application's token. Raises DiagnosedError where there is no whole
    response."""
    assert inspection.reached is not None  # noqa: S101 - run.py skips the stage otherwise
    try:
        return await inspection.reached.execute(operation, inspection.tokens[name])
    except errors.ServerError as error:
        raise DiagnosedError(SERVICE.failure_finding(error)) from error


def data_of(reply: GraphQLReply, name: str) -> Any:
    """Return the data of a response. Raises DiagnosedError, QueryRefused and QuotaExhausted."""
    failure = reply.failure
    if failure is None:
        return reply.data
    if isinstance(failure, errors.QueryRefused | errors.QuotaExhausted):
        raise failure
    if isinstance(failure, errors.CredentialsRefused):
        code = "scope_missing" if failure.code == OUT_OF_SCOPE else "token_refused"
        raise DiagnosedError(found(code, failure.message, application=name)) from failure
    if isinstance(failure, errors.TooManyRequests):
        wait = f"; it asks to wait for {counted(failure.retry_after, 'second')}" if failure.retry_after else ""
        text = f"{SERVICE.name} limits requests (HTTP 429){wait}"
        raise DiagnosedError(found("graphql_rate_limited", text)) from failure
    raise DiagnosedError(SERVICE.response_finding(failure)) from failure
