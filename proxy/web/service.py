"""The running service of a process: the gateway of the current configuration, and what outlives a reload."""

from proxy.alerts import monitor
from proxy.gateway.assembly import Gateway


class RunningService:
    """Service of this process. A reload replaces `gateway`: read it anew for each use."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.alerts = monitor.AlertMonitor(lambda: self.gateway)
