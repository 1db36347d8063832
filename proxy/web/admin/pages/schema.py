"""Schema: the last comparison of the upstream's schema with what the mappings read, and what drifted."""

from proxy import errors
from proxy.alerts import schema_check
from proxy.kit.wording import counted
from proxy.mapping import drift
from proxy.web.admin.page import ActionResult, AdminAction, AdminContext, AdminPage, PageData, Query


class SchemaPage(PageData, frozen=True):
    """State of the schema: `never` checked, `complete`, `drift`, or `unknown` where no check could compare.

    Times are in seconds since 1970: of the last check, and of the last that compared, on `machine`. `failure`: why the
    last check did not compare. `hours` between two checks, 0: off. `fields` that the mappings read. `is_current`: the
    result is of the mappings that this process runs with. `affected`: all v3 fields and endpoints of the differences.
    `store_failure`: why the store cannot be used; the result is then the last that the worker that responds knows.
    """

    state: schema_check.State
    attempted: float | None
    compared: float | None
    machine: str | None
    failure: str
    hours: float
    fields: int
    is_current: bool
    differences: tuple[drift.Drift, ...]
    affected: tuple[str, ...]
    store_failure: str | None


async def _data(context: AdminContext, _: Query) -> SchemaPage:
    gateway, store_failure = context.service.gateway, None
    try:
        report = await schema_check.stored_report(gateway)
    except errors.StoreUnavailable as error:
        report, store_failure = context.service.alerts.schema.report, error.message
    hours = gateway.settings.schema_check.hours
    if report is None:
        return SchemaPage("never", None, None, None, "", hours, 0, True, (), (), store_failure)
    return SchemaPage(
        state=report.state,
        attempted=report.attempted,
        compared=report.compared,
        machine=report.machine,
        failure=report.failure,
        hours=hours,
        fields=report.fields,
        is_current=report.expected == context.service.alerts.schema.expected,
        differences=report.drifts,
        affected=tuple(dict.fromkeys(name for drifted in report.drifts for name in drifted.affected)),
        store_failure=store_failure,
    )


async def _check(context: AdminContext, _: Query) -> ActionResult:
    report = await context.service.alerts.schema.check()
    if report.failure:
        return ActionResult(f"The schema could not be compared: {report.failure}")
    if not report.drifts:
        return ActionResult(f"The schema has all {report.fields} fields that the mappings read.")
    return ActionResult(f"The schema differs in {counted(len(report.drifts), 'place')} from what the mappings read.")


PAGE = AdminPage(
    "schema",
    "Schema",
    "The upstream's schema, beside what the mappings read.",
    SchemaPage,
    _data,
)
CHECK = AdminAction("/schema/check", "schema", "Compare the upstream's schema now. Costs no parts.", _check)
