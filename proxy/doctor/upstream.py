"""Checks of the upstream: access tokens, their scope, the plan, the fields that are read, the order of results.

They use the service's own tokens, with their limits, and send operations that return no part. An exhausted limit shows
in the error of a search for a part that nobody has; only the portal shows what is left of another.
"""

import re
from collections.abc import Sequence
from typing import Any

from proxy import errors, model
from proxy.doctor.check import Problem, Subject
from proxy.gateway.core import UsageRow
from proxy.kit.wording import counted
from proxy.planning import documents, fetches, queries
from proxy.planning.documents import Document, EncodedOperation, PartialData
from proxy.planning.projection_cache import ProjectionCache

SECONDS = 30.0  # that an operation may take, or a token request
LOW_PERCENT = 90.0
TECH_SPECS = "TECH_SPECS"  # the only feature that shows without a part, because aggregations need it
NOBODYS = "v3bridge-doctor-matches-no-part"
MARKET = {"country": "US", "currency": "USD"}
FREE = Document("probe", "query probe { supCategories { id } }", dict[str, Any]).operation({}, 0)
PLAN = documents.count(frozenset({"specAggs"})).operation(
    {"q": NOBODYS, **MARKET, "limit": 0, "size": 1, "attributes": ["resistance"], "selection": "EXPLICIT"}, 0
)
REFERENCES = ["3", "1", "4", "2", "5"]
ORDER = Document(
    "orderCheck",
    "query orderCheck($queries: [SupPartMatchQuery!]!) { supMultiMatch(queries: $queries) { reference } }",
    dict[str, Any],
).operation({"queries": [{"mpn": f"{NOBODYS}-{each}", "limit": 1, "reference": each} for each in REFERENCES]}, 0)
ADVICE: dict[type[errors.BridgeError], str] = {
    errors.CredentialsRefused: "compare client id, secret (no quotes or blanks around them) and the Supply domain with "
    "Nexar's portal, and check both addresses and the clock",
    errors.TokenLimit: "wait as long as it says; find programs that request a token for each call",
    errors.TooManyRequests: "wait as long as it says; set `rate` of the application lower if it comes back",
    errors.UpstreamFault: "wait: nothing here is wrong; look at the status page of the service",
    errors.UpstreamUnreadable: "check the addresses under upstream, the clock, and any proxy or firewall on the way",
}
OTHER_ADVICE = "try again in some minutes; then check firewall or proxy on the way"


async def token(subject: Subject, name: str) -> str:
    """Get the access token of an application, from the store or by a token request."""
    gateway = subject.gateway
    try:
        await gateway.tokens.get(gateway.applications.by_name[name].credentials, SECONDS)
    except errors.BridgeError as error:
        raise _problem(error) from error
    return "the identity service gives a token"


async def scope(subject: Subject, name: str) -> str:
    """Try the token by a free operation; one from the store that is refused is replaced."""
    await _sent(subject, name, FREE)
    return "the GraphQL service accepts the token for supply data"


def _problem(error: errors.BridgeError) -> Problem:
    return Problem(error.message, ADVICE.get(type(error), OTHER_ADVICE))


async def _sent(
    subject: Subject, name: str, operation: EncodedOperation
) -> tuple[Any, errors.BridgeError | None, Sequence[model.GraphQLError]]:
    """Send an operation that returns no part. Return its data, or why the query or the quota is refused, and the errors
    that are reported. Raises Problem."""
    gateway = subject.gateway
    application, deadline = gateway.applications.by_name[name], gateway.clock.monotonic() + SECONDS
    try:
        data = await gateway.free.execute(application, operation, deadline)
    except (errors.QueryRefused, errors.QuotaExhausted) as error:
        return None, error, getattr(error, "reported", ())
    except errors.BridgeError as error:
        raise _problem(error) from error
    return data, None, data.reported if isinstance(data, PartialData) else ()


async def plan(subject: Subject, name: str) -> str:
    """Compare part limit and features of a plan with what is configured and used."""
    _, refusal, reported = await _sent(subject, name, PLAN)
    if isinstance(refusal, errors.QuotaExhausted):
        raise Problem(refusal.message, "upgrade the plan, or wait for the 1st of the month; an evaluation has no reset")
    lacks, application = any(map(_is_about_specs, reported)), subject.settings.applications[name]
    if lacks == (TECH_SPECS in application.allowed_features) and application.features != "unknown":
        text = f"the plan {'lacks' if lacks else 'has'} {TECH_SPECS}, and `features` say otherwise"
        raise Problem(text, "correct `features` of the application", is_warning=not lacks)
    (row,) = (row for row in await subject.gateway.state.usage() if row.name == name)
    return f"{_left(row)}, {'without' if lacks else 'with'} {TECH_SPECS}"


def _is_about_specs(error: model.GraphQLError) -> bool:
    # Its text and path are not documented (contract graphql.md §11).
    in_path = isinstance(error.path, list) and "specAggs" in error.path
    return in_path or bool(re.search(rf"{TECH_SPECS}|\bfeature\b", error.message))


def _left(row: UsageRow) -> str:
    """Return what is left of the configured limit. Raises Problem."""
    spent = row.used + row.uncertain
    if row.exhausted_until is not None:
        text = "the store has the quota as exhausted, but the upstream accepts requests"
        raise Problem(text, f"run `v3bridge usage --set {row.name}=PARTS` with the parts that the portal shows as used")
    if row.limit is None:
        return f"{counted(spent, 'part')} used, no limit"
    text = f"{row.remaining:,} of {counted(row.limit, 'part')} left until {(row.resets_at or 'for ever')[:10]}"
    if 100 * spent >= LOW_PERCENT * row.limit:
        advice = "see `v3bridge usage` for the keys that use them, and raise `parts` if the plan has more"
        raise Problem(text, advice, is_warning=bool(row.remaining))
    return text


async def schema(subject: Subject, name: str) -> str:
    """Have the upstream validate the documents by which parts are fetched, for parts that nobody has."""
    projections = ProjectionCache(subject.gateway.mappings)
    whole = fetches.Documents(projections.whole(projections.features).selection)
    sought = [queries.matching(0, 1, mpn=NOBODYS), queries.part("0" * 16)]
    sought += [queries.search(root, 0, 0, {"q": NOBODYS}) for root in ("supSearch", "supSearchMpn")]
    operations = [whole.operation([fetches.Fetch(query, None)], **MARKET) for query in sought]
    refusals = [(await _sent(subject, name, operation))[1] for operation in operations]
    if refused := dict.fromkeys(each.message for each in refusals if isinstance(each, errors.QueryRefused)):
        advice = "correct upstream.site, if the field has its name; else update v3bridge, or report this text"
        raise Problem("; ".join(refused), advice)
    return f"the upstream knows all fields of {', '.join(query.root for query in sought)}"


async def order(subject: Subject, name: str) -> str:
    """Check that a supMultiMatch has its results in the order of its queries, by which they are told apart."""
    data, refusal, _ = await _sent(subject, name, ORDER)
    if refusal is not None:
        return f"not checked: {refusal.message}"
    if [each["reference"] for each in data["supMultiMatch"]] != REFERENCES:
        text = "results of supMultiMatch do not come in the order of its queries"
        raise Problem(text, "do not use the proxy: parts would be mixed up; report this text")
    return "results of supMultiMatch come in the order of the queries"
