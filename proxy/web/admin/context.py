"""What pages and actions of the admin interface work on."""

from dataclasses import dataclass

from proxy.kit.clock import Clock
from proxy.web.service import RunningService


@dataclass(frozen=True, slots=True)
class AdminContext:
    """Dependencies of pages and actions. `started`: when this process began to serve, in seconds since 1970."""

    service: RunningService
    clock: Clock
    started: float
