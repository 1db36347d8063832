"""Stage identity: every application gets an access token, from the store or by one token request.

The identity service counts token requests, so each client makes at most one in a run, within the limits that the
service keeps to as well, and a new token is left in the store for it. The secrets themselves are in no finding.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator

import msgspec

from proxy import config, errors
from proxy.doctor import findings, network
from proxy.doctor.findings import CheckResult, found, passed, remedy, skipped
from proxy.doctor.inspection import Inspection
from proxy.kit.wording import counted, duration

WAIT_SECONDS_MAX = 2.0  # for the rate limit of token requests
STORED_SECONDS_MIN = 60.0  # that a stored token must live on
DATE_SECONDS = 5.0  # that a Date header may differ without a wrong clock: its unit is a second, and responses take time
SECRET_LENGTH_MIN = 16  # characters; a shorter one is probably cut
_GUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_QUOTES = "\"'`“”„‘’"

SERVICE = findings.CheckedService("identity", "the identity service", "upstream.token_url")
_GRANT_ERRORS = {"unauthorized_client", "unsupported_grant_type"}


async def check(inspection: Inspection) -> AsyncIterator[CheckResult]:
    """Leave an access token of each application."""
    codes: set[str] = set()
    names = list(inspection.settings.applications)
    for name in names:
        first, *_ = _same_credentials(inspection, name)
        if first != name:
            text = f"the client credentials are those of {first}"
            yield passed("token_shared", text, name) if first in inspection.tokens else skipped(text, name)
            continue
        async for finding in _check_client(inspection, name):
            # The clocks are the same for all applications.
            if finding.application is not None or finding.code not in codes:
                yield finding
            codes.add(finding.code)


async def _check_client(inspection: Inspection, name: str) -> AsyncIterator[CheckResult]:
    """Leave the token for the client credentials of an application, from the store or by a token request."""
    known = await inspection.stored(lambda state: state.token(name), None)
    if known is not None and known[1] > inspection.clock.now() + STORED_SECONDS_MIN:
        _use(inspection, name, known[0])
        inspection.stored_tokens.update(_same_credentials(inspection, name))
        yield passed("token_stored", f"the store has a token, {_lifetime(known[1], inspection)}", name)
        return
    async for finding in request(inspection, name):
        yield finding


async def request(inspection: Inspection, name: str) -> AsyncIterator[CheckResult]:
    """Make the one token request for the client credentials of an application."""
    wait = await inspection.stored(lambda state: state.take_token_request(name), 0.0)
    if wait > WAIT_SECONDS_MAX:
        text = (
            f"this client id has asked for too many tokens; the next one is allowed in {counted(round(wait), 'second')}"
        )
        yield found("token_rate_limited", text, application=name)
        return
    await asyncio.sleep(wait)
    assert inspection.reached is not None  # noqa: S101 - run.py skips the stage otherwise
    application, now = inspection.settings.applications[name], inspection.clock.now()
    try:
        reply = await inspection.reached.request_token(name, application)
    except errors.CredentialsRefused as error:
        yield found("client_refused", error.message, application=name)
        return
    except errors.ServerError as error:
        yield msgspec.structs.replace(SERVICE.failure_finding(error), application=name)
        return
    if reply.failure is not None:
        yield refusal_finding(reply.failure, name, application)
    elif reply.token is not None:
        kept = reply.token.token, reply.token.expires
        _use(inspection, name, kept[0])
        await inspection.stored(lambda state: state.keep_token(name, *kept), None)
        yield passed("token_received", f"a new token, {_lifetime(kept[1], inspection)}", name)
    if reply.date and (skew := _clock(inspection, reply.date, now)):
        yield skew


def _clock(inspection: Inspection, date: str, now: float) -> CheckResult | None:
    """Compare the clock with the identity service's; None if they agree."""
    skew, ahead = network.clock_finding(date, now, SERVICE.name), network.seconds_behind(date, now)
    if skew is None or ahead is None or abs(ahead) <= DATE_SECONDS or inspection.has_wrong_clock:
        return None
    if inspection.clock_agrees_with is None:
        return None if skew.outcome == "passed" else skew
    direction = "ahead of" if ahead > 0 else "behind"
    text = (
        f"the clock of {SERVICE.name} is {duration(round(abs(ahead) / 60) * 60)} {direction} this machine's, which "
        f"agrees with that of {inspection.clock_agrees_with}"
    )
    # A small difference is a problem only where the GraphQL service refuses the tokens for it.
    is_small = skew.outcome != "failed"
    inspection.identity_clock = msgspec.structs.replace(
        found("identity_clock_wrong", text), outcome="warning" if is_small else "failed"
    )
    return None if skew.outcome == "passed" else inspection.identity_clock


