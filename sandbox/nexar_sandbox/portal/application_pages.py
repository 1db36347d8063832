"""Pages for applications: list, creation, details, editing and deletion."""

import random
import uuid
from dataclasses import replace
from typing import Any

from aiohttp import web

from nexar_sandbox import applications, part_usage, plans
from nexar_sandbox.identity import authorizations
from nexar_sandbox.kit import clock as clocks
from nexar_sandbox.portal import form_input, formatting, requests

PATH = f"{requests.PATH}/applications"
APPLICATION_PATH = f"{PATH}/{{id}}"
# Initial values of the form for a new application.
INITIAL_FORM = {"domain-supply": "on", "plan": "evaluation"}


def details_path(application: applications.SandboxApplication) -> str:
    """Path of the details page."""
    return f"{PATH}/{application.application_id}"


def requested_application(
    request: requests.PortalRequest, registry: applications.ApplicationRegistry
) -> applications.SandboxApplication:
    """The application in the path. Raises PortalNotFoundError unless it belongs to the organisation."""
    application = registry.by_application(request.named("id"))
    if application is None or application.organisation != request.organisation.id:
        raise requests.PortalNotFoundError("Your organisation has no such application.")
    return application


def new_secret(rng: random.Random) -> str:
    """A client secret of 240 bits."""
    return rng.randbytes(30).hex()


class ApplicationPages:
    """Handlers of the pages. `rng` must be unpredictable."""

    def __init__(
        self,
        *,
        responder: requests.PortalResponder,
        registry: applications.ApplicationRegistry,
        usage: part_usage.PartUsage,
        authorizations: authorizations.AuthorizationStore,
        clock: clocks.Clock,
        rng: random.Random,
    ) -> None:
        self._responder, self._registry, self._part_usage, self._authorizations = (
            responder,
            registry,
            usage,
            authorizations,
        )
        self._clock, self._rng = clock, rng

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Pages by GET, changes by POST."""
        open_page = self._responder.open
        router.add_get(requests.PATH, open_page(self.list))
        router.add_get(f"{requests.PATH}/", open_page(self.list))
        router.add_get(f"{PATH}/new", open_page(self.form))
        router.add_post(f"{PATH}/new", open_page(self.create))
        router.add_get(APPLICATION_PATH, open_page(self.details))
        router.add_get(f"{APPLICATION_PATH}/edit", open_page(self.edit))
        router.add_post(f"{APPLICATION_PATH}/edit", open_page(self.change))
        router.add_get(f"{APPLICATION_PATH}/delete", open_page(self.confirm))
        router.add_post(f"{APPLICATION_PATH}/delete", open_page(self.delete))

    async def list(self, request: requests.PortalRequest) -> web.Response:
        """List the organisation's applications."""
        id_ = request.organisation.id
        rows = [
            (application, details_path(application), self._usage(application))
            for application in self._registry.of_organisation(id_)
        ]
        ide = self._registry.ide_application(id_)
        return self._responder.show(request, "applications", rows=rows, ide_application=ide, new=f"{PATH}/new")

    async def form(self, request: requests.PortalRequest) -> web.Response:
        """Form for a new application."""
        return self._new(request, form_input.FormInput(INITIAL_FORM))

    async def create(self, request: requests.PortalRequest) -> web.Response:
        """Create an application."""
        fields = form_input.FormInput(request.form)
        name, description = self._words(fields)
        domains, (plan, add_ons, parts) = fields.domains(), fields.plan()
        callbacks = fields.addresses("callbacks")
        if fields.mistakes:
            return self._new(request, fields)
        flows = {applications.CLIENT_CREDENTIALS} | (
            {applications.AUTHORIZATION_CODE} if "design" in domains else set()
        )
        application = applications.SandboxApplication(
            name,
            self._guid(),
            self._guid(),
            new_secret(self._rng),
            domains=domains,
            redirect_uris=callbacks,
            flows=frozenset(flows),
            organisation=request.organisation.id,
            description=description or None,
            created=self._clock.now(),
        )
        application = plans.with_plan(application, plan, add_ons, parts)
        self._registry.add(application)
        return self._responder.go(request, details_path(application), f"{name} was created and can request tokens now.")

    async def details(self, request: requests.PortalRequest) -> web.Response:
        """Details of an application."""
        application = requested_application(request, self._registry)
        return self._responder.show(request, "details", **self.template_values(application), mistakes={}, typed="")

    def template_values(self, application: applications.SandboxApplication) -> dict[str, Any]:
        """Template values of the details page."""
        return {
            "application": application,
            "path": details_path(application),
            "created": formatting.format_date(application.created),
            "flows": [words for flow, words in form_input.FLOWS.items() if flow in application.flows],
            "is_for_ide": self._registry.ide_application(application.organisation) == application,
            "usage": self._usage(application),
        }

    async def edit(self, request: requests.PortalRequest) -> web.Response:
        """Form with the current name, description and grant types."""
        application = requested_application(request, self._registry)
        ticked = {f"flow-{flow}": "on" for flow in application.flows}
        typed = {"name": application.name, "description": application.description or "", **ticked}
        return self._edit(request, application, form_input.FormInput(typed))

    async def change(self, request: requests.PortalRequest) -> web.Response:
        """Save name, description and grant types. Domains cannot be changed."""
        application, fields = requested_application(request, self._registry), form_input.FormInput(request.form)
        name, description = self._words(fields)
        flows = fields.flows()
        if fields.mistakes:
            return self._edit(request, application, fields)
        self._registry.replace(replace(application, name=name, description=description or None, flows=flows))
        return self._responder.go(request, details_path(application), "The changes are saved.")

    async def confirm(self, request: requests.PortalRequest) -> web.Response:
        """Page that confirms the deletion."""
        application = requested_application(request, self._registry)
        return self._responder.show(request, "delete", application=application, path=details_path(application))

    async def delete(self, request: requests.PortalRequest) -> web.Response:
        """Delete the application and invalidate its tokens."""
        application = requested_application(request, self._registry)
        self._registry.remove(application.application_id)
        self._authorizations.forget(application.client_id)
        return self._responder.go(request, requests.PATH, f"{application.name} is deleted.")

    def _usage(self, application: applications.SandboxApplication) -> formatting.UsageSummary | None:
        return formatting.usage_summary(application, self._part_usage)

    def _new(self, request: requests.PortalRequest, fields: form_input.FormInput) -> web.Response:
        return self._responder.show_form(
            request,
            "new_application",
            fields,
            domains=form_input.DOMAINS,
            plans=plans.PLANS.values(),
            add_ons=plans.ADD_ONS,
            action=f"{PATH}/new",
        )

    def _edit(
        self,
        request: requests.PortalRequest,
        application: applications.SandboxApplication,
        fields: form_input.FormInput,
    ) -> web.Response:
        return self._responder.show_form(
            request,
            "edit_application",
            fields,
            application=application,
            flows=form_input.FLOWS,
            path=details_path(application),
        )

    @staticmethod
    def _words(fields: form_input.FormInput) -> tuple[str, str]:
        description = fields.line("description", "The description", needed=False, longest=form_input.TEXT_LENGTH)
        return fields.line("name", "The name"), description

    def _guid(self) -> str:
        return str(uuid.UUID(int=self._rng.getrandbits(128), version=4))
