"""Audit log of the admin interface: who did what, from where, and with which result."""

import hashlib
from collections.abc import Mapping

import structlog
from aiohttp import web

from proxy import errors
from proxy.kit.wording import printable
from proxy.stores.protocols import AuditEntry
from proxy.web.admin import guard
from proxy.web.admin.page import AdminContext

VALUE_MAX = 100  # characters of a parameter
RESULT_MAX = 500

log = structlog.get_logger()


class AuditLog:
    """Records actions in the store; those that it cannot take are in the log."""

    def __init__(self, context: AdminContext, guarded: guard.Guard) -> None:
        self._context = context
        self._guard = guarded

    def address(self, request: web.Request) -> str:
        return self._guard.transport.addresses.from_request(request).address

    async def record(
        self, request: web.Request, who: str, result: str, fields: Mapping[str, str] | None = None
    ) -> None:
        """Add an entry for a request. API keys in its parameters are hidden."""
        gateway = self._context.service.gateway
        given = " ".join(
            f"{name}={'…' if gateway.applications.is_key(value) else printable(value[:VALUE_MAX])}"
            for name, value in (fields or {}).items()
            if value
        )
        address, action = self.address(request), request.path
        entry = AuditEntry(self._context.clock.now(), who, address, action, given, result[:RESULT_MAX])
        try:
            await gateway.store.add_audit_entry(entry)
        except errors.StoreUnavailable as error:
            log.error("audit entry lost", who=who, address=address, action=action, reason=error.message)


def who(request: web.Request) -> str:
    """Return the role of a request, with the person's name if it is known, and with its session or its token."""
    cookie = request.cookies.get(guard.COOKIE, "") if guard.CSRF in request else ""
    return named(request[guard.ROLE], cookie, request.get(guard.NAME, ""))


def named(role: str, cookie: str, name: str = "") -> str:
    shown = f"{role} {name}".strip()
    # A digest: whoever reads it cannot use the session.
    return f"{shown}, session {hashlib.sha256(cookie.encode()).hexdigest()[:8]}" if cookie else f"{shown}, token"
