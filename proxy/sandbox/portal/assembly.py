"""The portal put together, of what the sandbox has already."""

import random
from dataclasses import dataclass

from aiohttp import web

from proxy.kit import clock as clocks
from proxy.sandbox import applications, part_usage, user_directory
from proxy.sandbox.identity import assembly as identity_assembly
from proxy.sandbox.portal import application_pages, changes, figures, organisations, visits


@dataclass(frozen=True, slots=True)
class Portal:
    """All of its pages."""

    _rooms: tuple[application_pages.Applications | changes.Changes | organisations.Organisations, ...]

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Everything below `/portal`."""
        for room in self._rooms:
            room.add_routes(router)


def assemble(
    identity: identity_assembly.Identity,
    known: applications.ApplicationRegistry,
    users: user_directory.UserDirectory,
    counted: part_usage.PartUsage,
    *,
    clock: clocks.Clock,
) -> Portal:
    """Ids and secrets come from the machine's random source."""
    secret = random.SystemRandom()
    identity.pages.add_filter("grouped", figures.grouped)
    desk = visits.Desk(users, identity.sessions, identity.pages, clock)
    pages = application_pages.Applications(
        desk=desk, known=known, counted=counted, allowed=identity.allowed, clock=clock, rng=secret
    )
    single = changes.Changes(desk=desk, known=known, allowed=identity.allowed, beside=pages, rng=secret)
    own = organisations.Organisations(desk=desk, users=users, clock=clock, rng=secret)
    return Portal((pages, single, own))
