"""The user's organisation: its name and its users."""

import asyncio
import random
import uuid
from dataclasses import replace

from aiohttp import web

from proxy.kit import clock as clocks
from proxy.sandbox import user_directory
from proxy.sandbox.portal import figures, reading, visits

PATH = visits.ORGANISATION_PATH
REMOVE = f"{PATH}/users/{{id}}/remove"


class Organisations:
    """The handlers. `rng` must not be foreseeable."""

    def __init__(
        self, *, desk: visits.Desk, users: user_directory.UserDirectory, clock: clocks.Clock, rng: random.Random
    ) -> None:
        self._desk, self._users, self._clock, self._rng = desk, users, clock, rng

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Pages by GET, changes by POST."""
        opened = self._desk.open
        router.add_get(PATH, opened(self.page))
        router.add_post(f"{PATH}/name", opened(self.rename))
        router.add_post(f"{PATH}/users", opened(self.add))
        router.add_get(REMOVE, opened(self.confirm))
        router.add_post(REMOVE, opened(self.remove))

    async def page(self, visit: visits.Visit) -> web.Response:
        """Its name and its users."""
        return self._page(visit, reading.Read({"organisation": visit.organisation.name}))

    async def rename(self, visit: visits.Visit) -> web.Response:
        """Another name."""
        read = reading.Read(visit.form)
        name = read.line("organisation", "The name")
        if read.mistakes:
            return self._page(visit, read)
        self._users.replace_organisation(replace(visit.organisation, name=name))
        return self._desk.go(visit, PATH, f"The organisation's name is {name}.")

    async def add(self, visit: visits.Visit) -> web.Response:
        """One more user, who may sign in at once."""
        read = reading.Read({"organisation": visit.organisation.name, **visit.form})
        name, email, password = read.line("name", "The name"), read.email(self._users), read.password()
        if read.mistakes:
            return self._page(visit, read)
        hashed = await asyncio.to_thread(user_directory.hash_password, password, self._rng.randbytes(16))
        id_ = str(uuid.UUID(int=self._rng.getrandbits(128), version=4))
        user = user_directory.SandboxUser(id_, email, name, hashed, visit.organisation.id, self._clock.now())
        try:
            self._users.add(user)
        except ValueError:  # somebody was quicker
            read.mistakes["email"] = "A user has this address already."
            return self._page(visit, read)
        return self._desk.go(visit, PATH, f"{name} may sign in as {email}.")

    async def confirm(self, visit: visits.Visit) -> web.Response:
        """Asks whether to remove the user."""
        return self._desk.show(visit, "remove_user", removed=self._other(visit), path=PATH)

    async def remove(self, visit: visits.Visit) -> web.Response:
        """One user less, in all windows at once."""
        user = self._other(visit)
        self._users.remove(user.id)
        return self._desk.go(visit, PATH, f"{user.name} is removed.")

    def _other(self, visit: visits.Visit) -> user_directory.SandboxUser:
        """The user in the path. Raises AbsentError for those of other organisations, and for oneself."""
        user = self._users.by_id(visit.named("id"))
        if user is None or user.organisation != visit.organisation.id:
            raise visits.AbsentError("Your organisation has no such user.")
        if user.id == visit.user.id:
            raise visits.AbsentError("You cannot remove yourself; another user of your organisation can.")
        return user

    def _page(self, visit: visits.Visit, read: reading.Read) -> web.Response:
        rows = [(user, figures.day(user.created)) for user in self._users.of_organisation(visit.organisation.id)]
        typed = {name: value for name, value in read.form.items() if name != "password"}
        status = 400 if read.mistakes else 200
        return self._desk.show(
            visit, "organisation", status=status, rows=rows, path=PATH, typed=typed, mistakes=read.mistakes
        )
