"""Conditions of readiness: the store, the GraphQL service and the access token of every application can be used."""

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from proxy import errors
from proxy.gateway.assembly import Gateway
from proxy.kit.tasks import SingleFlight
from proxy.planning.documents import Document
from proxy.upstream.identity import Credentials

# Shows whether a token is accepted, at no parts. A load balancer sends no requests to a service that is not ready, so
# that no other request would show that tokens are accepted again.
PROBE = Document("probe", "query probe { supCategories { id } }", dict[str, Any]).operation({}, 0)
PROBE_SECONDS = 10.0  # between two probes of a GraphQL service that has not responded with GraphQL

Check = Callable[[], Coroutine[Any, Any, None]]  # raises the BridgeError for which the service is not ready


class Readiness:
    """Checks by name. Balancers check often: equal checks under way are one."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._flights: SingleFlight[str, None] = SingleFlight("readiness")
        self._next = 0.0  # by the monotonic clock
        self._failure: errors.ServerError | None = None  # of the last probe
        self._owners = [application.credentials for application in gateway.applications.by_name.values()]
        tokens = {f"token {owner.name}": partial(self._check_token, owner) for owner in self._owners}
        works: dict[str, Check] = {"store": gateway.check_store, "graphql": self._check_graphql, **tokens}
        self.checks: dict[str, Check] = {name: partial(self._flights.run, name, work) for name, work in works.items()}

    async def aclose(self) -> None:
        """Cancel what is under way."""
        await self._flights.close()

    async def _check_graphql(self) -> None:
        """Check that a GraphQL service responds at the configured address, and that the circuit breaker is not open.

        Sends an operation that costs no parts until any operation, this one or a client's, gets a GraphQL response, and
        again after a response that was not GraphQL. A token that is missing is a check of its own.
        """
        gateway = self._gateway
        if refusal := gateway.breaker.refusal():
            raise refusal
        if gateway.sender.proven:
            self._failure = None
        elif gateway.clock.monotonic() >= self._next and self._owners:
            try:
                await gateway.tokens.get(self._owners[0])
            except errors.ServerError:
                return
            if gateway.tokens.refusal(self._owners[0]):
                return
            self._next, self._failure = gateway.clock.monotonic() + PROBE_SECONDS, None
            try:
                await gateway.sender.send(PROBE, self._owners[0], PROBE_SECONDS)
            except (errors.CredentialsRefused, errors.ClientError):  # the service is there
                pass
            except errors.ServerError as error:
                self._failure = None if gateway.sender.proven else error
        if self._failure is not None:
            raise self._failure.shared()

    async def _check_token(self, owner: Credentials) -> None:
        """Check that there is a token, and that it works if the previous one was refused. After a refusal the token
        cache's back-off delays the next try."""
        await self._gateway.tokens.get(owner)
        if refusal := self._gateway.tokens.refusal(owner):
            try:
                await self._gateway.sender.send(PROBE, owner, PROBE_SECONDS)
            except errors.BridgeError:
                raise refusal.shared() from None
