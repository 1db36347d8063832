"""Clients: who still calls, by API key, with user agents, parts and the state of the sunset."""

import asyncio
import math
from collections.abc import Iterable, Mapping

import msgspec

from proxy import config, errors
from proxy.gateway import client_report, client_verdicts
from proxy.gateway.client_report import CallerUsage, ClientReport, ClientSummary, ClientUsage
from proxy.gateway.quota import usage as quota_usage
from proxy.stores.protocols import EntryUsage
from proxy.web.admin.page import AdminContext, AdminPage, PageData, PageParameter, Query, whole_number

_DAYS = 30
_DAYS_MAX = 396
_LOWEST = 4  # height of a bar that can be seen, where the highest has 100
_ROWS = 100  # of each table on a page
_PAGES_MAX = 99_999
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


class ClientRow(ClientSummary, frozen=True, kw_only=True):
    """One API key. Counts are of the days of the page, `today` is of today.

    `requests_by_day` has a number for each of these days. `user_agents` are those with most requests,
    `more_user_agents` how many there are besides. `unsupported` is how many parameters that are ignored, and fields
    without source, its requests name. `first_seen` and `last_seen` are of all recorded days, null for a key that was
    never seen.
    """

    today: int
    unsupported: int
    requests_by_day: list[int]
    endpoints: list[str]
    user_agents: list[str]
    more_user_agents: int
    quota: QuotaShare | None

    @property
    def bars(self) -> str:
        """Bars of the days as an SVG path, 4 units wide and at most 100 high: one element, where pages have a hundred
        clients."""
        most = max(self.requests_by_day)
        heights = (max(_LOWEST, round(100 * count / most)) if count else 0 for count in self.requests_by_day)
        return "".join(f"M{4 * place} 100v-{height}h3V100z" for place, height in enumerate(heights) if height)


class ClientTotals(msgspec.Struct, frozen=True):
    """Numbers of clients that have called today and on the days of the page, of their requests on these days, and of
    configured API keys without requests."""

    today: int = 0
    clients: int = 0
    requests: int = 0
    unused: int = 0


class ClientsPage(PageData, frozen=True):
    """Clients from `first_day` to `last_day` (today, UTC), those with most requests first.

    `unused` are API keys without requests on these days: configured ones, and others that were seen before. `unknown`
    are requests without a valid API key, null where there were none. `selected` is the client that the parameters name,
    with its endpoints and user agents. Lists, also the callers of `unknown` and `selected`, have the rows of `page`,
    one of `pages`, and only those that contain `search`; `totals` are of all. `recording` is false where `clients.days`
    is 0. `recorded_since` is the time of the first recorded request. `store_failure`: why the store cannot be used; no
    client is known then.
    """

    days: int
    search: str
    page: int
    pages: int
    totals: ClientTotals
    first_day: str
    last_day: str
    recording: bool
    recorded_since: str | None
    clients: list[ClientRow]
    unused: list[ClientRow]
    unknown: ClientUsage | None
    selected: ClientUsage | None
    store_failure: str | None


async def _data(context: AdminContext, query: Query) -> ClientsPage:
    try:
        async with context.client_reports:
            return await _page(context, query)
    except errors.StoreUnavailable as error:
        return _without_store(context, query, error.message)


def _without_store(context: AdminContext, query: Query, reason: str) -> ClientsPage:
    """Return the page without clients: zeros of the configured API keys would say that they are not used."""
    days, recording = _days(query), bool(context.service.gateway.settings.clients.days)
    first_day, last_day = client_report.day_names(days, context.clock.now())
    search, totals = query.get("search", ""), ClientTotals()
    return ClientsPage(days, search, 1, 1, totals, first_day, last_day, recording, None, [], [], None, None, reason)


async def _page(context: AdminContext, query: Query) -> ClientsPage:
    gateway = context.service.gateway
    entries = await gateway.store.all_usage()
    # In a thread, as all that has to look at every client; it has the only reference, because freeing takes long, too.
    report, now = [await _report(context, query)], context.clock.now()
    return await asyncio.to_thread(lambda: _shown(gateway.settings, report.pop(), entries, query, now))


