"""Clients: who still calls, by API key, with user agents, parts and the state of the sunset."""

import asyncio
from collections.abc import Mapping

import msgspec

from proxy import errors
from proxy.gateway import client_report
from proxy.gateway.client_report import ClientReport, ClientUsage
from proxy.gateway.quota import usage as quota_usage
from proxy.web.admin.context import AdminContext
from proxy.web.admin.page import AdminPage, PageData, PageParameter, Query

_DAYS = 30
_DAYS_MAX = 396
_LOWEST = 4  # height of a bar that can be seen, where the highest has 100
_AGENTS_MAX = 3  # user agents of a client that the table names


class QuotaShare(msgspec.Struct, frozen=True):
    """Parts that an API key has used in its current period, and the share of all that its application has used.

    `limit` and `percent` (of the limit) are null where the key has no limit of its own.
    """

    period: str
    used: int
    limit: int | None
    percent: float | None
    share: float | None


class ClientRow(msgspec.Struct, frozen=True):
    """One API key; `application` and `key` are names. Counts are of the days of the page, `today` is of today.

    `requests_by_day` has a number for each of these days. `user_agents` are those with most requests,
    `more_user_agents` how many there are besides. `first_seen` and `last_seen` are of all recorded days, null for a key
    that was never seen.
    """

    application: str
    key: str
    configured: bool
    strict: bool
    sunset: str | None
    sunset_passed: bool
    expires: str | None
    expired: bool
    today: int
    requests: int
    errors: int
    parts: int
    requests_by_day: list[int]
    first_seen: str | None
    last_seen: str | None
    endpoints: list[str]
    user_agents: list[str]
    more_user_agents: int
    quota: QuotaShare | None

    @property
    def bars(self) -> str:
        """Bars of the days as an SVG path, 4 units wide and at most 100 high: one element, where pages have hundreds of
        clients."""
        most = max(self.requests_by_day)
        heights = (max(_LOWEST, round(100 * count / most)) if count else 0 for count in self.requests_by_day)
        return "".join(f"M{4 * place} 100v-{height}h3V100z" for place, height in enumerate(heights) if height)


class ClientsPage(PageData, frozen=True):
    """Clients from `first_day` to `last_day` (today, UTC), those with most requests first.

    `unused` are API keys without requests on these days: configured ones, and others that were seen before. `unknown`
    are requests without a valid API key, null where there were none. `selected` is the client that the parameters name,
    with every endpoint and user agent. `recording` is false where `clients.days` is 0. `recorded_since` is the time of
    the first recorded request. `store_failure`: why the store cannot be used; no client is known then.
    """

    days: int
    first_day: str
    last_day: str
    recording: bool
    recorded_since: str | None
    clients: list[ClientRow]
    unused: list[ClientRow]
    unknown: ClientUsage | None
    selected: ClientUsage | None
    store_failure: str | None

    @property
    def called_today(self) -> int:
        """Number of clients that have called today."""
        return sum(1 for each in self.clients if each.today)


async def _data(context: AdminContext, query: Query) -> ClientsPage:
    try:
        async with context.client_reports:
            return await _page(context, query, await _report(context, query))
    except errors.StoreUnavailable as error:
        return _without_store(context, query, error.message)


def _without_store(context: AdminContext, query: Query, reason: str) -> ClientsPage:
    """Return the page without clients: zeros of the configured API keys would say that they are not used."""
    days, recording = _days(query), bool(context.service.gateway.settings.clients.days)
    first_day, last_day = client_report.day_names(days, context.clock.now())
    return ClientsPage(days, first_day, last_day, recording, None, [], [], None, None, reason)


async def _page(context: AdminContext, query: Query, report: ClientReport) -> ClientsPage:
    gateway = context.service.gateway
    entries = await gateway.store.all_usage()
    rows = quota_usage.rows(gateway.settings.applications, entries, (), context.clock.now())
    quotas = {(row.application, row.key): row for row in rows}
    named = [client for client in report.clients if client.key is not None]
    # In a thread, as all that has to look at every user agent.
    known = await asyncio.to_thread(lambda: [_row(client, quotas) for client in named])
    return ClientsPage(
        days=_days(query),
        first_day=report.first_day,
        last_day=report.last_day,
        recording=bool(gateway.settings.clients.days),
        recorded_since=report.recorded_since,
        clients=[each for each in known if each.requests],
        unused=[each for each in known if not each.requests],
        unknown=next((each for each in report.clients if each.key is None and each.requests), None),
        selected=_selected(report, query),
        store_failure=None,
    )


async def _csv(context: AdminContext, query: Query) -> str:
    async with context.client_reports:
        report = await _report(context, query)
        selected = _selected(report, query)
        shown = report if selected is None else msgspec.structs.replace(report, clients=[selected])
        # In a thread: a file of many days has hundreds of thousands of lines.
        return await asyncio.to_thread(client_report.csv_text, shown)


async def _report(context: AdminContext, query: Query) -> ClientReport:
    gateway = context.service.gateway
    return await client_report.read(gateway.store, gateway.settings.applications, _days(query), context.clock.now())


def _days(query: Query) -> int:
    text = query.get("days", str(_DAYS))
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(_DAYS_MAX)) and 1 <= int(text) <= _DAYS_MAX):
        raise errors.BadRequest(f"days must be a whole number between 1 and {_DAYS_MAX}")
    return int(text)


def _selected(report: ClientReport, query: Query) -> ClientUsage | None:
    """Return the client that `application` and `key` name; both empty: requests without a valid API key."""
    if "key" not in query:
        return None
    name = (query.get("application") or None, query["key"] or None)
    for client in report.clients:
        if (client.application, client.key) == name:
            return client
    raise errors.BadRequest("no API key of this application and name is configured or was seen")


def _row(client: ClientUsage, quotas: Mapping[tuple[str, str | None], quota_usage.UsageRow]) -> ClientRow:
    agents = client.user_agents
    return ClientRow(
        application=client.application or "",
        key=client.key or "",
        configured=client.configured,
        strict=client.strict,
        sunset=client.sunset,
        sunset_passed=client.sunset_passed,
        expires=client.expires,
        expired=client.expired,
        today=client.days[-1].requests,
        requests=client.requests,
        errors=client.errors,
        parts=client.parts,
        requests_by_day=[day.requests for day in client.days],
        first_seen=client.first_seen,
        last_seen=client.last_seen,
        endpoints=sorted({caller.endpoint for caller in client.callers}),
        user_agents=agents[:_AGENTS_MAX],
        more_user_agents=max(0, len(agents) - _AGENTS_MAX),
        quota=_quota(client, quotas),
    )


def _quota(client: ClientUsage, quotas: Mapping[tuple[str, str | None], quota_usage.UsageRow]) -> QuotaShare | None:
    own = quotas.get((client.application or "", client.key))
    whole = quotas.get((client.application or "", None))
    if own is None or whole is None:
        return None
    used = own.used + own.uncertain
    of_all = whole.used + whole.uncertain
    return QuotaShare(own.period, used, own.limit, own.percent, used / of_all if of_all else None)


PAGE = AdminPage(
    "clients",
    "Clients",
    "Who still calls: requests of each API key by day, with endpoints and user agents, and unused keys.",
    ClientsPage,
    _data,
    parameters=(
        PageParameter("days", f"Number of days, today included: 1 to {_DAYS_MAX}; {_DAYS} if omitted."),
        PageParameter("application", "Application of the API key in `key`."),
        PageParameter("key", "Name of an API key to show in full; empty: requests without a valid API key."),
    ),
    csv=_csv,
)
