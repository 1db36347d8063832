"""API keys: those of the configuration, changed in its file, and those that programs send and no application has."""

import os
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import TypeVar

from proxy import config, errors
from proxy.config import key_changes, own_file
from proxy.config.key_changes import KeyChange
from proxy.gateway import key_report
from proxy.gateway.key_report import ApiKeyRow, UnknownKeyRow
from proxy.kit import daemon_thread
from proxy.web.admin.page import ActionResult, AdminAction, AdminContext, AdminPage, PageData, PageParameter, Query

T = TypeVar("T")

FILE_SECONDS = 5.0  # in which the configuration is read and written


class KeysPage(PageData, frozen=True, kw_only=True):
    """API keys of every application, and unknown ones, the last one first.

    `recording` is false where `clients.days` is 0, so that none are unknown. `store_failure`: why the store cannot be
    used; no unknown key is known then. `managed`: why changes are not written; null where they are.
    """

    keys: list[ApiKeyRow]
    unknown: list[UnknownKeyRow]
    applications: list[str]
    recording: bool
    store_failure: str | None
    managed: str | None


async def _data(context: AdminContext, _: Query) -> KeysPage:
    gateway = context.service.gateway
    applications, failure = gateway.settings.applications, None
    try:
        unknown = key_report.unknown_rows(await key_report.unknown_keys(gateway.store, applications))
    except errors.StoreUnavailable as error:
        unknown, failure = [], error.message
    return KeysPage(
        keys=key_report.configured_keys(applications, context.clock.now()),
        unknown=unknown,
        applications=list(applications),
        recording=bool(gateway.settings.clients.days),
        store_failure=failure,
        managed=await _in_thread(lambda: _managed(context)),
    )


def _managed(context: AdminContext) -> str | None:
    origin = context.service.origin
    try:
        return "there is no configuration file" if origin is None else own_file.managed(origin.file)
    except errors.ConfigError as error:
        return error.message


async def _add(context: AdminContext, fields: Query) -> ActionResult:
    application, name, unknown = (fields.get(field, "").strip() for field in ("application", "name", "unknown"))
    made = None if unknown else key_changes.new_key()
    digest = config.digest(made) if made else await _unknown_digest(context, unknown)
    key = config.ApiKeySettings(digest, name=name, expires=_day(fields))
    done = f"{application}/{name} is added"
    return await _change(context, lambda settings: key_changes.adding(settings, application, key), done, made)


async def _lines(context: AdminContext, fields: Query) -> ActionResult:
    """Return the lines that add an unknown key."""
    application, name = fields.get("application", ""), fields.get("name", "").strip()
    digest = await _unknown_digest(context, fields.get("unknown", ""))
    key, settings = config.ApiKeySettings(digest, name=name, expires=_day(fields)), context.service.gateway.settings
    change = key_changes.adding(settings, application, key)
    return ActionResult("Paste this into the configuration, and reload it:", change.lines(settings))


async def _rotate(context: AdminContext, fields: Query) -> ActionResult:
    application, name = _named(fields)
    made = key_changes.new_key()
    last_day = _day(fields) or _today(context) + timedelta(key_changes.GRACE_DAYS)

    def change(settings: config.Config) -> KeyChange:
        digest, new_name = config.digest(made), fields.get("name", "").strip()
        return key_changes.rotating(settings, application, name, digest=digest, new_name=new_name, last_day=last_day)

    return await _change(context, change, f"{application}/{name} works until {last_day}, and has a successor", made)


async def _expire(context: AdminContext, fields: Query) -> ActionResult:
    application, name = _named(fields)
    last_day = _day(fields)
    done = f"{application}/{name} " + ("has no last day" if last_day is None else f"works until {last_day}")
    return await _change(context, lambda settings: key_changes.ending(settings, application, name, last_day), done)


async def _disable(context: AdminContext, fields: Query) -> ActionResult:
    application, name = _named(fields)
    yesterday = _today(context) - timedelta(1)
    done = f"{application}/{name} is disabled"
    return await _change(context, lambda settings: key_changes.ending(settings, application, name, yesterday), done)


