"""Comparison: results of shadowing by client and field, its switch, and the whole report."""

from collections import Counter

import msgspec

from proxy import errors
from proxy.shadow import results
from proxy.tools.compare.shadow import report
from proxy.web.admin.page import (
    ActionResult,
    AdminAction,
    AdminContext,
    AdminDocument,
    AdminPage,
    PageData,
    PageParameter,
    Query,
    RenderedDocument,
)


class ShadowedApplication(msgspec.Struct, frozen=True):
    """Application whose requests are compared: their share, 0 to 1, and which response its clients get."""

    application: str
    share: float
    response: str


class ComparisonPage(PageData, frozen=True, kw_only=True):
    """Shadowing: `configured` where the configuration samples requests, `on` as the switch says that all workers read.

    `baseline` is the address of the old service. `dropped` are the sampled requests since the start that were not
    compared, by the reason of the metric v3bridge_shadow_dropped_total. `result` is null before the first comparison,
    and where the rules cannot be read, which `problem` says. `store_failure`: why the store cannot be used; `on` and
    `result` are then null.
    """

    configured: bool
    on: bool | None
    baseline: str | None
    applications: tuple[ShadowedApplication, ...]
    dropped: dict[str, int]
    result: report.ComparisonSummary | None
    problem: str | None = None
    store_failure: str | None = None


async def _data(context: AdminContext, _: Query) -> ComparisonPage:
    gateway = context.service.gateway
    settings = gateway.settings
    shadowed = tuple(
        ShadowedApplication(name, application.shadow.share, application.shadow.response)
        for name, application in settings.applications.items()
        if application.shadow.share
    )
    is_on, result, problem, store_failure = None, None, None, None
    try:
        is_on = (await results.control(gateway.store)).on
        result = await report.read_configured(gateway.store, settings, gateway.clock)
    except errors.ConfigError as error:
        problem = error.message
    except errors.StoreUnavailable as error:
        is_on, store_failure = None, error.message
    return ComparisonPage(
        configured=bool(shadowed) and settings.shadow.enabled,
        on=is_on,
        baseline=settings.shadow.baseline_url,
        applications=shadowed,
        dropped=await _dropped(context),
        result=None if result is None else report.summarize(result),
        problem=problem,
        store_failure=store_failure,
    )


async def _dropped(context: AdminContext) -> dict[str, int]:
    cluster = context.service.cluster
    dropped: Counter[str] = Counter()
    for (_, reason), number in cluster.metrics(await cluster.instances()).shadow_dropped.items():
        dropped[reason] += int(number)
    return dict(sorted(dropped.items()))


async def _report(context: AdminContext) -> RenderedDocument:
    gateway = context.service.gateway
    result = await report.read_configured(gateway.store, gateway.settings, gateway.clock)
    if result is None:
        raise errors.NotFound("there are no results yet: no request has been compared")
    return RenderedDocument(*await report.render(result))


async def _switch(context: AdminContext, fields: Query) -> ActionResult:
    state = fields.get("state", "")
    if state not in ("on", "off"):
        raise errors.BadRequest("state is on or off")
    await results.switch(context.service.gateway.store, state == "on")
    return ActionResult(f"Shadowing is {state}: all workers follow within two seconds.")


PAGE = AdminPage(
    "comparison",
    "Comparison",
    "Results of shadowing: verdict by client and endpoint, differences by field.",
    ComparisonPage,
    _data,
)
ACTIONS = (
    AdminAction(
        "/comparison/switch",
        "comparison",
        "Switch shadowing on or off in all workers.",
        _switch,
        (PageParameter("state", "on or off", required=True),),
    ),
)
REPORT = AdminDocument("/comparison/report.html", "The whole report of the comparison, as one page.", _report)
