"""Who is this key? The apikeys of v3 clients, and the applications of the service that stand in for them.

Keys are looked up by digest, so that none is held in clear. Built once from the configuration.
"""

from dataclasses import dataclass, replace

import msgspec

from proxy import config, errors, model
from proxy.gateway import plans
from proxy.kit.windows import Window
from proxy.upstream import tokens


@dataclass(frozen=True, slots=True)
class Application:
    """One application of the service as one apikey has it: its credentials, where it buys, what its plan includes,
    on which accounts its parts count, and how often the key may ask (empty: as often as it likes)."""

    name: str
    credentials: tokens.Credentials
    context: model.Context
    features: frozenset[str]
    accounts: plans.Accounts
    rate: tuple[Window, ...] = ()

    def asking(self, uid: str) -> model.Context:
        """The context of a request for one uid."""
        return msgspec.structs.replace(self.context, asked=uid)

    def cutting(self, cuts: dict[model.Path, slice]) -> "Application":
        """The same application with a request's cuts of lists in its context."""
        return replace(self, context=msgspec.structs.replace(self.context, cuts=cuts)) if cuts else self


class Applications:
    """Every apikey's application. `all` has one of each in the order of the file, `accounts` those of every key."""

    def __init__(self, configured: dict[str, config.Application]) -> None:
        self._by_digest: dict[config.Digest, Application] = {}
        self.all: list[Application] = []
        for name, entry in configured.items():
            served = _served(name, entry)
            self.all.append(next(iter(served.values())))
            self._by_digest |= served
        self.accounts = [application.accounts for application in self._by_digest.values()]

    def of(self, apikey: str | None) -> Application:
        """The application that serves a key. Raises MissingKey and ForbiddenKey (contract v3-rest.md §5)."""
        if not apikey:
            raise errors.MissingKey()
        application = self._by_digest.get(config.digest(apikey))
        if application is None:
            raise errors.ForbiddenKey()
        return application


def _served(name: str, entry: config.Application) -> dict[config.Digest, Application]:
    """The application for each of its keys."""
    credentials = tokens.Credentials(name, entry.client_id, entry.client_secret)
    context = model.Context(entry.country, entry.currency)
    accounts = plans.accounts(name, entry)
    return {
        key.key: Application(name, credentials, context, entry.plan, accounts[own], _rate(key.rate, entry.rate))
        for own, key in entry.clients.items()
    }


def _rate(own: int | None, common: int) -> tuple[Window, ...]:
    count = common if own is None else own
    return (Window(count, 1.0),) if count else ()
