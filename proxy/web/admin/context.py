"""What pages and actions of the admin interface work on."""

import asyncio
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
    # Held for a report of clients: with thousands of user agents one takes seconds and 100 MB.
    client_reports: asyncio.Lock = field(default_factory=asyncio.Lock)
