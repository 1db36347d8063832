"""Overview: the state of the service at a glance."""

from proxy import __version__
from proxy.web.admin.context import AdminContext
from proxy.web.admin.page import AdminPage, PageData, Query


class OverviewPage(PageData, frozen=True):
    """State of the service. `started` is in seconds since 1970."""

    version: str
    started: float
    uptime_seconds: float
    workers: int


async def _data(context: AdminContext, _: Query) -> OverviewPage:
    uptime = context.clock.now() - context.started
    return OverviewPage(__version__, context.started, uptime, context.service.gateway.settings.listen.workers)


PAGE = AdminPage("overview", "Overview", "State of the service at a glance.", OverviewPage, _data, path="/")
