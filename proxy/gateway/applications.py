"""Nexar applications and the clients of the service, who are known by their API keys. Built once from the
configuration.

Keys are looked up by digest, so that the configuration holds none in clear. An account is the digest of a client id or
of an API key; names are labels, so that renaming loses no usage, and two applications with one client id share a limit.

Programs that can only sign in with client credentials (`POST /connect/token`) get an access token of this service for
their API key: a JWT (RFC 7519) of 24 hours, which ends with the key. The secret that signs it is in the store, so that
all workers and machines accept it.
"""

import functools
import hashlib
import math
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time
from email.utils import format_datetime
from typing import Any, NamedTuple

import jwt
import msgspec

from proxy import config, errors, model
from proxy.kit import counted
from proxy.kit.clock import Clock
from proxy.store import protocol
from proxy.store.store import FOREVER, Store
from proxy.upstream.tokens import Credentials

# The vendor ended the support of v3 on this day (contract v3-rest.md §1): from it, v3 is deprecated.
SUPPORT_END = date(2022, 3, 31)
RESERVED_SECONDS = 5  # Retry-After where parts are only reserved: most operations end sooner
NEVER_SECONDS = 86_400  # for which a quota that is never reset is taken as exhausted, and its Retry-After
SCOPE_DIGITS = 8  # of an account, with which the scopes of its results begin, whatever their market and fields
TOKEN_SECONDS = 86_400  # of an access token, as of the upstream's (contract graphql.md §4)
SECRET = "signing secret"  # noqa: S105 - its key in the store
ALGORITHM, ISSUER = "HS256", "v3bridge"
# The times are checked by the service's clock.
CHECKED: Any = {"verify_exp": False, "verify_iat": False, "require": ["exp", "sub"]}


class Sunset(NamedTuple):
    """Announced end of service, in seconds since 1970: the headers of every response, before and after it, and the
    message of the refusals from then on."""

    headers: dict[str, str]
    end: float
    message: str


class ChargedAccount(NamedTuple):
    """Account that a request is charged to: its digest, its name, the most parts in a period (None: unlimited), and
    that period. `part_of` says of what it is a fraction, such as `its share of 20 % of demo`."""

    id: str
    name: str
    limit: int | None = None
    period: config.Period = "month"
    part_of: str = ""


class Periods(NamedTuple):
    """Accounts in the periods of a day: `every` one; `own`: of each that which its limit applies to, and when usage
    begins from zero in these, in seconds since 1970; None where it never does."""

    every: tuple[protocol.Account, ...]
    own: tuple[protocol.Account, ...]
    reset: float | None


@dataclass(frozen=True)
class Application:
    """Nexar application: its name, its account (the digest of the client id, or of the name where there is none), its
    credentials, its market, the features that requests may ask for, and whether these are known to be its tier's."""

    name: str
    account: str
    credentials: Credentials
    context: model.MappingContext
    features: frozenset[str]
    has_known_features: bool