def _shown(
    settings: config.Config, report: ClientReport, entries: Iterable[EntryUsage], query: Query, now: float
) -> ClientsPage:
    selected, found = _selected(report, query), _found(report, query)
    called = [client for client in found if client.key is not None and client.requests]
    unused = [client for client in found if client.key is not None and not client.requests]
    unknown = next((client for client in found if client.key is None and client.requests), None)
    lists = (selected.callers,) if selected else (called, unused, unknown.callers if unknown else ())
    pages = max(1, math.ceil(max(map(len, lists)) / _ROWS))
    page = min(whole_number(query, "page", 1, _PAGES_MAX), pages)
    rows = slice((page - 1) * _ROWS, page * _ROWS)
    quotas = {(row.application, row.key): row for row in quota_usage.rows(settings.applications, entries, (), now)}
    return ClientsPage(
        days=_days(query),
        search=query.get("search", ""),
        page=page,
        pages=pages,
        totals=_totals(report),
        first_day=report.first_day,
        last_day=report.last_day,
        recording=bool(settings.clients.days),
        recorded_since=report.recorded_since,
        clients=[_row(client, quotas) for client in called[rows]],
        unused=[_row(client, quotas) for client in unused[rows]],
        unknown=_with_callers(unknown, rows),
        selected=_with_callers(selected, rows),
        store_failure=None,
    )


async def _csv(context: AdminContext, query: Query) -> list[bytes]:
    async with context.client_reports:
        # In a thread: a file of many days has hundreds of thousands of lines.
        report = [await _report(context, query)]
        return await asyncio.to_thread(lambda: _csv_chunks(report.pop(), query))


def _csv_chunks(report: ClientReport, query: Query) -> list[bytes]:
    selected = _selected(report, query)
    shown = msgspec.structs.replace(report, clients=[selected] if selected else _found(report, query))
    if "verdicts" in query:
        return [client_verdicts.csv_text(shown).encode()]
    return [text.encode() for text in client_report.csv_chunks(shown)]


async def _report(context: AdminContext, query: Query) -> ClientReport:
    gateway = context.service.gateway
    return await client_report.read(gateway.store, gateway.settings.applications, _days(query), context.clock.now())


def _days(query: Query) -> int:
    return whole_number(query, "days", _DAYS, _DAYS_MAX)


def _found(report: ClientReport, query: Query) -> list[ClientUsage]:
    """Return the clients that contain the text searched for in their name, a user agent or an endpoint."""
    text = query.get("search", "").lower()
    return [client for client in report.clients if text in client.name.lower() or _callers(client, text)]


def _callers(client: ClientUsage, text: str) -> list[CallerUsage]:
    return [caller for caller in client.callers if text in caller.user_agent.lower() or text in caller.endpoint]


def _selected(report: ClientReport, query: Query) -> ClientUsage | None:
    """Return the client that `application` and `key` name, with the callers that contain the text searched for; both
    empty: requests without a valid API key."""
    if "key" not in query:
        return None
    name = (query.get("application") or None, query["key"] or None)
    for client in report.clients:
        if (client.application, client.key) == name:
            return msgspec.structs.replace(client, callers=_callers(client, query.get("search", "").lower()))
    raise errors.BadRequest("no API key of this application and name is configured or was seen")


def _with_callers(client: ClientUsage | None, rows: slice) -> ClientUsage | None:
    return client and msgspec.structs.replace(client, callers=client.callers[rows])


def _totals(report: ClientReport) -> ClientTotals:
    named = [client for client in report.clients if client.key is not None]
    return ClientTotals(
        today=sum(1 for client in named if client.days[-1].requests),
        clients=sum(1 for client in named if client.requests),
        requests=sum(client.requests for client in named),
        unused=sum(1 for client in named if client.configured and not client.requests),
    )


def _row(client: ClientUsage, quotas: Mapping[tuple[str, str | None], quota_usage.UsageRow]) -> ClientRow:
    agents = client.user_agents
    return ClientRow(
        **{name: getattr(client, name) for name in ClientSummary.__struct_fields__},
        today=client.days[-1].requests,
        unsupported=len(client.unsupported),
        requests_by_day=[day.requests for day in client.days],
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
    "Who still calls, and which programs will break: each API key with its requests by day, and unused keys.",
    ClientsPage,
    _data,
    parameters=(
        PageParameter("days", f"Number of days, today included: 1 to {_DAYS_MAX}; {_DAYS} if omitted."),
        PageParameter("search", "Text in the name, a user agent or an endpoint of each client that is shown."),
        PageParameter("page", f"Number of the page, of {_ROWS} rows of each table; the file has all rows."),
        PageParameter("verdicts", "In the file: which programs will break, instead of counts by day."),
        PageParameter("application", "Application of the API key in `key`."),
        PageParameter("key", "Name of an API key to show in full; empty: requests without a valid API key."),
    ),
    csv=_csv,
)
