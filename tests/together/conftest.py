"""Fixtures: a sandbox and a proxy over sockets, new for every test, with a manual clock.

The catalog and the sandbox's signing key are made once, because no test changes them. aiohttp has its own clock.
"""

import io
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from acceptance.conftest import module_processes, processes  # noqa: F401 - fixtures
from support import forked_commands, log_lines, running_admin, running_proxy
from together.environment import ProxyEnvironment, ReloadableService, ServeFile, StartEnvironment

import nexar_sandbox
from proxy import app
from proxy.config import loader
from proxy.kit import clock


@pytest.fixture(scope="module", autouse=True)
def _installed_program_is_forked() -> Iterator[None]:
    """Its start is that of a user in tests/acceptance."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forked_commands, "COMMANDS", [*forked_commands.COMMANDS, [forked_commands.PROGRAM]])
        yield


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
            chosen_proxy = running_proxy.in_front_of(upstream, **(urls or {}), **changes)
            if admin:
                async with running_admin.running(chosen_proxy, time) as client:
                    yield ProxyEnvironment(client.proxy, upstream, time, client)
            else:
                async with running_proxy.running(chosen_proxy, time) as proxy:
                    yield ProxyEnvironment(proxy, upstream, time)

    return started


@pytest.fixture
def serve_file(
    tmp_path: Path, catalog: nexar_sandbox.Catalog, signing_key: nexar_sandbox.SigningKey, time: clock.ManualClock
) -> ServeFile:
    """`async with serve_file(change, **sandbox) as service`: `change` changes the content of its file."""

    @asynccontextmanager
    async def started(
        change: Callable[[dict[str, Any]], object] = lambda _: None, **chosen: Any
    ) -> AsyncIterator[ReloadableService]:
        settings = nexar_sandbox.SandboxSettings(**chosen)
        running = nexar_sandbox.serve(settings, catalog=catalog, key=signing_key)
        async with running as sandbox, aiohttp.ClientSession() as session:
            credentials = {"client_id": sandbox.client_id, "client_secret": sandbox.client_secret}
            content: dict[str, Any] = {
                "listen": {"port": 0},
                "admin": {"port": 0},
                "upstream": {"graphql_url": sandbox.graphql_url, "token_url": sandbox.token_url},
                "store": f"sqlite:{tmp_path / 'state.sqlite'}",
                "applications": {"demo": {"apikeys": [running_proxy.KEY], **credentials}},
            }
            change(content)
            file = tmp_path / "config.yaml"
            file.write_text(yaml.safe_dump(content))
            async with app.serving(loader.load(file, {})) as service:
                proxy = running_proxy.ProxyClient(service.url, service.operators_url, session)
                yield ReloadableService(proxy, sandbox, time, running=service, file=file, content=content)

    return started


@pytest.fixture
async def environment(start: StartEnvironment) -> AsyncIterator[ProxyEnvironment]:
    """An environment with default settings, but without a response cache."""
    async with start() as ready:
        yield ready


@pytest.fixture
def unreachable_url(unused_tcp_port: int) -> str:
    return f"http://127.0.0.1:{unused_tcp_port}"
