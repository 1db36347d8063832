"""Page of the organisation: its name and its users."""

import asyncio
import random
import uuid
from dataclasses import replace

from aiohttp import web

from nexar_sandbox import user_directory
from nexar_sandbox.kit import clock as clocks
from nexar_sandbox.portal import form_input, formatting, requests

PATH = requests.ORGANISATION_PATH
REMOVE = f"{PATH}/users/{{id}}/remove"


class OrganisationPages:
    """Handlers of the page. `rng` must be unpredictable."""

    def __init__(
        self,
        *,
        responder: requests.PortalResponder,
        users: user_directory.UserDirectory,
        clock: clocks.Clock,
        rng: random.Random,
    ) -> None:
        self._responder, self._users, self._clock, self._rng = responder, users, clock, rng

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Pages by GET, changes by POST."""
        open_page = self._responder.open
        router.add_get(PATH, open_page(self.page))
        router.add_post(f"{PATH}/name", open_page(self.rename))
        router.add_post(f"{PATH}/users", open_page(self.add))
        router.add_get(REMOVE, open_page(self.confirm))
        router.add_post(REMOVE, open_page(self.remove))

    async def page(self, request: requests.PortalRequest) -> web.Response:
        """Show name and users."""
        return self._page(request, form_input.FormInput({"organisation": request.organisation.name}))

    async def rename(self, request: requests.PortalRequest) -> web.Response:
        """Rename the organisation."""
        fields = form_input.FormInput(request.form)
        name = fields.line("organisation", "The name")
        if fields.mistakes:
            return self._page(request, fields)
        self._users.replace_organisation(replace(request.organisation, name=name))
        return self._responder.go(request, PATH, f"The organisation's name is {name}.")

    async def add(self, request: requests.PortalRequest) -> web.Response:
        """Add a user."""
        fields = form_input.FormInput({"organisation": request.organisation.name, **request.form})
        name, email, password = fields.line("name", "The name"), fields.email(self._users), fields.password()
        if fields.mistakes:
            return self._page(request, fields)
        hashed = await asyncio.to_thread(user_directory.hash_password, password, self._rng.randbytes(16))
        id_ = str(uuid.UUID(int=self._rng.getrandbits(128), version=4))
        user = user_directory.SandboxUser(id_, email, name, hashed, request.organisation.id, self._clock.now())
        try:
            self._users.add(user)
        except ValueError:  # added concurrently
            fields.mistakes["email"] = "This address is already in use."
            return self._page(request, fields)
        return self._responder.go(request, PATH, f"{name} may sign in as {email}.")

    async def confirm(self, request: requests.PortalRequest) -> web.Response:
        """Page that confirms the removal."""
        return self._responder.show(request, "remove_user", removed=self._other(request), path=PATH)

    async def remove(self, request: requests.PortalRequest) -> web.Response:
        """Remove the user and end the user's sessions."""
        user = self._other(request)
        self._users.remove(user.id)
        return self._responder.go(request, PATH, f"{user.name} is removed.")

    def _other(self, request: requests.PortalRequest) -> user_directory.SandboxUser:
        """The user in the path. Raises PortalNotFoundError for users of other organisations and for oneself."""
        user = self._users.by_id(request.named("id"))
        if user is None or user.organisation != request.organisation.id:
            raise requests.PortalNotFoundError("Your organisation has no such user.")
        if user.id == request.user.id:
            raise requests.PortalNotFoundError("You cannot remove yourself; another user of your organisation can.")
        return user

    def _page(self, request: requests.PortalRequest, fields: form_input.FormInput) -> web.Response:
        rows = [
            (user, formatting.format_date(user.created))
            for user in self._users.of_organisation(request.organisation.id)
        ]
        return self._responder.show_form(request, "organisation", fields, rows=rows, path=PATH)
