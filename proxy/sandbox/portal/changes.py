"""What can be changed about an application by itself: its secret, its callback URLs, its plan, and whether the IDE uses
it. The rest is in `application_pages.py`.
"""

import random
from dataclasses import replace

from aiohttp import web

from proxy.sandbox import applications, plans
from proxy.sandbox.identity import authorisations
from proxy.sandbox.portal import application_pages, reading, visits

ONE = application_pages.ONE


class Changes:
    """The handlers. `rng` must not be foreseeable."""

    def __init__(
        self,
        *,
        desk: visits.Desk,
        known: applications.ApplicationRegistry,
        allowed: authorisations.Authorisations,
        beside: application_pages.Applications,
        rng: random.Random,
    ) -> None:
        self._desk, self._known, self._allowed, self._beside, self._rng = desk, known, allowed, beside, rng

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Pages by GET, changes by POST."""
        opened = self._desk.open
        router.add_get(f"{ONE}/secret", opened(self.confirm))
        router.add_post(f"{ONE}/secret", opened(self.rotate))
        router.add_post(f"{ONE}/callbacks", opened(self.add_callback))
        router.add_post(f"{ONE}/callbacks/remove", opened(self.remove_callback))
        router.add_post(f"{ONE}/ide", opened(self.choose_for_ide))
        router.add_get(f"{ONE}/plan", opened(self.form))
        router.add_post(f"{ONE}/plan", opened(self.change_plan))

    async def confirm(self, visit: visits.Visit) -> web.Response:
        """Asks whether to change the secret."""
        account = application_pages.found(visit, self._known)
        return self._desk.show(visit, "rotate", account=account, path=application_pages.path_of(account))

    async def rotate(self, visit: visits.Visit) -> web.Response:
        """Another secret. The old one, and codes and refresh tokens that were sent with it, are no longer taken."""
        account = application_pages.found(visit, self._known)
        self._known.replace(replace(account, client_secret=application_pages.new_secret(self._rng)))
        self._allowed.forget(account.client_id)
        return self._back(visit, account, "There is a new secret. The old one is no longer taken.")

    async def add_callback(self, visit: visits.Visit) -> web.Response:
        """One more address to which browsers may be sent."""
        account, read = application_pages.found(visit, self._known), reading.Read(visit.form)
        address = read.address("callback", account.redirect_uris)
        if read.mistakes:
            shown = self._beside.shown(account)
            return self._desk.show(visit, "details", status=400, **shown, mistakes=read.mistakes, typed=address)
        self._known.replace(replace(account, redirect_uris=(*account.redirect_uris, address)))
        return self._back(visit, account, f"Browsers may be sent to {address}.")

    async def remove_callback(self, visit: visits.Visit) -> web.Response:
        """One address less; what is not there is gone already."""
        account, address = application_pages.found(visit, self._known), visit.text("callback")
        left = tuple(uri for uri in account.redirect_uris if uri != address)
        self._known.replace(replace(account, redirect_uris=left))
        return self._back(visit, account, f"Browsers are no longer sent to {address}.")

    async def choose_for_ide(self, visit: visits.Visit) -> web.Response:
        """The IDE authorises with this one."""
        account = application_pages.found(visit, self._known)
        self._known.choose_for_ide(account.application_id)
        return self._back(visit, account, f"The IDE authorises with {account.name}.")

    async def form(self, visit: visits.Visit) -> web.Response:
        """The plan as it is."""
        account = self._with_parts(visit)
        plan = plans.plan_of(account)
        own = "" if plan is not None and plan.parts == account.part_limit else str(account.part_limit)
        ticked = plans.ADD_ONS if plan is not None and plan.has_add_ons else {}
        boxes = {f"add-on-{feature}": "on" for feature in ticked if feature in account.features}
        return self._plan(visit, account, reading.Read({"plan": plan.key if plan else "", "parts": own, **boxes}))

    async def change_plan(self, visit: visits.Visit) -> web.Response:
        """Another limit and other features, from now on; what was used this month stays used."""
        account, read = self._with_parts(visit), reading.Read(visit.form)
        plan, add_ons, parts = read.plan()
        if read.mistakes:
            return self._plan(visit, account, read)
        self._known.replace(plans.with_plan(account, plan, add_ons, parts))
        return self._back(visit, account, f"{account.name} is on {plan.name}.")

    def _with_parts(self, visit: visits.Visit) -> applications.SandboxApplication:
        account = application_pages.found(visit, self._known)
        if applications.SUPPLY_SCOPE not in account.scopes:
            raise visits.AbsentError(f"{account.name} has no supply data, and so no plan.")
        return account

    def _plan(self, visit: visits.Visit, account: applications.SandboxApplication, read: reading.Read) -> web.Response:
        return self._desk.show(
            visit,
            "plan",
            status=400 if read.mistakes else 200,
            **self._beside.shown(account),
            typed=read.form,
            mistakes=read.mistakes,
            plans=plans.PLANS.values(),
            add_ons=plans.ADD_ONS,
        )

    def _back(self, visit: visits.Visit, account: applications.SandboxApplication, said: str) -> web.Response:
        return self._desk.go(visit, application_pages.path_of(account), said)
