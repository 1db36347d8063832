"""Authentication of v3 clients: API keys, and the Nexar applications that their requests are executed with.

Keys are looked up by digest, so that none is held in clear. Built once from the configuration.
"""

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from email.utils import format_datetime

from proxy import config, errors, model
from proxy.gateway.quota import accounts as quota_accounts
from proxy.kit.windows import Window
from proxy.upstream.auth import identity

# The vendor ended the support of v3 on this day (contract v3-rest.md §1): from it, v3 is deprecated.
SUPPORT_END = date(2022, 3, 31)
# The vendor's guide for those who leave v3, where the operator has no page of their own.
MIGRATION_GUIDE = "https://docs.nexar.com/guides/supply-api/migration-from-octopart-v3-api"


@dataclass(frozen=True, slots=True)
class Sunset:
    """Announced end of service: the headers of every response, before and after it, and the `head` that they make.

    `end` is in seconds since 1970, infinite where no date is set; `message` is that of the refusals from then on.
    """

    headers: dict[str, str]
    head: str
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
            # The day itself is served: its last second is the sunset, as in the example of RFC 8594.
            last = datetime.combine(settings.date, time(23, 59, 59), UTC)
            headers["Sunset"] = format_datetime(last, usegmt=True)
            headers["Link"] += f', <{page}>; rel="sunset"'
            end = last.timestamp() + 1
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        message = f"v3 is not served to this API key since its sunset on {settings.date}; see {page}"
        return cls(headers, head, end, message)

    def has_passed(self, now: float) -> bool:
        """Return whether requests are refused at `now`, in seconds since 1970."""
        return now >= self.end


@dataclass(frozen=True, slots=True)
class Application:
    """Nexar application: its credentials, country and currency, and the features that its plan includes."""

    name: str
    credentials: identity.Credentials
    context: model.MappingContext
    features: frozenset[str]


@dataclass(frozen=True, slots=True)
class Client:
    """v3 client, identified by an API key: its application, the key's name, its quota accounts, its rate limit
    (empty: none), its sunset if there is one, and whether all of its requests are strict."""

    application: Application
    key: str
    accounts: quota_accounts.ChargedAccounts
    rate: tuple[Window, ...] = ()
    sunset: Sunset | None = None
    strict: bool = False


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
        """Return whether a text is an API key."""
        return config.digest(text) in self._by_digest


def _clients(name: str, entry: config.ApplicationSettings) -> dict[config.Digest, Client]:
    """Return the clients of one application by the digests of their keys."""
    credentials = identity.Credentials(name, entry.client_id, entry.client_secret)
    application = Application(name, credentials, model.MappingContext(entry.country, entry.currency), entry.plan)
    accounts = quota_accounts.charged_accounts(name, entry)
    return {
        key.key: Client(
            application,
            key_name,
            accounts[key_name],
            _rate(key.rate, entry.rate),
            Sunset.of(entry.sunset_of(key)),
            key.strict,
        )
        for key_name, key in entry.clients.items()
    }


def _rate(key_rate: int | None, application_rate: int) -> tuple[Window, ...]:
    # A key's own 0 switches the limit of its application off: only None inherits it.
    count = application_rate if key_rate is None else key_rate
    return (Window(count, 1.0),) if count else ()
