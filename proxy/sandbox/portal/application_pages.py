"""The organisation's applications: the list, a new one, its details, its name and flows, its end."""

import random
import uuid
from dataclasses import replace
from typing import Any

from aiohttp import web

from proxy.kit import clock as clocks
from proxy.sandbox import applications, part_usage, plans
from proxy.sandbox.identity import authorisations
from proxy.sandbox.portal import figures, reading, visits

PATH = f"{visits.PATH}/applications"
ONE = f"{PATH}/{{id}}"
# What is ticked in a form that nobody has filled in yet.
UNTOUCHED = {"domain-supply": "on", "plan": "evaluation"}


def path_of(account: applications.SandboxApplication) -> str:
    """Its details."""
    return f"{PATH}/{account.application_id}"


def found(visit: visits.Visit, known: applications.ApplicationRegistry) -> applications.SandboxApplication:
    """The application in the path. Raises AbsentError unless it is the organisation's own."""
    account = known.by_application(visit.named("id"))
    if account is None or account.organisation != visit.organisation.id:
        raise visits.AbsentError("Your organisation has no such application.")
    return account


def new_secret(rng: random.Random) -> str:
    """A client secret of 240 bits."""
    return rng.randbytes(30).hex()


class Applications:
    """The handlers. `rng` must not be foreseeable."""

    def __init__(
        self,
        *,
        desk: visits.Desk,
        known: applications.ApplicationRegistry,
        counted: part_usage.PartUsage,
        allowed: authorisations.Authorisations,
        clock: clocks.Clock,
        rng: random.Random,
    ) -> None:
        self._desk, self._known, self._counted, self._allowed = desk, known, counted, allowed
        self._clock, self._rng = clock, rng

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Pages by GET, changes by POST."""
        opened = self._desk.open
        router.add_get(visits.PATH, opened(self.list))
        router.add_get(f"{visits.PATH}/", opened(self.list))
        router.add_get(f"{PATH}/new", opened(self.form))
        router.add_post(f"{PATH}/new", opened(self.create))
        router.add_get(ONE, opened(self.details))
        router.add_get(f"{ONE}/edit", opened(self.edit))
        router.add_post(f"{ONE}/edit", opened(self.change))
        router.add_get(f"{ONE}/delete", opened(self.confirm))
        router.add_post(f"{ONE}/delete", opened(self.delete))

    async def list(self, visit: visits.Visit) -> web.Response:
        """All of the organisation's."""
        id_ = visit.organisation.id
        rows = [(account, path_of(account), self._usage(account)) for account in self._known.of_organisation(id_)]
        ide = self._known.ide_application(id_)
        return self._desk.show(visit, "applications", rows=rows, ide_application=ide, new=f"{PATH}/new")

    async def form(self, visit: visits.Visit) -> web.Response:
        """For a new one."""
        return self._new(visit, reading.Read(UNTOUCHED))

    async def create(self, visit: visits.Visit) -> web.Response:
        """It may ask for tokens at once."""
        read = reading.Read(visit.form)
        name, description = self._words(read)
        domains, (plan, add_ons, parts) = read.domains(), read.plan()
        callbacks = read.addresses("callbacks")
        if read.mistakes:
            return self._new(visit, read)
        flows = {applications.CLIENT_CREDENTIALS} | (
            {applications.AUTHORIZATION_CODE} if "design" in domains else set()
        )
        account = applications.SandboxApplication(
            name,
            self._guid(),
            self._guid(),
            new_secret(self._rng),
            domains=domains,
            redirect_uris=callbacks,
            flows=frozenset(flows),
            organisation=visit.organisation.id,
            description=description or None,
            created=self._clock.now(),
        )
        account = plans.with_plan(account, plan, add_ons, parts)
        self._known.add(account)
        return self._desk.go(visit, path_of(account), f"{name} is there. It may ask for tokens now.")

    async def details(self, visit: visits.Visit) -> web.Response:
        """Everything about one."""
        account = found(visit, self._known)
        return self._desk.show(visit, "details", **self.shown(account), mistakes={}, typed="")

    def shown(self, account: applications.SandboxApplication) -> dict[str, Any]:
        """What its details page says."""
        return {
            "account": account,
            "path": path_of(account),
            "created": figures.day(account.created),
            "flows": [words for flow, words in reading.FLOWS.items() if flow in account.flows],
            "is_for_ide": self._known.ide_application(account.organisation) == account,
            "usage": self._usage(account),
        }

    async def edit(self, visit: visits.Visit) -> web.Response:
        """Its name, its description and its flows as they are."""
        account = found(visit, self._known)
        ticked = {f"flow-{flow}": "on" for flow in account.flows}
        typed = {"name": account.name, "description": account.description or "", **ticked}
        return self._edit(visit, account, reading.Read(typed))

    async def change(self, visit: visits.Visit) -> web.Response:
        """As they are wanted. Its domains stay: they are chosen once."""
        account, read = found(visit, self._known), reading.Read(visit.form)
        name, description = self._words(read)
        flows = read.flows()
        if read.mistakes:
            return self._edit(visit, account, read)
        self._known.replace(replace(account, name=name, description=description or None, flows=flows))
        return self._desk.go(visit, path_of(account), "The changes are saved.")

    async def confirm(self, visit: visits.Visit) -> web.Response:
        """Asks whether to delete it."""
        account = found(visit, self._known)
        return self._desk.show(visit, "delete", account=account, path=path_of(account))

    async def delete(self, visit: visits.Visit) -> web.Response:
        """It gets no more tokens, and those that it has are worth nothing."""
        account = found(visit, self._known)
        self._known.remove(account.application_id)
        self._allowed.forget(account.client_id)
        return self._desk.go(visit, visits.PATH, f"{account.name} is deleted.")

    def _usage(self, account: applications.SandboxApplication) -> figures.Usage | None:
        return figures.usage(account, self._counted)

    def _new(self, visit: visits.Visit, read: reading.Read) -> web.Response:
        return self._desk.show(
            visit,
            "new_application",
            status=400 if read.mistakes else 200,
            typed=read.form,
            mistakes=read.mistakes,
            domains=reading.DOMAINS,
            plans=plans.PLANS.values(),
            add_ons=plans.ADD_ONS,
            action=f"{PATH}/new",
        )

    def _edit(self, visit: visits.Visit, account: applications.SandboxApplication, read: reading.Read) -> web.Response:
        return self._desk.show(
            visit,
            "edit_application",
            status=400 if read.mistakes else 200,
            account=account,
            typed=read.form,
            mistakes=read.mistakes,
            flows=reading.FLOWS,
            path=path_of(account),
        )

    @staticmethod
    def _words(read: reading.Read) -> tuple[str, str]:
        description = read.line("description", "The description", needed=False, longest=reading.TEXT_LENGTH)
        return read.line("name", "The name"), description

    def _guid(self) -> str:
        return str(uuid.UUID(int=self._rng.getrandbits(128), version=4))
