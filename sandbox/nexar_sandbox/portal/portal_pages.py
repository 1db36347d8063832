"""Pages for applications: list, details, and the forms that create and change them."""

import functools
import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from nexar_sandbox import applications, clocks, part_usage
from nexar_sandbox.identity import authorizations
from nexar_sandbox.portal import fields, responder
from nexar_sandbox.portal.responder import PortalRequest, Saved, Shown

PATH = f"{responder.PATH}/applications"
ONE = f"{PATH}/{{id}}"
MAX_CALLBACKS = 50
Names = tuple[str, ...]
Typed = Callable[[applications.SandboxApplication], dict[str, str]]


@dataclass(frozen=True, slots=True)
class ApplicationPages:
    """The pages, and what their forms save. `rng` must be unpredictable."""

    registry: applications.ApplicationRegistry
    part_usage: part_usage.PartUsage
    authorizations: authorizations.AuthorizationStore
    clock: clocks.Clock
    rng: random.Random

    def add_routes(self, portal: responder.PortalResponder) -> None:
        portal.add_page(responder.PATH, self._list)
        portal.add_page(f"{responder.PATH}/", self._list)
        portal.add_page(f"{PATH}/new", self._new)
        portal.add_form(f"{PATH}/new", fields.FORMS["new"].fields, self._new, self._create)
        portal.add_page(ONE, self._details)
        portal.add_form(f"{ONE}/ide", (), self._details, self._choose_for_ide)
        for name, typed, save in (
            ("edit", _current, self._change),
            ("secret", None, self._rotate),
        ):
            form = fields.FORMS[name]
            page = functools.partial(self._form, form, typed)
            portal.add_page(f"{ONE}/{name}", page)
            portal.add_form(f"{ONE}/{name}", form.fields, page, save)

    def _list(self, visit: PortalRequest) -> Shown:
        rows = [
            (application, _path(application), self._usage(application))
            for application in self.registry.of_organization(visit.organization.id)
        ]
        ide = self.registry.ide_application(visit.organization.id)
        return "applications", {"rows": rows, "ide_application": ide, "new": f"{PATH}/new"}

    def _details(self, visit: PortalRequest) -> Shown:
        application = self._application(visit)
        return "details", {
            "application": application,
            "path": _path(application),
            "flows": [label for flow, label in fields.FIELDS["flow"].choices.items() if flow in application.flows],
            "is_for_ide": self.registry.ide_application(application.organization) == application,
            "usage": self._usage(application),
        }

    def _form(self, form: fields.Form, typed: Typed | None, visit: PortalRequest) -> Shown:
        application = self._application(visit)
        values = {"form": form, "name": application.name, "back": _path(application)}
        return "form", values | ({"typed": typed(application)} if typed else {})

    def _new(self, _visit: PortalRequest) -> Shown:
        typed = {"domain-supply": "on", "plan": "evaluation"}
        return "form", {"form": fields.FORMS["new"], "name": "", "back": responder.PATH, "typed": typed}

    async def _create(
        self, visit: PortalRequest, *, name: str, description: str, domain: Names, callbacks: Names, **plan: Any
    ) -> Saved:
        _check_number(callbacks)
        user_flows = {applications.AUTHORIZATION_CODE} if "design" in domain else set()
        application = applications.SandboxApplication(
            name,
            self._guid(),
            self._guid(),
            self._secret(),
            domains=domain,
            redirect_uris=callbacks,
            flows=frozenset({applications.CLIENT_CREDENTIALS} | user_flows),
            organization=visit.organization.id,
            description=description or None,
            created=self.clock.now(),
        )
        application = _with_plan(application, **plan)
        self.registry.add(application)
        return _path(application), f"{name} was created and can request tokens now."

    async def _change(
        self, visit: PortalRequest, *, name: str, description: str, flow: Names, callbacks: Names
    ) -> Saved:
        _check_number(callbacks)
        application = replace(
            self._application(visit),
            name=name,
            description=description or None,
            flows=frozenset(flow),
            redirect_uris=callbacks,
        )
        self.registry.replace(application)
        return _path(application), "The changes are saved."

    async def _rotate(self, visit: PortalRequest) -> Saved:
        application = self._application(visit)
        self.registry.replace(replace(application, client_secret=self._secret()))
        self.authorizations.forget(application.client_id)
        return _path(application), "The secret was rotated. The old one is refused."

    async def _choose_for_ide(self, visit: PortalRequest) -> Saved:
        application = self._application(visit)
        self.registry.choose_for_ide(application.application_id)
        return _path(application), f"The IDE uses {application.name}."

    def _application(self, visit: PortalRequest) -> applications.SandboxApplication:
        application = self.registry.by_application(visit.id)
        if application is None or application.organization != visit.organization.id:
            raise responder.PortalNotFoundError("Your organization has no such application.")
        return application

    def _usage(self, application: applications.SandboxApplication) -> dict[str, Any] | None:
        """Plan, usage and limit of its period, and usage of earlier months; None without the supply domain."""
        if applications.SUPPLY_SCOPE not in application.scopes:
            return None
        used, limit = self.part_usage.used_in_period(application), self.part_usage.limit(application)
        plan = applications.plan_of(application)
        return {
            "plan": plan.name if plan else "Custom plan",
            "features": [
                name for feature, name in applications.FEATURE_NAMES.items() if feature in application.features
            ],
            "period": f"in {self.part_usage.month}" if application.period == "month" else "for a lifetime",
            "is_reset": application.period == "month",
            "used": used,
            "limit": limit,
            # The last request may have exceeded the limit.
            "left": max(limit - used, 0),
            "history": self.part_usage.history(application.application_id),
        }

    def _guid(self) -> str:
        return str(uuid.UUID(int=self.rng.getrandbits(128), version=4))

    def _secret(self) -> str:
        return self.rng.randbytes(30).hex()


def _path(application: applications.SandboxApplication) -> str:
    return f"{PATH}/{application.application_id}"


def _current(application: applications.SandboxApplication) -> dict[str, str]:
    checked = {f"flow-{flow}": "on" for flow in application.flows}
    texts = {"name": application.name, "description": application.description or ""}
    return {**texts, "callbacks": "\n".join(application.redirect_uris), **checked}


def _check_number(callbacks: Names) -> None:
    if len(callbacks) > MAX_CALLBACKS:
        raise fields.MistakeError("callbacks", f"An application has {MAX_CALLBACKS} callback URLs at most.")


def _with_plan(
    application: applications.SandboxApplication, plan: str, add_on: Names, parts: str
) -> applications.SandboxApplication:
    try:
        return applications.with_plan(application, plan, add_on, int(parts) if parts else None)
    except ValueError as error:
        raise fields.MistakeError("add-on", str(error)) from error
