"""Who is this key? The apikeys of v3 clients, and the applications of the service that stand in for them.

Keys are looked up by digest, so that none is held in clear. Built once from the configuration.
"""

from dataclasses import dataclass

from proxy import config, errors, model
from proxy.upstream import tokens


@dataclass(frozen=True, slots=True)
class Application:
    """One application of the service: its credentials, where it buys, what its plan includes."""

    name: str
    credentials: tokens.Credentials
    context: model.Context
    features: frozenset[str]


@dataclass(frozen=True, slots=True)
class Client:
    """Who an apikey stands for: a v3 client of an application."""

    application: Application


class Applications:
    """The client of every apikey; `all` applications in the order of the file."""

    def __init__(self, configured: dict[str, config.Application]) -> None:
        self.all = tuple(_application(name, entry) for name, entry in configured.items())
        self._by_digest = {
            digest: Client(application)
            for application, entry in zip(self.all, configured.values(), strict=True)
            for digest in entry.apikeys
        }

    def client(self, apikey: str | None) -> Client:
        """Who sends a key. Raises MissingKey and ForbiddenKey (contract v3-rest.md §5)."""
        if not apikey:
            raise errors.MissingKey()
        client = self._by_digest.get(config.digest(apikey))
        if client is None:
            raise errors.ForbiddenKey()
        return client


def _application(name: str, entry: config.Application) -> Application:
    return Application(
        name,
        tokens.Credentials(name, entry.client_id, entry.client_secret),
        model.Context(entry.country, entry.currency),
        entry.plan,
    )
