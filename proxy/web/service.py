"""The running service of a process: the gateway of the current configuration, and what outlives a reload."""

from collections.abc import Callable, Sequence

from aiohttp import web

from proxy.gateway.assembly import Gateway
from proxy.web.operator_endpoints import ReadinessCheck


class RunningService:
    """Service of this process. A reload replaces `gateway` and `checks`: read them anew for each use.

    `metrics_text` renders the metrics of all workers, `checks` are the conditions of readiness.
    """

    def __init__(self, gateway: Gateway, checks: Sequence[ReadinessCheck], metrics_text: Callable[[], bytes]) -> None:
        self.gateway = gateway
        self.checks = checks
        self.metrics_text = metrics_text


SERVICE = web.AppKey("service", RunningService)
