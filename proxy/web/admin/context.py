"""What pages and actions of the admin interface work on."""

from dataclasses import dataclass, field

from proxy.kit.clock import Clock
from proxy.web.admin.explaining import Explaining
from proxy.web.service import RunningService


@dataclass(frozen=True, slots=True)
class AdminContext:
    """Dependencies of pages and actions."""

    service: RunningService
    clock: Clock
    explaining: Explaining = field(default_factory=Explaining)
