"""Authentication of v3 clients: API keys, and the Nexar applications that their requests are executed with.

Keys are looked up by digest, so that the configuration holds none in clear. Built once from the configuration.
"""

import hashlib
import math
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from email.utils import format_datetime

from proxy import config, errors, model
from proxy.gateway.plan_knowledge import PlanKnowledge
from proxy.gateway.quota import accounts as quota_accounts
from proxy.upstream.auth import identity

# The vendor ended the support of v3 on this day (contract v3-rest.md §1): from it, v3 is deprecated.
SUPPORT_END = date(2022, 3, 31)
# The vendor's guide for those who leave v3, where the operator has no page of their own.
MIGRATION_GUIDE = "https://docs.nexar.com/guides/supply-api/migration-from-octopart-v3-api"


@dataclass(frozen=True, slots=True)
class Sunset:
    """Announced end of service: the headers of every response, before and after it.

    `end` is in seconds since 1970, infinite where no date is set; `message` is that of the refusals from then on.
    """

    headers: dict[str, str]
    end: float
    message: str

    @classmethod
    def of(cls, settings: config.SunsetSettings | None) -> "Sunset | None":
        """Return the sunset as configured: Deprecation (RFC 9745), Sunset (RFC 8594) and their links."""
        if settings is None:
            return None
        page, end = settings.link or MIGRATION_GUIDE, math.inf
        since = datetime.combine(settings.since or SUPPORT_END, time(), UTC)
        headers = {"Deprecation": f"@{int(since.timestamp())}", "Link": f'<{page}>; rel="deprecation"'}
        if settings.date is not None:
            end = _end_of(settings.date)
            # The day itself is served: its last second is the sunset, as in the example of RFC 8594.
            headers["Sunset"] = format_datetime(datetime.fromtimestamp(end - 1, UTC), usegmt=True)
            headers["Link"] += f', <{page}>; rel="sunset"'
        message = f"v3 is not served to this API key since its sunset on {settings.date}; see {page}"
        return cls(headers, end, message)


@dataclass(frozen=True, slots=True)
class Application:
    """Nexar application: its credentials, country and currency, and the features that its plan includes.

    `cache_scope` begins the keys of its cache entries: after a reload, results for another plan or another country
    are not found.
    """

    name: str
    credentials: identity.Credentials
    context: model.MappingContext
    features: frozenset[str]
    is_plan_known: bool = True
    cache_scope: str = field(init=False, compare=False)
    plan: PlanKnowledge = field(default_factory=PlanKnowledge, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        parts = (self.credentials.client_id, self.context.country, self.context.currency, *sorted(self.features))
        digest = hashlib.blake2b("\0".join(map(str, parts)).encode(), digest_size=8).hexdigest()
        object.__setattr__(self, "cache_scope", f"{self.name} {digest}")

    @property
    def known_features(self) -> frozenset[str] | None:
        """The features that the plan is known to have: as configured, else those that responses have shown. None where
        the upstream refuses whole parts: then only requested fields are fetched."""
        if self.plan.refuses_whole:
            return None
        is_known = self.is_plan_known and not self.plan.is_less_than_configured
        return self.features if is_known else frozenset(self.plan.shown)


@dataclass(frozen=True, slots=True)
class Client:
    """v3 client, identified by an API key: its application, the key's name, its quota accounts, the most requests a
    second (0: any number), its sunset if there is one, and the key's last day of service. `end` is when its requests
    begin to be refused, in seconds since 1970."""

    application: Application
    key: str
    accounts: quota_accounts.ChargedAccounts
    rate: int = 0
    sunset: Sunset | None = None
    expires: date | None = None
    end: float = field(init=False, compare=False)

    def __post_init__(self) -> None:
        sunset = math.inf if self.sunset is None else self.sunset.end
        expiry = math.inf if self.expires is None else _end_of(self.expires)
        object.__setattr__(self, "end", min(sunset, expiry))

    def refusal(self, now: float) -> errors.ClientError | None:
        """Return why a request at `now` is refused; None if it is served."""
        if now < self.end:
            return None
        # First: a key that has been replaced gets no advice about the end of v3.
        if (expired := self.expiry(now)) is not None:
            return expired
        return None if self.sunset is None else errors.Gone(self.sunset.message)

    def expiry(self, now: float) -> errors.ExpiredKey | None:
        """Return why a request at `now` is refused after the last day of the key; the sunset is that of v3 only."""
        if self.expires is None or now < _end_of(self.expires):
            return None
        return errors.ExpiredKey(f"this API key expired on {self.expires}; use the one that replaces it")


class Applications:
    """Client of every API key; `all` clients in the order of the file."""

    def __init__(self, configured: dict[str, config.ApplicationSettings]) -> None:
        self._by_digest: dict[config.Digest, Client] = {}
        for name, entry in configured.items():
            self._by_digest |= _clients(name, entry)
        self.all = tuple(self._by_digest.values())

    @property
    def applications(self) -> dict[str, Application]:
        """Applications by name."""
        return {client.application.name: client.application for client in self.all}

    def client(self, apikey: str | None) -> Client:
        """Return the client of a key. Raises MissingKey and ForbiddenKey (contract v3-rest.md §5)."""
        if not apikey:
            raise errors.MissingKey()
        # A look-up by digest takes the same time for a nearly right key as for any other.
        client = self._by_digest.get(config.digest(apikey))
        if client is None:
            raise errors.ForbiddenKey()
        return client

    def is_key(self, text: str) -> bool:
        """Return whether a text is an API key of a client."""
        return config.digest(text) in self._by_digest

    @property
    def by_digest(self) -> Mapping[config.Digest, Client]:
        """Clients by the digests of their API keys."""
        return self._by_digest

    @property
    def digests(self) -> Set[config.Digest]:
        """The digests of all API keys."""
        return self._by_digest.keys()


def _clients(name: str, entry: config.ApplicationSettings) -> dict[config.Digest, Client]:
    """Return the clients of one application by the digests of their keys."""
    credentials = identity.Credentials(name, entry.client_id, entry.client_secret)
    context = model.MappingContext(entry.country, entry.currency)
    application = Application(name, credentials, context, entry.allowed_features, entry.features != "unknown")
    accounts = quota_accounts.charged_accounts(name, entry)
    return {
        key.key: Client(
            application,
            key_name,
            accounts[key_name],
            # A key's own 0 switches the limit of its application off: only None inherits it.
            entry.rate if key.rate is None else key.rate,
            Sunset.of(entry.sunset_of(key)),
            key.expires,
        )
        for key_name, key in entry.clients.items()
    }


def _end_of(day: date) -> float:
    """Return the end of a day in UTC, in seconds since 1970."""
    return datetime.combine(day, time(23, 59, 59), UTC).timestamp() + 1
