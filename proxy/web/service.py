"""The running service of a process: the gateway of the current configuration, and what outlives a reload."""

import os
from collections.abc import Sequence
from contextlib import AsyncExitStack

from proxy import config
from proxy.gateway.core import Gateway
from proxy.web.authentication import Authenticator
from proxy.web.middleware import Failures, RequestMiddleware
from proxy.web.operator_endpoints import ReadinessCheck
from proxy.web.v3.encoded_cache import EncodedResponseCache


class ConfiguredApp:
    """Application of one configuration, and what a reload needs of it. `resources` are closed with it."""

    def __init__(
        self,
        service: "RunningService",
        gateway: Gateway,
        requests: RequestMiddleware,
        authenticator: Authenticator,
        *,
        responses: EncodedResponseCache,
    ) -> None:
        self.service = service
        self.gateway = gateway
        self.requests = requests
        self.authenticator = authenticator
        self._responses = responses
        self.resources = AsyncExitStack()

    def activate(self) -> None:
        """Begin to serve, with caches whose size is reported."""
        self.gateway.activate()
        self.gateway.metrics.caches["responses"] = self._responses.usage

    async def close(self) -> None:
        """Close the application, which has no requests any more."""
        await self.resources.aclose()


class RunningService:
    """Service of this process. A reload replaces `gateway` and `checks`: read them for each use.

    `checks` are the conditions of readiness, `failures` the last failed requests.
    """

    def __init__(self, gateway: Gateway, failures: Failures) -> None:
        self.failures = failures
        self.started = gateway.clock.now()
        self.pid = os.getpid()
        self.metrics_text = gateway.metrics.text
        self._serve(gateway)
        self._set_gauges(successful=True, at=gateway.clock.now())

    def switch(self, configured: ConfiguredApp) -> None:
        """Serve with the gateway of another configuration."""
        configured.activate()
        self._serve(configured.gateway)

    def report(self, result: config.ReloadResult, *, counts: bool = True) -> None:
        """Note the result of a reload. Of several workers one `counts` it."""
        successful = result.outcome == "reloaded"
        self._set_gauges(successful=successful, at=result.at)
        if counts:
            self.gateway.metrics.configuration_reloads.labels(result.outcome).inc()

    def _serve(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.checks: Sequence[ReadinessCheck] = [ReadinessCheck(*each) for each in gateway.readiness().items()]

    def _set_gauges(self, *, successful: bool, at: float) -> None:
        metrics = self.gateway.metrics
        metrics.last_reload_successful.set(float(successful))
        if successful:
            metrics.last_reload_success.set(at)
