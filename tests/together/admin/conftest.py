"""Fixtures: an admin interface over sockets, with a proxy and a sandbox behind it."""

from collections.abc import AsyncIterator

import pytest
from support import running_admin
from together.environment import ProxyEnvironment, StartEnvironment


@pytest.fixture
async def managed(start: StartEnvironment) -> AsyncIterator[ProxyEnvironment]:
    """An environment with default settings and an admin interface, but without a response cache."""
    async with start(admin=True) as ready:
        yield ready


@pytest.fixture
def admin(managed: ProxyEnvironment) -> running_admin.AdminClient:
    """Client of the admin interface."""
    return managed.admin