def refusal_finding(failure: errors.BridgeError, name: str, application: config.ApplicationSettings) -> CheckResult:
    """Return the finding about a response without a token."""
    if isinstance(failure, errors.TokenLimit):
        wait = counted(failure.retry_after or 0, "second")
        text = f"{SERVICE.name} limits token requests; it asks to wait for {wait}"
        return found("token_rate_limited", text, application=name)
    if isinstance(failure, errors.CredentialsRefused):
        return _refusal(failure.code, name, application)
    if isinstance(failure, errors.UpstreamUnreadable) and failure.sign == "unusable token":
        return found("token_unusable", failure.message, application=name)
    return msgspec.structs.replace(SERVICE.response_finding(failure), application=name)


def _refusal(code: str, name: str, application: config.ApplicationSettings) -> CheckResult:
    text = f"{SERVICE.name} refuses the application: {code or 'HTTP 401'}"
    if code == "invalid_scope":
        return found("scope_refused", text, application=name)
    if code in _GRANT_ERRORS:
        return found("grant_refused", text, application=name)
    signs = list(suspicions(application.client_id or "", application.client_secret or config.Secret("")))
    shown = f"{text}, which may mean the client id or the client secret"
    if signs:
        advice = f"correct that first; if the application is refused still: {remedy('client_refused')}"
        return found("client_refused", f"{shown}; {'; '.join(signs)}", advice=advice, application=name)
    return found("client_refused", f"{shown}; both have the usual form", application=name)


def suspicions(client_id: str, client_secret: config.Secret) -> Iterator[str]:
    """Yield what is unusual about client credentials, without showing a character of the secret."""
    secret = client_secret.reveal()
    for noun, text in (("client id", client_id), ("client secret", secret)):
        if text != text.strip():
            yield f"the {noun} has blanks at an end"
        if (text.strip() and text.strip()[0] in _QUOTES) or text.strip()[-1:] in tuple(_QUOTES):
            yield f"the {noun} has a quote at an end, which belongs to no value"
        if not re.fullmatch(r"[!-~]*", text.strip()):
            yield f"the {noun} has blanks, line breaks or characters inside that are not ASCII"
        if re.match(r"[$%<{]", text.strip()):
            yield f"the {noun} looks like a placeholder that was not filled in"
    if _GUID.fullmatch(secret.strip()) and not _GUID.fullmatch(client_id.strip()):
        yield "the client secret has the form of a client id: the two may be exchanged"
    elif not _GUID.fullmatch(client_id.strip()):
        yield f"the client id is no GUID ({counted(len(client_id), 'character')})"
    if secret == client_id:
        yield "the client id and the client secret are the same"
    elif len(secret) < SECRET_LENGTH_MIN:
        yield f"the client secret has only {counted(len(secret), 'character')}"


def _use(inspection: Inspection, name: str, token: str) -> None:
    """Leave a token for all applications with these client credentials: they share it in the service as well."""
    for each in _same_credentials(inspection, name):
        inspection.tokens[each] = token
        inspection.stored_tokens.discard(each)


def _same_credentials(inspection: Inspection, name: str) -> list[str]:
    """Return the names of the applications with the client credentials of one."""
    applications = inspection.settings.applications
    own = applications[name]
    return [
        other
        for other, entry in applications.items()
        if (entry.client_id, entry.client_secret) == (own.client_id, own.client_secret)
    ]


async def forget(inspection: Inspection, name: str) -> None:
    """Delete a stored token that the GraphQL service refuses, for all applications that share it."""
    refused = inspection.tokens[name]
    await inspection.stored(lambda state: state.drop_token(name, refused), None)
    for application in _same_credentials(inspection, name):
        inspection.stored_tokens.discard(application)
        del inspection.tokens[application]


def _lifetime(expires: float, inspection: Inspection) -> str:
    seconds = expires - inspection.clock.now()
    hours = round(seconds / 3600)
    return f"valid for {counted(hours, 'hour') if hours > 1 else counted(round(seconds / 60), 'minute')}"
