"""Who is this key? The apikeys of v3 clients, and the applications of the service that stand in for them.

Keys are looked up by digest, so that none is held in clear. Built once from the configuration.
"""

from dataclasses import dataclass, replace

import msgspec

from proxy import config, errors, model
from proxy.upstream import tokens


@dataclass(frozen=True, slots=True)
class Application:
    """One application of the service: its credentials, where it buys, what its plan includes."""

    name: str
    credentials: tokens.Credentials
    context: model.Context
    features: frozenset[str]

    def asking(self, uid: str) -> model.Context:
        """The context of a request for one uid."""
        return msgspec.structs.replace(self.context, asked=uid)

    def cutting(self, cuts: dict[model.Path, slice]) -> "Application":
        """The same application with a request's cuts of lists in its context."""
        return replace(self, context=msgspec.structs.replace(self.context, cuts=cuts)) if cuts else self


class Applications:
    """Every apikey's application; `all` of them in the order of the file."""

    def __init__(self, configured: dict[str, config.Application]) -> None:
        self.all = tuple(_application(name, entry) for name, entry in configured.items())
        self._by_digest = {
            digest: application
            for application, entry in zip(self.all, configured.values(), strict=True)
            for digest in entry.apikeys
        }

    def of(self, apikey: str | None) -> Application:
        """The application that serves a key. Raises MissingKey and ForbiddenKey (contract v3-rest.md §5)."""
        if not apikey:
            raise errors.MissingKey()
        application = self._by_digest.get(config.digest(apikey))
        if application is None:
            raise errors.ForbiddenKey()
        return application


def _application(name: str, entry: config.Application) -> Application:
    return Application(
        name,
        tokens.Credentials(name, entry.client_id, entry.client_secret),
        model.Context(entry.country, entry.currency),
        entry.plan,
    )
