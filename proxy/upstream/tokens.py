"""Access tokens of applications, from the identity service (contract graphql.md §4): requested once for all tasks,
processes and machines, renewed before they expire.

One process requests a token, for which it has a lease in the store, and stores the token or a back-off for the others.
Each keeps its tokens in memory, too, and uses them while the store is unavailable; it requests none then.
"""

import asyncio
import contextlib
import json
import math
import random
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from urllib.parse import urlencode

import aiohttp
import msgspec
import structlog

from proxy import config, errors
from proxy.kit.clock import Clock, Window
from proxy.kit.tasks import SingleFlight
from proxy.metrics import Metrics
from proxy.store.store import Store
from proxy.upstream import classify, http_post
from proxy.upstream.classify import AccessToken

RENEWAL_SECONDS = 300.0  # before expiry that a token is renewed, as the vendor's client does; plus jitter
RATE_LIMIT_WAIT_MAX = 1.0  # seconds that a caller waits for the rate limit
REQUEST_SECONDS = 12.0  # that a token request may take
RESPONSE_BYTES = 65_536  # of its response
POLL_SECONDS = 0.05  # between two looks for the result of another process; plus jitter

RATE_LIMITS = (  # of the identity service, per client id
    Window(2, 1.0),
    Window(200, 15 * 60.0),
    Window(3_000, 12 * 3600.0),
    Window(40_000, 7 * 86_400.0),
)
LEASE_SECONDS = 15.0  # after which another process requests a token: the one before has died
REFUSED_SECONDS = 30.0  # of back-off after refused credentials
FAILURE_SECONDS_MAX = 15.0  # after other failures, doubling from 1 s; at this rate no window is ever filled
RETRY_AFTER_MAX = 900.0  # seconds of a Retry-After that are waited for
FORM = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Credentials:
    """Client credentials of the application `name`; without them it gets no token."""

    name: str
    client_id: str | None
    client_secret: config.Secret | None


class Backoff(msgspec.Struct, frozen=True):
    """Back-off after a failed token request, the last of `failures` in a row: requests get its error `until` a time, in
    seconds since 1970."""

    kind: str
    message: str
    status: int
    until: float
    failures: int

    def error(self, now: float, *, is_first: bool = False) -> errors.ServerError:
        """Return the error of a request. That of the first that failed may be retried."""
        kind: type[errors.ServerError] = getattr(errors, self.kind)
        error = kind(self.message, retry_after=max(1, math.ceil(self.until - now)))
        error.status = self.status
        error.backing_off = not is_first
        return error


