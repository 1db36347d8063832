"""Stage identity: every application gets an access token, from the store or by one token request.

The identity service counts token requests, so each client makes at most one in a run, within the limits that the
service keeps to as well, and a new token is left in the store for it. The secrets themselves are in no finding.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator

import msgspec

from proxy import config, errors
from proxy.doctor import findings, network, stored
from proxy.doctor.findings import CheckResult, found, passed, remedy, skipped
from proxy.doctor.inspection import Inspection
from proxy.kit.wording import counted, duration
from proxy.upstream import http_post
from proxy.upstream.auth import identity, token_requests, token_store

WAIT_SECONDS_MAX = 2.0  # for the rate limit of token requests
STORED_SECONDS_MIN = 60.0  # that a stored token must live on
DATE_SECONDS = 5.0  # that a Date header may differ without a wrong clock: its unit is a second, and responses take time
SECRET_LENGTH_MIN = 16  # characters; a shorter one is probably cut
_GUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_QUOTES = "\"'`“”„‘’"

SERVICE = findings.CheckedService("identity", identity.SERVICE, "a token", "upstream.token_url")
_GRANT_ERRORS = {"unauthorized_client", "unsupported_grant_type"}


class _HasToken(msgspec.Struct):
    access_token: str


async def check(inspection: Inspection) -> AsyncIterator[CheckResult]:
    """Leave an access token of each application."""
    codes: set[str] = set()
    for key, (name, *others) in _by_token_key(inspection).items():
        async for finding in _check_client(inspection, name, key):
            # The clocks are the same for all applications.
            if finding.application is not None or finding.code not in codes:
                yield finding
            codes.add(finding.code)
        for other in others:
            text = f"the client credentials are those of {name}"
            yield passed("token_shared", text, other) if name in inspection.tokens else skipped(text, other)


async def _check_client(inspection: Inspection, name: str, key: str) -> AsyncIterator[CheckResult]:
    """Leave the token for the client credentials of an application, from the store or by a token request."""
    known = await stored.use(inspection, lambda tokens: tokens.token(key), None)
    token = None if known is None else identity.AccessToken(*known)
    if token is not None and token.expires > inspection.clock.now() + STORED_SECONDS_MIN:
        _use(inspection, key, token)
        inspection.stored_tokens.update(_by_token_key(inspection)[key])
        yield passed("token_stored", f"the store has a token, {_lifetime(token, inspection)}", name)
        return
    async for finding in request(inspection, name):
        yield finding


async def request(inspection: Inspection, name: str) -> AsyncIterator[CheckResult]:
    """Make the one token request for the client credentials of an application."""
    credentials = _credentials(inspection, name)
    wait = await _wait(inspection, credentials)
    if wait > WAIT_SECONDS_MAX:
        text = (
            f"this client id has asked for too many tokens; the next one is allowed in {counted(round(wait), 'second')}"
        )
        yield found("token_rate_limited", text, application=name)
        return
    await asyncio.sleep(wait)
    assert inspection.session is not None  # noqa: S101 - run.py skips the stage otherwise
    upstream = inspection.upstream
    now = inspection.clock.now()
    try:
        reply = await identity.request_token(inspection.session, upstream.token_url, upstream.scope, credentials)
    except errors.CredentialsRefused as error:
        yield found("client_refused", error.message, application=name)
        return
    except errors.ServerError as error:
        yield msgspec.structs.replace(SERVICE.failure_finding(error), application=name)
        return
    token, finding = parse_response(reply, credentials, now)
    if token is not None:
        key = _keys(inspection, credentials).token
        _use(inspection, key, token)
        finding = passed("token_received", f"a new token, {_lifetime(token, inspection)}", name)
        kept = token.token, token.expires
        await stored.use(inspection, lambda tokens: tokens.keep_token(key, *kept), None)
    yield finding
    if reply.date and (skew := _clock(inspection, reply.date, now)):
        yield skew


def _clock(inspection: Inspection, date: str, now: float) -> CheckResult | None:
    """Compare the clock with the identity service's; None if they agree."""
    skew, ahead = network.clock_finding(date, now, identity.SERVICE), network.seconds_behind(date, now)
    if skew is None or ahead is None or abs(ahead) <= DATE_SECONDS or inspection.has_wrong_clock:
        return None
    if inspection.clock_agrees_with is None:
        return None if skew.outcome == "passed" else skew
    direction = "ahead of" if ahead > 0 else "behind"
    text = (
        f"the clock of {identity.SERVICE} is {duration(round(abs(ahead) / 60) * 60)} {direction} this machine's, which "
        f"agrees with that of {inspection.clock_agrees_with}"
    )
    # A small difference is a problem only where the GraphQL service refuses the tokens for it.
    is_small = skew.outcome != "failed"
    inspection.identity_clock = msgspec.structs.replace(
        found("identity_clock_wrong", text), outcome="warning" if is_small else "failed"
    )
    return None if skew.outcome == "passed" else inspection.identity_clock


