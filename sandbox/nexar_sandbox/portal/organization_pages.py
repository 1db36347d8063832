"""Page of the organization: its name and its users."""

import asyncio
import random
import uuid
from dataclasses import dataclass, replace

from nexar_sandbox import user_directory
from nexar_sandbox.kit import clock as clocks
from nexar_sandbox.portal import fields, responder
from nexar_sandbox.portal.responder import PortalRequest, Saved, Shown

PATH = responder.ORGANIZATION_PATH
REMOVE_PATH = f"{PATH}/users/{{id}}/remove"
NEW_USER = tuple(fields.FIELDS[name] for name in ("name", "email", "password"))


@dataclass(frozen=True, slots=True)
class OrganizationPages:
    """The pages, and what their forms save. `rng` must be unpredictable."""

    users: user_directory.UserDirectory
    clock: clocks.Clock
    rng: random.Random

    def add_routes(self, portal: responder.PortalResponder) -> None:
        portal.add_page(PATH, self._page)
        portal.add_form(f"{PATH}/name", (fields.FIELDS["organization"],), self._page, self._rename)
        portal.add_form(f"{PATH}/users", NEW_USER, self._page, self._add)
        portal.add_page(REMOVE_PATH, self._confirm_removal)
        portal.add_form(REMOVE_PATH, (), self._confirm_removal, self._remove)

    def _page(self, visit: PortalRequest) -> Shown:
        return "organization", {
            "users": self.users.of_organization(visit.organization.id),
            "path": PATH,
            "new_user": NEW_USER,
            "new_name": fields.FIELDS["organization"],
        }

    async def _rename(self, visit: PortalRequest, *, organization: str) -> Saved:
        self.users.replace_organization(replace(visit.organization, name=organization))
        return PATH, f"The organization's name is {organization}."

    async def _add(self, visit: PortalRequest, *, name: str, email: str, password: str) -> Saved:
        hashed = await asyncio.to_thread(user_directory.hash_password, password)
        id_ = str(uuid.UUID(int=self.rng.getrandbits(128), version=4))
        user = user_directory.SandboxUser(id_, email, name, hashed, visit.organization.id, self.clock.now())
        try:
            self.users.add(user)
        except ValueError as error:
            raise fields.MistakeError("email", "This address is already in use.") from error
        return PATH, f"{name} may sign in as {email}."

    def _confirm_removal(self, visit: PortalRequest) -> Shown:
        return "form", {"form": fields.FORMS["remove_user"], "name": self._other(visit).name, "back": PATH}

    async def _remove(self, visit: PortalRequest) -> Saved:
        user = self._other(visit)
        self.users.remove(user.id)
        return PATH, f"{user.name} is removed."

    def _other(self, visit: PortalRequest) -> user_directory.SandboxUser:
        user = self.users.by_id(visit.id)
        if user is None or user.organization != visit.organization.id:
            raise responder.PortalNotFoundError("Your organization has no such user.")
        if user.id == visit.user.id:
            raise responder.PortalNotFoundError("You cannot remove yourself; another user of your organization can.")
        return user
