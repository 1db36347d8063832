"""API keys: those of the configuration, and those that programs send and no application has."""

from proxy import errors
from proxy.gateway import key_report
from proxy.gateway.key_report import ApiKeyRow, UnknownKeyRow
from proxy.web.admin.page import AdminContext, AdminPage, PageData, Query


class KeysPage(PageData, frozen=True):
    """API keys of every application, and unknown ones, the last one first.

    `recording` is false where `clients.days` is 0, so that none are unknown. `store_failure`: why the store cannot be
    used; no unknown key is known then.
    """

    keys: list[ApiKeyRow]
    unknown: list[UnknownKeyRow]
    recording: bool
    store_failure: str | None


async def _data(context: AdminContext, _: Query) -> KeysPage:
    gateway = context.service.gateway
    applications, failure = gateway.settings.applications, None
    try:
        unknown = key_report.unknown_rows(await key_report.unknown_keys(gateway.store, applications))
    except errors.StoreUnavailable as error:
        unknown, failure = [], error.message
    rows = key_report.configured_keys(applications, context.clock.now())
    return KeysPage(rows, unknown, bool(gateway.settings.clients.days), failure)


PAGE = AdminPage(
    "keys",
    "API keys",
    "API keys of every application, and those that programs send and no application has.",
    KeysPage,
    _data,
)
