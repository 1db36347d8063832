"""The running service of a process: the gateway of the current configuration, and what outlives a reload."""

from collections.abc import Sequence

from aiohttp import web

from proxy.alerts import monitor
from proxy.config.origins import ConfigurationOrigin
from proxy.gateway.assembly import Gateway
from proxy.web.figures import Figures
from proxy.web.operator_endpoints import ReadinessCheck


class RunningService:
    """Service of this process. A reload replaces `gateway` and `checks`: read them anew for each use.

    `checks` are the conditions of readiness, `figures` are those of all workers and machines. `origin` is where the
    configuration comes from, None for one that was not read from a file.
    """

    def __init__(self, gateway: Gateway, checks: Sequence[ReadinessCheck], figures: Figures) -> None:
        self.gateway = gateway
        self.checks = checks
        self.figures = figures
        self.metrics_text = figures.local.text
        self.origin: ConfigurationOrigin | None = None
        self.alerts = monitor.AlertMonitor(lambda: self.gateway)


SERVICE = web.AppKey("service", RunningService)
