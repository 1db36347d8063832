"""Changes of an application's secret, callback URLs, plan and use by the IDE. Others are in `application_pages.py`."""

import random
from dataclasses import replace

from aiohttp import web

from nexar_sandbox import applications, plans
from nexar_sandbox.identity import authorizations
from nexar_sandbox.portal import application_pages, form_input, requests

ONE = application_pages.APPLICATION_PATH


class ApplicationChanges:
    """Handlers of the changes. `rng` must be unpredictable."""

    def __init__(
        self,
        *,
        responder: requests.PortalResponder,
        registry: applications.ApplicationRegistry,
        authorizations: authorizations.AuthorizationStore,
        details: application_pages.ApplicationPages,
        rng: random.Random,
    ) -> None:
        self._responder, self._registry, self._authorizations, self._details, self._rng = (
            responder,
            registry,
            authorizations,
            details,
            rng,
        )

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Pages by GET, changes by POST."""
        open_page = self._responder.open
        router.add_get(f"{ONE}/secret", open_page(self.confirm))
        router.add_post(f"{ONE}/secret", open_page(self.rotate))
        router.add_post(f"{ONE}/callbacks", open_page(self.add_callback))
        router.add_post(f"{ONE}/callbacks/remove", open_page(self.remove_callback))
        router.add_post(f"{ONE}/ide", open_page(self.choose_for_ide))
        router.add_get(f"{ONE}/plan", open_page(self.form))
        router.add_post(f"{ONE}/plan", open_page(self.change_plan))

    async def confirm(self, request: requests.PortalRequest) -> web.Response:
        """Page that confirms the rotation."""
        application = application_pages.requested_application(request, self._registry)
        return self._responder.show(
            request, "rotate", application=application, path=application_pages.details_path(application)
        )

    async def rotate(self, request: requests.PortalRequest) -> web.Response:
        """Rotate the secret. The old one is refused, and codes and refresh tokens are revoked."""
        application = application_pages.requested_application(request, self._registry)
        self._registry.replace(replace(application, client_secret=application_pages.new_secret(self._rng)))
        self._authorizations.forget(application.client_id)
        return self._back(request, application, "The secret was rotated. The old one is refused.")

    async def add_callback(self, request: requests.PortalRequest) -> web.Response:
        """Add a callback URL."""
        application, fields = (
            application_pages.requested_application(request, self._registry),
            form_input.FormInput(request.form),
        )
        address = fields.address("callback", application.redirect_uris)
        if fields.mistakes:
            details = self._details.template_values(application)
            return self._responder.show(
                request, "details", status=400, **details, mistakes=fields.mistakes, typed=address
            )
        self._registry.replace(replace(application, redirect_uris=(*application.redirect_uris, address)))
        return self._back(request, application, f"Callback URL {address} was added.")

    async def remove_callback(self, request: requests.PortalRequest) -> web.Response:
        """Remove a callback URL if it exists."""
        application, address = (
            application_pages.requested_application(request, self._registry),
            request.text("callback"),
        )
        remaining = tuple(uri for uri in application.redirect_uris if uri != address)
        self._registry.replace(replace(application, redirect_uris=remaining))
        return self._back(request, application, f"Callback URL {address} was removed.")

    async def choose_for_ide(self, request: requests.PortalRequest) -> web.Response:
        """The IDE uses this one."""
        application = application_pages.requested_application(request, self._registry)
        self._registry.choose_for_ide(application.application_id)
        return self._back(request, application, f"The IDE uses {application.name}.")

    async def form(self, request: requests.PortalRequest) -> web.Response:
        """Form with the current plan."""
        application = self._with_parts(request)
        plan = plans.plan_of(application)
        own = "" if plan is not None and plan.parts == application.part_limit else str(application.part_limit)
        ticked = plans.ADD_ONS if plan is not None and plan.has_add_ons else {}
        boxes = {f"add-on-{feature}": "on" for feature in ticked if feature in application.features}
        return self._plan(
            request, application, form_input.FormInput({"plan": plan.key if plan else "", "parts": own, **boxes})
        )

    async def change_plan(self, request: requests.PortalRequest) -> web.Response:
        """Change plan, limit and features. This month's usage is kept."""
        application, fields = self._with_parts(request), form_input.FormInput(request.form)
        plan, add_ons, parts = fields.plan()
        if fields.mistakes:
            return self._plan(request, application, fields)
        self._registry.replace(plans.with_plan(application, plan, add_ons, parts))
        return self._back(request, application, f"{application.name} is on {plan.name}.")

    def _with_parts(self, request: requests.PortalRequest) -> applications.SandboxApplication:
        application = application_pages.requested_application(request, self._registry)
        if applications.SUPPLY_SCOPE not in application.scopes:
            raise requests.PortalNotFoundError(f"{application.name} has no supply domain, so it has no plan.")
        return application

    def _plan(
        self,
        request: requests.PortalRequest,
        application: applications.SandboxApplication,
        fields: form_input.FormInput,
    ) -> web.Response:
        return self._responder.show_form(
            request,
            "plan",
            fields,
            **self._details.template_values(application),
            plans=plans.PLANS.values(),
            add_ons=plans.ADD_ONS,
        )

    def _back(
        self, request: requests.PortalRequest, application: applications.SandboxApplication, notice: str
    ) -> web.Response:
        return self._responder.go(request, application_pages.details_path(application), notice)
