"""Fixtures: a sandbox and a proxy over sockets, new for every test, with a manual clock.

The catalog and the sandbox's signing key are made once, because no test changes them. aiohttp has its own clock.
"""

import io
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from acceptance.conftest import module_processes, processes  # noqa: F401 - fixtures
from support import log_lines, running_admin, running_proxy
from together.environment import ProxyEnvironment, StartEnvironment

import nexar_sandbox
from proxy import config
from proxy.kit import clock


@pytest.fixture(scope="session")
def catalog() -> Iterator[nexar_sandbox.Catalog]:
    opened = nexar_sandbox.open_catalog()
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def signing_key() -> nexar_sandbox.SigningKey:
    return nexar_sandbox.generate_key()


@pytest.fixture(autouse=True)
def log_output() -> Iterator[io.StringIO]:
    """The log output of a test, configured as the command line configures it."""
    with log_lines.collected() as stream:
        yield stream


@pytest.fixture
def time() -> clock.ManualClock:
    """2023-11-14T22:13:20Z, until it is turned."""
    return clock.ManualClock()


@pytest.fixture
def start(
    catalog: nexar_sandbox.Catalog, signing_key: nexar_sandbox.SigningKey, time: clock.ManualClock
) -> StartEnvironment:
    """`async with start(...) as environment`."""
    return starter(catalog, signing_key, time)


def starter(
    catalog: nexar_sandbox.Catalog, signing_key: nexar_sandbox.SigningKey, time: clock.ManualClock
) -> StartEnvironment:
    """Return the value of the fixture `start`, for fixtures of other scopes.

    `sandbox`: fields of SandboxSettings; the rest: proxy configuration.
    `upstream_time` gives the sandbox a clock of its own; `urls` replaces addresses that the proxy is given; `admin`
    opens the operators' port, too.
    """

    @asynccontextmanager
    async def started(
        sandbox: Mapping[str, Any] | None = None,
        upstream_time: clock.Clock | None = None,
        urls: Mapping[str, str] | None = None,
        admin: bool = False,
        **changes: Any,
    ) -> AsyncIterator[ProxyEnvironment]:
        chosen = nexar_sandbox.SandboxSettings(**(sandbox or {}))
        async with nexar_sandbox.serve(
            chosen, clock=upstream_time or time, catalog=catalog, key=signing_key
        ) as upstream:
            own = {
                "client_id": config.ClientId(upstream.default_application.client_id),
                "client_secret": config.Secret(upstream.default_application.client_secret),
            }
            changes["application"] = own | changes.get("application", {})
            addresses = {"graphql_url": upstream.graphql_url, "token_url": upstream.token_url, **(urls or {})}
            chosen_proxy = running_proxy.settings(**addresses, **changes)
            if admin:
                async with running_admin.running(chosen_proxy, time) as client:
                    yield ProxyEnvironment(client.proxy, upstream, time, client)
            else:
                async with running_proxy.running(chosen_proxy, time) as proxy:
                    yield ProxyEnvironment(proxy, upstream, time)

    return started


@pytest.fixture
async def environment(start: StartEnvironment) -> AsyncIterator[ProxyEnvironment]:
    """An environment with default settings, but without a response cache."""
    async with start() as ready:
        yield ready


@pytest.fixture
def unreachable_url(unused_tcp_port: int) -> str:
    return f"http://127.0.0.1:{unused_tcp_port}"