@dataclass(frozen=True)
class Client:
    """Client of the service, known by an API key: its application, the accounts of application and key, the key's
    name, the most requests a second (0: any number), its sunset if there is one, and the key's last day of service."""

    application: Application
    charged: tuple[ChargedAccount, ...]
    key: str = ""
    rate: int = 0
    sunset: Sunset | None = None
    expires: date | None = None

    @functools.cached_property
    def name(self) -> str:
        """Name of application and key, such as `demo/erp`."""
        return f"{self.application.name}/{self.key}"

    def in_market(self, country: str, currency: str) -> "Client":
        """Return this client, buying in a market."""
        context = msgspec.structs.replace(self.application.context, country=country, currency=currency)
        if context == self.application.context:
            return self
        return replace(self, application=replace(self.application, context=context))

    def exceeded(self, refused: protocol.Refused, parts: int, now: float) -> errors.QuotaExhausted:
        """Return the error of a query that may cost so many parts and does not fit the limit of an account."""
        account, left, reserved = refused
        charged = next(each for each in self.charged if each.id == account.account)
        text = f"{charged.name} has {left:,} of {counted(account.limit or 0, 'part')} left"
        text += f", {charged.part_of}" if charged.part_of else ""
        reset = periods(self.charged, now // protocol.DAY_SECONDS).reset
        if parts <= left + reserved:
            end = f"{reserved:,} are reserved by requests under way, so try again in a few seconds"
            wait = RESERVED_SECONDS
        elif reset is None:
            end, wait = "it is never reset", NEVER_SECONDS
        else:
            end = f"it is reset on {datetime.fromtimestamp(reset, UTC).date().isoformat()}"
            wait = math.ceil(reset - now)
        message = f"{text} ({account.period}), and this request may cost {parts}; {end}"
        return errors.QuotaExhausted(message, retry_after=wait)

    def refusal(self, now: float, *, is_v3: bool = True) -> errors.ClientError | None:
        """Return why a request at `now` is refused after the last day of the key, or after the sunset, which is that of
        v3 only; None if it is served."""
        # First: a key that has been replaced gets no advice about the end of v3.
        if self.expires and now >= _end_of(self.expires):
            return errors.ExpiredKey(f"this API key expired on {self.expires}; use the one that replaces it")
        return errors.Gone(self.sunset.message) if is_v3 and self.sunset and now >= self.sunset.end else None


class Applications:
    """Client of every API key, by its digest, in the order of the file; applications by name; and the accounts of both
    by name."""

    def __init__(self, configured: Mapping[str, config.ApplicationSettings]) -> None:
        self.clients: dict[str, Client] = {}
        for name, entry in configured.items():
            account, is_known = config.hex_digest(entry.client_id or name), entry.features != "unknown"
            credentials = Credentials(name, entry.client_id, entry.client_secret)
            context = model.MappingContext(entry.country, entry.currency)
            application = Application(name, account, credentials, context, entry.allowed_features, is_known)
            limit = entry.parts if isinstance(entry.parts, int) else None
            whole = ChargedAccount(account, name, limit, entry.period)
            for key_name, (key, key_limit) in entry.clients.items():
                digest, parts = key.key.reveal(), str(key.parts)
                part_of = f"its share of {parts.rstrip('% ')} % of {name}" if parts.endswith("%") else ""
                own = ChargedAccount(digest, f"{name}/{key_name}", key_limit, entry.period, part_of)
                # A key's own 0 switches the limit of its application off: only None inherits it.
                rate = entry.rate if key.rate is None else key.rate
                sunset = _sunset(key.sunset or entry.sunset)
                self.clients[digest] = Client(application, (whole, own), key_name, rate, sunset, key.expires)
        self.by_name = {client.application.name: client.application for client in self.clients.values()}
        self.charged = {each.name: each for client in self.clients.values() for each in client.charged}

    def client(self, apikey: str | None) -> Client:
        """Return the client of a key. Raises MissingKey and ForbiddenKey (contract v3-rest.md §5)."""
        if not apikey:
            raise errors.MissingKey()
        # A look-up by digest takes the same time for a nearly right key as for any other.
        client = self.clients.get(config.hex_digest(apikey))
        if client is None:
            raise errors.ForbiddenKey()
        return client


@functools.lru_cache(maxsize=4096)
def periods(charged: tuple[ChargedAccount, ...], day: float) -> Periods:
    """Return accounts of an application in the periods of a day, which is counted since 1970.

    Usage is counted by day, by month and for the lifetime, in UTC as upstream, whatever the limit applies to: a changed
    `period` finds past usage.
    """
    start = day * protocol.DAY_SECONDS
    today = datetime.fromtimestamp(start, UTC).date().isoformat()
    names = {"day": today, "month": today[:7], "lifetime": protocol.LIFETIME}
    every = [
        protocol.Account(each.id, period, each.limit if name == each.period else None)
        for each in charged
        for name, period in names.items()
    ]
    own = [protocol.Account(each.id, names[each.period], each.limit) for each in charged]
    is_monthly = charged[0].period == "month"
    return Periods(tuple(every), tuple(own), start + errors.seconds_to_next_month(start) if is_monthly else None)


def _sunset(settings: config.SunsetSettings | None) -> Sunset | None:
    """Return a sunset with its headers: Deprecation (RFC 9745), Sunset (RFC 8594) and their links."""
    if settings is None:
        return None
    page, end = settings.link, _end_of(settings.date)
    headers = {
        "Deprecation": f"@{int(datetime.combine(SUPPORT_END, time(), UTC).timestamp())}",
        "Link": f'<{page}>; rel="deprecation", <{page}>; rel="sunset"',
        # The day itself is served: its last second is the sunset, as in the example of RFC 8594.
        "Sunset": format_datetime(datetime.fromtimestamp(end - 1, UTC), usegmt=True),
    }
    return Sunset(headers, end, f"v3 is not served to this API key since its sunset on {settings.date}; see {page}")


def _end_of(day: date) -> float:
    """Return the end of a day in UTC, in seconds since 1970."""
    return datetime.combine(day, time(23, 59, 59), UTC).timestamp() + 1


@dataclass(eq=False)
class AccessTokens:
    """Issues access tokens for API keys, and finds the client of one. A token is valid for so many `seconds`."""

    seconds = TOKEN_SECONDS

    store: Store
    applications: Applications
    clock: Clock
    _secret: str = field(default="", repr=False)
    # By the subjects of tokens, which are made of API keys, so that nobody can guess them without the secret.
    _clients: dict[str, Client] = field(default_factory=dict, repr=False)

    async def issue(self, client: Client) -> str:
        """Return a token for the API key of a client. Raises StoreUnavailable."""
        now = int(self.clock.now())
        await self.refresh(make=True)  # also where it is known: the store may have lost it
        subject = next(subject for subject, each in self._clients.items() if each.name == client.name)
        claims = {"iss": ISSUER, "sub": subject, "iat": now, "exp": now + TOKEN_SECONDS}
        return jwt.encode(claims, self._secret, ALGORITHM)

    async def client(self, token: str) -> Client | None:
        """Return the client of a token; None for one that was not issued here, has expired, or whose API key is gone.
        Raises StoreUnavailable."""
        try:
            if not self._secret:
                jwt.get_unverified_header(token)  # an API key that looks like a token needs no store
                await self.refresh(make=True)
            claims = jwt.decode(token, self._secret, [ALGORITHM], issuer=ISSUER, options=CHECKED)
        except (jwt.InvalidTokenError, UnicodeEncodeError):  # bytes that are no UTF-8 are surrogates here
            return None
        return self._clients.get(claims["sub"]) if self.clock.now() < claims["exp"] else None

    async def refresh(self, *, make: bool = False) -> None:
        """Take over the secret that the store has, which another process may have made anew; `make` it, unless one was
        faster. Once a second. Raises StoreUnavailable."""
        if make:
            await self.store.put_value(SECRET, secrets.token_hex(32), FOREVER, instead=[None])
        [text] = await self.store.values([SECRET])
        if text is None and make:
            raise errors.StoreUnavailable("the signing secret was lost")
        if text is not None and text != self._secret:
            self._secret, key = text, bytes.fromhex(text)
            self._clients = {
                hashlib.blake2b(digest.encode(), key=key, digest_size=16).hexdigest(): client
                for digest, client in self.applications.clients.items()
            }