async def _change(
    context: AdminContext, change: Callable[[config.Config], KeyChange], done: str, made: str | None = None
) -> ActionResult:
    """Change the file, and reload it; or return what to paste. `made` is a new key."""
    service = context.service
    if service.origin is None or service.reload is None:
        raise errors.BadRequest("this service has no configuration file that could be changed")
    file, new_key = service.origin.file, f"The new API key, which is shown only here: {made}" if made else ""

    def write() -> tuple[KeyChange, own_file.ManagedElsewhere | None]:
        settings = own_file.load(file, os.environ)
        wanted = change(settings)
        try:
            own_file.write(file, wanted, settings, os.environ)
        except own_file.ManagedElsewhere as error:
            return wanted, error
        return wanted, None

    try:
        wanted, refusal = await _in_thread(write)
    except errors.ConfigError as error:
        raise errors.BadRequest(error.message) from error
    if refusal is not None:
        message = f"{refusal.message}. Paste this where it is managed:"
        return ActionResult(message, f"{refusal.lines}\n\n{new_key}".strip())
    result = await service.reload()
    if result.outcome == "failed":
        done += f", but the running configuration stays as it was: {result.mistakes[0]}"
    return ActionResult(f"{done.removesuffix('.')}. {wanted.note}".strip(), new_key)


async def _unknown_digest(context: AdminContext, fingerprint: str) -> config.Digest:
    gateway = context.service.gateway
    return key_report.unknown_digest(
        await key_report.unknown_keys(gateway.store, gateway.settings.applications), fingerprint.strip()
    )


def _named(fields: Query) -> tuple[str, str]:
    application, separator, name = fields.get("key", "").partition("/")
    if not separator:
        raise errors.BadRequest("key must be an application and the name of its key, such as demo/erp")
    return application, name


def _day(fields: Query) -> date | None:
    text = fields.get("expires", "").strip()
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise errors.BadRequest(f"{text!r} is not a date such as 2027-01-31") from None


def _today(context: AdminContext) -> date:
    return datetime.fromtimestamp(context.clock.now(), UTC).date()


async def _in_thread(work: Callable[[], T]) -> T:
    try:
        return await daemon_thread.call(work, FILE_SECONDS)
    except TimeoutError:
        raise errors.ServerError(
            f"the configuration was not read and written within {FILE_SECONDS:g} seconds"
        ) from None


_KEY = PageParameter("key", "Application and name of the key, such as demo/erp.", required=True)
_EXPIRES = PageParameter("expires", "Last day of service (UTC), such as 2027-01-31.")
_NEW = (
    PageParameter("application", "Name of the application.", required=True),
    PageParameter("name", "Name of the new key.", required=True),
    _EXPIRES,
)
_UNKNOWN = "Fingerprint of an unknown key"

PAGE = AdminPage(
    "keys",
    "API keys",
    "API keys of every application, and those that programs send and no application has.",
    KeysPage,
    _data,
)
ACTIONS = (
    AdminAction(
        "/keys/add",
        "keys",
        "Add an API key.",
        _add,
        (*_NEW, PageParameter("unknown", f"{_UNKNOWN}; else one is made.")),
    ),
    AdminAction(
        "/keys/lines",
        "keys",
        "Return the lines that add an unknown API key.",
        _lines,
        (*_NEW, PageParameter("unknown", f"{_UNKNOWN}.", required=True)),
    ),
    AdminAction(
        "/keys/rotate",
        "keys",
        "Add a key with the limits of another one, which ends.",
        _rotate,
        (_KEY, PageParameter("name", "Name of the new key; that of the old one with a number if omitted."), _EXPIRES),
    ),
    AdminAction("/keys/expire", "keys", "Give an API key a last day, or none.", _expire, (_KEY, _EXPIRES)),
    AdminAction("/keys/disable", "keys", "Refuse an API key from now on.", _disable, (_KEY,)),
)
