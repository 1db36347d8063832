"""Audit log: every action of operators, on the pages, by scripts and by commands."""

import asyncio
import csv
import io

import msgspec

from proxy import errors
from proxy.gateway import client_report
from proxy.kit.wording import rfc3339
from proxy.stores.protocols import AUDIT_MAX, AuditEntry
from proxy.web.admin.page import AdminContext, AdminPage, PageData, PageParameter, Query, whole_number

ROWS = 100  # on a page
CSV_COLUMNS = ("time", "who", "address", "action", "parameters", "result")


class AuditRow(msgspec.Struct, frozen=True):
    """An action. `at` is in seconds since 1970; `who` is a role with its session or token, or the user of a command;
    `address` that of the client, or the machine of a command."""

    at: float
    who: str
    address: str
    action: str
    parameters: str
    result: str


class AuditPage(PageData, frozen=True):
    """Actions, the last one first: the rows of `page`. `has_more`: there are earlier ones.

    `store_failure`: why the store cannot be used; no action is known then.
    """

    page: int
    has_more: bool
    entries: list[AuditRow]
    store_failure: str | None


async def _data(context: AdminContext, query: Query) -> AuditPage:
    page = whole_number(query, "page", 1, AUDIT_MAX // ROWS)
    try:
        entries = await context.service.gateway.store.audit_entries((page - 1) * ROWS, ROWS + 1)
    except errors.StoreUnavailable as error:
        return AuditPage(page, False, [], error.message)
    return AuditPage(page, len(entries) > ROWS, [AuditRow(*each) for each in entries[:ROWS]], None)


async def _csv(context: AdminContext, _: Query) -> list[bytes]:
    entries = await context.service.gateway.store.audit_entries(0, AUDIT_MAX)
    return [await asyncio.to_thread(_csv_text, entries)]


def _csv_text(entries: list[AuditEntry]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(CSV_COLUMNS)
    writer.writerows((rfc3339(each.at), *map(client_report.inert, each[1:])) for each in entries)
    return text.getvalue().encode()


PAGE = AdminPage(
    "audit",
    "Audit",
    "Every action of operators: who, when, what, from where, with its result.",
    AuditPage,
    _data,
    parameters=(PageParameter("page", f"Number of the page, of {ROWS} actions."),),
    csv=_csv,
)
