"""Authentication of v3 clients: API keys, and the Nexar applications that their requests are executed with.

Keys are looked up by digest, so that none is held in clear. Built once from the configuration.
"""

from dataclasses import dataclass

from proxy import config, errors, model
from proxy.gateway.quota import accounts as quota_accounts
from proxy.kit.windows import Window
from proxy.upstream.auth import identity


@dataclass(frozen=True, slots=True)
class Application:
    """Nexar application: its credentials, country and currency, and the features that its plan includes."""

    name: str
    credentials: identity.Credentials
    context: model.MappingContext
    features: frozenset[str]


@dataclass(frozen=True, slots=True)
class Client:
    """v3 client, identified by an API key: its application, the key's name, its quota accounts and its rate limit
    (empty: none)."""

    application: Application
    key: str
    accounts: quota_accounts.ChargedAccounts
    rate: tuple[Window, ...] = ()


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


def _clients(name: str, entry: config.ApplicationSettings) -> dict[config.Digest, Client]:
    """Return the clients of one application by the digests of their keys."""
    credentials = identity.Credentials(name, entry.client_id, entry.client_secret)
    application = Application(name, credentials, model.MappingContext(entry.country, entry.currency), entry.plan)
    accounts = quota_accounts.charged_accounts(name, entry)
    return {
        key.key: Client(application, key_name, accounts[key_name], _rate(key.rate, entry.rate))
        for key_name, key in entry.clients.items()
    }


def _rate(key_rate: int | None, application_rate: int) -> tuple[Window, ...]:
    # A key's own 0 switches the limit of its application off: only None inherits it.
    count = application_rate if key_rate is None else key_rate
    return (Window(count, 1.0),) if count else ()
