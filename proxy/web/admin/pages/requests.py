"""Requests: the last v3 requests of all workers and machines, without API keys, with links to their explanation."""

from collections.abc import Callable
from urllib.parse import quote, urlencode

import msgspec

from proxy import errors
from proxy.telemetry.activity import RequestRecord
from proxy.web.admin.page import AdminContext, AdminPage, PageData, PageParameter, Query

NONE = "none"  # value of a filter for requests without a key, or without results from anywhere


class RecentRequest(RequestRecord, frozen=True, kw_only=True, array_like=False):
    """A v3 request that was responded to. `at` is in seconds since 1970, `ms` the duration.

    `target` is the path with the query, with "…" for API keys. `application` and `key` are names, null without a valid
    API key. `parts` were billed; `cache` is where the results came from: hit, shared, miss or stale; both are null
    where no part was requested. `error` is the type of the error that the response reports. `explain` is the page
    that explains the request, null for one that is not a GET of v3.
    """

    explain: str | None


class RequestFilter(msgspec.Struct, frozen=True):
    """What is shown: empty is everything. `status` is a status or a class of them, such as 404 or 4xx."""

    key: str
    status: str
    route: str
    cache: str


class FilterChoices(msgspec.Struct, frozen=True):
    """Values of the filters that have requests."""

    key: tuple[str, ...]
    status: tuple[str, ...]
    route: tuple[str, ...]
    cache: tuple[str, ...]


class RequestsPage(PageData, frozen=True):
    """The last requests that pass the filter at the time `at`, newest first. `held` are those that were looked through;
    `store_failure` is why those of other machines are missing."""

    at: float
    requests: tuple[RecentRequest, ...]
    held: int
    filter: RequestFilter
    choices: FilterChoices
    store_failure: str | None


async def _data(context: AdminContext, query: Query) -> RequestsPage:
    chosen = RequestFilter(**{name: query.get(name, "") for name in RequestFilter.__struct_fields__})
    _check_status(chosen.status)
    cluster = context.service.cluster
    held = (await cluster.recent()).requests
    return RequestsPage(
        context.clock.now(),
        tuple(_shown(request) for request in held if _passes(request, chosen)),
        len(held),
        chosen,
        FilterChoices(
            key=_values(held, lambda request: request.key or NONE),
            status=_statuses(held),
            route=_values(held, lambda request: request.route),
            cache=_values(held, lambda request: request.cache or NONE),
        ),
        cluster.store_failure,
    )


def _check_status(status: str) -> None:
    if status and not (len(status) == 3 and status[0] in "12345" and (status[1:] == "xx" or status.isdecimal())):
        raise errors.BadRequest("status must be a status or a class of them, such as 404 or 4xx")


def _passes(request: RequestRecord, chosen: RequestFilter) -> bool:
    status = str(request.status)
    return (
        chosen.key in ("", request.key or NONE)
        and chosen.status in ("", status, f"{status[0]}xx")
        and chosen.route in ("", request.route)
        and chosen.cache in ("", request.cache or NONE)
    )


def _values(requests: list[RequestRecord], value: Callable[[RequestRecord], str]) -> tuple[str, ...]:
    return tuple(sorted({value(request) for request in requests}))


def _statuses(requests: list[RequestRecord]) -> tuple[str, ...]:
    """Return the classes of the statuses, each followed by its statuses."""
    return tuple(
        sorted(
            {text for request in requests for text in (f"{request.status // 100}xx", str(request.status))},
            key=_class_first,
        )
    )


# "4xx" stands before 403: the class is chosen more often than one of its statuses.
def _class_first(status: str) -> tuple[str, bool, str]:
    return status[0], not status.endswith("xx"), status


def _shown(request: RequestRecord) -> RecentRequest:
    is_explained = request.method == "GET" and request.key is not None
    query = {"request": request.target, "application": f"{request.application}/{request.key}"}
    explain = f"/explain?{urlencode(query, quote_via=quote)}" if is_explained else None
    return RecentRequest(**msgspec.structs.asdict(request), explain=explain)


PAGE = AdminPage(
    "requests",
    "Requests",
    "The last v3 requests of all workers and machines, without API keys.",
    RequestsPage,
    _data,
    parameters=(
        PageParameter("key", f"Name of the API key, `{NONE}` for requests without a valid one."),
        PageParameter("status", "Status or class of statuses, such as `404` or `4xx`."),
        PageParameter("route", "Path as in the metrics, such as `/v3/parts/match`."),
        PageParameter("cache", f"Where the results came from: `hit`, `shared`, `miss`, `stale` or `{NONE}`."),
    ),
)