def parse_response(
    reply: http_post.HttpResponse, credentials: identity.Credentials, now: float
) -> tuple[identity.AccessToken | None, CheckResult]:
    """Return the token of a response and the finding about it."""
    name = credentials.name
    try:
        token = identity.parse(reply, name, now)
    except errors.TokenLimit as error:
        text = (
            f"{identity.SERVICE} limits token requests; it asks to wait for {counted(error.retry_after or 0, 'second')}"
        )
        return None, found("token_rate_limited", text, application=name)
    except errors.CredentialsRefused:
        return None, _refusal(identity.oauth_error(reply.body), credentials)
    except errors.ServerError as error:
        finding = (
            found("token_unusable", error.message) if _has_token(reply) else SERVICE.response_finding(reply, error)
        )
        return None, msgspec.structs.replace(finding, application=name)
    return token, passed("token_received", "a new token", name)


def _refusal(code: str, credentials: identity.Credentials) -> CheckResult:
    text = f"{identity.SERVICE} refuses the application: {code or 'HTTP 401'}"
    if code == "invalid_scope":
        return found("scope_refused", text, application=credentials.name)
    if code in _GRANT_ERRORS:
        return found("grant_refused", text, application=credentials.name)
    signs = list(suspicions(credentials.client_id or "", credentials.client_secret or config.Secret("")))
    shown = f"{text}, which may mean the client id or the client secret"
    if signs:
        advice = f"correct that first; if the application is refused still: {remedy('client_refused')}"
        return found("client_refused", f"{shown}; {'; '.join(signs)}", advice=advice, application=credentials.name)
    return found("client_refused", f"{shown}; both have the usual form", application=credentials.name)


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


def _has_token(reply: http_post.HttpResponse) -> bool:
    """Return whether the response is one of an identity service, with a token that cannot be used."""
    try:
        msgspec.json.decode(reply.body, type=_HasToken)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return reply.status == 200


def _use(inspection: Inspection, key: str, token: identity.AccessToken) -> None:
    """Leave a token for all applications with these client credentials: they share it in the service as well."""
    for name in _by_token_key(inspection)[key]:
        inspection.tokens[name] = token.token
        inspection.stored_tokens.discard(name)


def _by_token_key(inspection: Inspection) -> dict[str, list[str]]:
    """Return the names of the applications by the key of their token in the store."""
    names: dict[str, list[str]] = {}
    for name in inspection.settings.applications:
        names.setdefault(_keys(inspection, _credentials(inspection, name)).token, []).append(name)
    return names


async def forget(inspection: Inspection, name: str) -> None:
    """Delete a stored token that the GraphQL service refuses, for all applications that share it."""
    key = _keys(inspection, _credentials(inspection, name)).token
    refused = inspection.tokens[name]
    await stored.use(inspection, lambda tokens: tokens.drop_token(key, refused), None)
    for application in _by_token_key(inspection)[key]:
        inspection.stored_tokens.discard(application)
        del inspection.tokens[application]


async def _wait(inspection: Inspection, credentials: identity.Credentials) -> float:
    """Count the request against the limits that the service keeps to; return the seconds until it is allowed."""
    key = _keys(inspection, credentials).rate_limit
    return await stored.use(inspection, lambda store: store.take(key, token_requests.RATE_LIMITS), 0.0)


def _credentials(inspection: Inspection, name: str) -> identity.Credentials:
    application = inspection.settings.applications[name]
    return identity.Credentials(name, application.client_id, application.client_secret)


def _keys(inspection: Inspection, credentials: identity.Credentials) -> token_store.StoreKeys:
    return token_store.keys(inspection.upstream.token_url, inspection.upstream.scope, credentials)


def _lifetime(token: identity.AccessToken, inspection: Inspection) -> str:
    seconds = token.expires - inspection.clock.now()
    hours = round(seconds / 3600)
    return f"valid for {counted(hours, 'hour') if hours > 1 else counted(round(seconds / 60), 'minute')}"
