"""Other people's v3 clients, as they are on PyPI, against `v3bridge serve` on its embedded sandbox.

Most of it runs against the sandbox's old v3 service too (`services.both`): it must please the same clients.

None of their code is replaced. Set from outside are where they connect (contract v3-rest.md §7), the clock of one's
retries, and the parameters that another would carry from one test into the next. They block, so the proxy has a process
of its own.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
import retrying
from octopart.client import OctopartClient
from pyoctopart.octopart import Octopart
from together.clients import services

KEY = "EXAMPLE_KEY"  # the one that the shipped configuration serves
PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
URL = re.compile(r"http://127\.0\.0\.1:\d+")


@pytest.fixture(scope="session")
def serve() -> Callable[..., AbstractContextManager[str]]:
    """Runs `v3bridge serve` with these further arguments while the block lasts; gives its address."""
    return _served


@pytest.fixture(scope="session")
def running() -> Callable[..., AbstractContextManager[str]]:
    """Runs `v3bridge` with these arguments while the block lasts; gives its first address."""
    return _running


@pytest.fixture(scope="module")
def proxy_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a proxy as shipped, or of the old service; each test file has its own, with all of its month."""
    with _running(*getattr(request, "param", services.PROXY)) as url:
        yield url


@pytest.fixture
def apikey() -> str:
    return KEY


@pytest.fixture(autouse=True)
def _no_proxies_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def octopart_client(proxy_url: str) -> OctopartClient:
    return OctopartClient(KEY, base_url=f"{proxy_url}/api/v3")


@pytest.fixture
def octopart_defaults(proxy_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets the default URL of the clients that the functions of the octopart module create."""
    monkeypatch.setenv("OCTOPART_API_KEY", KEY)
    monkeypatch.setattr(OctopartClient.__init__, "__defaults__", (None, f"{proxy_url}/api/v3"))


class Hurried:
    """Clock of octopart's retries, on which pauses end at once."""

    def __init__(self) -> None:
        self.now = 0.0

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def octopart_hurries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skips the pauses of octopart's retries, which otherwise last 20 seconds."""
    monkeypatch.setattr(retrying, "time", Hurried())


@pytest.fixture
def pyoctopart_client(proxy_url: str, monkeypatch: pytest.MonkeyPatch) -> Octopart:
    """Its parameters leak into its next call, here not into the next test."""
    monkeypatch.setattr(Octopart, "api_url", proxy_url + "/api/v%d/")
    monkeypatch.setattr(Octopart._get_data, "__defaults__", ({}, 2))
    return Octopart(KEY)


def _served(*arguments: str) -> AbstractContextManager[str]:
    return _running(*services.PROXY, *arguments)


@contextmanager
def _running(*arguments: str) -> Iterator[str]:
    command = [sys.executable, "-m", "proxy", *arguments, "--port", "0"]
    with (
        tempfile.TemporaryFile("w+") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            printed = URL.search(process.stdout.readline())
            if printed is None:
                process.kill()
                process.wait()
                log.seek(0)
                pytest.fail(f"v3bridge {arguments[0]} printed no address: {log.read()}", pytrace=False)
            yield printed[0]
        finally:
            process.terminate()