class CachedToken:
    """Token of an application, as the store has it and this process knows it.

    Keys in the store are made of digests: they reveal nothing, and a changed secret never finds an old token. `lease`
    is the key of the lease of who requests a token; `window` that of the windows in which the identity service counts
    requests (contract graphql.md §4.1), and made of the client id alone, because the limits belong to it. Methods raise
    StoreUnavailable.

    The process knows the `token`, when it is to be renewed (seconds since 1970), the last one that the upstream has
    accepted and the one that it has refused, and why credentials or a new token were refused.
    """

    def __init__(self, store: Store, token_url: str, credentials: Credentials, clock: Clock) -> None:
        self._store, self._clock, self.credentials = store, clock, credentials
        secret = credentials.client_secret.reveal() if credentials.client_secret else None
        digest = config.hex_digest(json.dumps((token_url, credentials.client_id, secret)))
        self._key, self.lease, self._backoff = f"token {digest}", f"token lease {digest}", f"token back-off {digest}"
        self.window = f"token requests {config.hex_digest(json.dumps((token_url, credentials.client_id)))}"
        self.token: AccessToken | None = None
        self.renew_at = 0.0
        self.accepted: str | None = None
        self.unwanted: str | None = None
        self.refusal: errors.CredentialsRefused | None = None

    async def read(self) -> tuple[AccessToken | None, Backoff | None]:
        """Return the token that is stored, None if there is none, or it has expired; and the back-off that was begun
        last."""
        token_text, backoff_text = await self._store.values([self._key, self._backoff])
        token = None if token_text is None else msgspec.json.decode(token_text, type=AccessToken)
        backoff = None if backoff_text is None else msgspec.json.decode(backoff_text, type=Backoff)
        return None if token is None or token.expires <= self._clock.now() else token, backoff

    async def keep(self, token: AccessToken) -> None:
        """Store a token until it expires, and end the back-off."""
        seconds = token.expires - self._clock.now()
        await self._store.put_value(self._key, msgspec.json.encode(token).decode(), seconds)
        await self._store.put_value(self._backoff, "", 0.0)

    async def drop(self, token: str | None = None) -> None:
        """Delete the token that is stored; with `token` only if it is that one."""
        [text] = await self._store.values([self._key])
        if text is not None and token in (None, msgspec.json.decode(text, type=AccessToken).token):
            await self._store.put_value(self._key, "", 0.0, instead=[text])

    async def back_off(self, error: errors.ServerError) -> Backoff:
        """Begin a back-off after a failure, the longer the more there were in a row."""
        before = (await self.read())[1]
        failures = before.failures + 1 if before else 1
        if isinstance(error, errors.CredentialsRefused):
            seconds = REFUSED_SECONDS
        elif error.retry_after is not None:
            seconds = max(1.0, min(error.retry_after, RETRY_AFTER_MAX))
        else:
            seconds = min(FAILURE_SECONDS_MAX, 2.0 ** min(failures - 1, 10))
        backoff = Backoff(type(error).__name__, error.message, error.status, self._clock.now() + seconds, failures)
        # Beyond its end, so that the next failure counts as one more in a row.
        text = msgspec.json.encode(backoff).decode()
        await self._store.put_value(self._backoff, text, seconds + FAILURE_SECONDS_MAX)
        return backoff


class Tokens:
    """Access tokens of applications, which are `known` by their names, from the identity service at `token_url`.
    `sleep` is replaced in tests."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        token_url: str,
        owners: Iterable[Credentials],
        *,
        store: Store,
        clock: Clock,
        rng: random.Random,
        metrics: Metrics,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._session, self._token_url, self._store = session, token_url, store
        self._clock, self._rng, self._metrics, self._sleep = clock, rng, metrics, sleep
        self._owner = f"{rng.getrandbits(64):016x}"
        self.known = {each.name: CachedToken(store, token_url, each, clock) for each in owners}
        self._flights: SingleFlight[str, AccessToken] = SingleFlight("token")
        self.close = self._flights.close

    async def get(self, credentials: Credentials, seconds: float | None = None) -> str:
        """Return a valid token, requested if necessary; waits at most `seconds` for it.

        Raises TokenLimit, CredentialsRefused, UpstreamUnreachable, UpstreamUnreadable, UpstreamFault or
        StoreUnavailable.
        """
        known, now = self.known[credentials.name], self._clock.now()
        if known.token is not None and now < known.token.expires:
            if now >= known.renew_at:
                self._flights.start(credentials.name, lambda: self._renew(known))
            return known.token.token
        try:
            return (await self._flights.run(credentials.name, lambda: self._renew(known), seconds)).token
        except TimeoutError as error:  # the request goes on for the next caller
            raise errors.UpstreamUnreachable(f"no token of application {credentials.name} in time") from error

    async def invalidate(
        self, credentials: Credentials, token: str, refusal: errors.CredentialsRefused | None = None
    ) -> None:
        """Remove a token that the upstream refused, in this and all other processes. A newer one stays.

        With `refusal`, the error of a new token that is refused, too, start a back-off.
        """
        known = self.known[credentials.name]
        if known.accepted == token:  # it was revoked early, and the next one will be accepted
            refusal = None
        known.refusal = refusal or known.refusal
        with contextlib.suppress(errors.StoreUnavailable):
            if known.token is not None and known.token.token == token:
                known.token, known.unwanted = None, token
                await known.drop(token)
            if refusal is not None:
                await known.back_off(refusal)

    async def _renew(self, known: CachedToken) -> AccessToken:
        """Get a token other than the one to be renewed or the one that was refused."""
        try:
            token = await self._other_token(known)
        except Exception as error:
            if isinstance(error, errors.CredentialsRefused):
                known.refusal = error
            if not isinstance(error, errors.ServerError):
                log.error("token request failed", application=known.credentials.name, exc_info=error)
            # The token at hand is used meanwhile.
            wait = (error.retry_after if isinstance(error, errors.ServerError) else None) or 0
            known.renew_at = self._clock.now() + max(REFUSED_SECONDS, wait)
            raise
        now = self._clock.now()
        # One to two times so long before expiry; of a short-lived token at most half of its lifetime.
        lead = min(RENEWAL_SECONDS, (token.expires - now) / 4)
        known.token, known.unwanted = token, None
        known.renew_at = token.expires - lead * (1 + self._rng.random())
        return token

    async def _other_token(self, known: CachedToken) -> AccessToken:
        """Return the token that another process has stored, or request one; one process does, while the others wait
        for its token or failure."""
        unwanted = known.token.token if known.token else known.unwanted
        while True:
            lease, mine = known.lease, [None, self._owner]
            is_owner = await self._store.put_value(lease, self._owner, LEASE_SECONDS, instead=mine)
            try:
                token, backoff = await known.read()
                if token is not None and token.token != unwanted:
                    return token
                now = self._clock.now()
                # Not where more time remains than any back-off takes: the clock was set back.
                if backoff is not None and now < backoff.until <= now + RETRY_AFTER_MAX:
                    raise backoff.error(now)
                if is_owner:
                    return await self._request(known)
            finally:
                if is_owner:
                    with contextlib.suppress(errors.StoreUnavailable):
                        await self._store.put_value(lease, "", 0.0, instead=mine)
            await self._sleep(POLL_SECONDS * (1 + self._rng.random()))

    async def _request(self, known: CachedToken) -> AccessToken:
        """Request a token, after a short wait if need be, and store it for all processes, or a back-off if it fails."""
        application, outcome = known.credentials.name, "cancelled"
        try:
            waited = 0.0
            while wait := await self._store.take(known.window, RATE_LIMITS):
                waited += wait
                if waited > RATE_LIMIT_WAIT_MAX:
                    limited = f"application {application} has asked for too many tokens"
                    raise errors.TokenLimit(limited, retry_after=math.ceil(wait))
                await self._sleep(wait)
            sent = self._clock.now()
            try:
                reply = await self._post(known.credentials)
            finally:
                with contextlib.suppress(errors.StoreUnavailable):
                    # It counts a request from when it arrives.
                    await self._store.take(known.window, RATE_LIMITS, again=True)
            token = classify.access_token(reply, application, sent)
            outcome = "ok"
        except errors.ServerError as error:
            outcome = type(error).__name__
            log.warning("token request failed", application=application, exc_info=error)
            if isinstance(error, errors.StoreUnavailable):
                raise
            backoff = await known.back_off(error)
            raise backoff.error(self._clock.now(), is_first=backoff.failures == 1) from error
        finally:
            self._metrics.token_requests.inc(application, outcome)
        log.info("token refreshed", application=application, expires_in=round(token.expires - sent))
        with contextlib.suppress(errors.StoreUnavailable):
            await known.keep(token)
        return token

    async def _post(self, credentials: Credentials) -> http_post.HttpResponse:
        if not credentials.client_id or not credentials.client_secret:
            raise errors.CredentialsRefused(f"application {credentials.name} has no client id and secret")
        form = {
            "grant_type": "client_credentials",
            "client_id": credentials.client_id,
            "client_secret": credentials.client_secret.reveal(),
            "scope": classify.SCOPE,
        }
        service = http_post.Service(classify.IDENTITY, self._token_url, RESPONSE_BYTES, bills=False)
        return await http_post.post(self._session, service, urlencode(form).encode(), FORM, REQUEST_SECONDS)
