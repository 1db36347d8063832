"""Facts about the whole test session, handed to every test.

Fixtures that the tests of one package need belong into the conftest of their folder.
"""

import functools
import gc
import os
import shutil
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
import structlog
from aiohttp import web_app
from support import forked_commands, time_limit
from support.running_commands import run_command, start_command  # noqa: F401 - fixtures

from proxy.kit import shipped
from proxy.mapping import compiler, loader, transforms
from proxy.model import Projection

if TYPE_CHECKING:
    from support.redis_server import RedisServer


# The machines that run the tests are shared: no example fails because it took long.
hypothesis.settings.register_profile("v3bridge", deadline=None, max_examples=25)
hypothesis.settings.load_profile("v3bridge")


# Of setup, call or teardown. The slowest test takes 20 s on two idle cores, and far more on a busy machine.
TEST_SECONDS = 300


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that changes what tests of bytes expect."""
    parser.addoption("--renew-responses", action="store_true", help="record the responses of the tests that hold bytes")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse renewals in several processes, each of which would write what it has run."""
    if config.getoption("--renew-responses") and config.getoption("numprocesses", None):
        raise pytest.UsageError("--renew-responses writes files: leave out -n")


def _limit_time() -> Generator[None, Any, Any]:
    with time_limit.limited(TEST_SECONDS):
        return (yield)


# Each phase has its own limit, because pytest reports only what is raised within a phase as a failure of the test.
pytest_runtest_setup = pytest.hookimpl(wrapper=True)(_limit_time)
pytest_runtest_call = pytest.hookimpl(wrapper=True)(_limit_time)
pytest_runtest_teardown = pytest.hookimpl(wrapper=True)(_limit_time)


def pytest_collection_finish() -> None:
    """Thousands of collected tests are no rubbish: the collector need not look through them a hundred times."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(25_000, 40, 20)  # as the service has it


@pytest.fixture(scope="session", autouse=True)
def _surroundings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What is changed for whatever tests start."""
    # A logged exception with the values of all variables takes up to a second, in which no server responds.
    structlog.dev.ConsoleRenderer.get_active().exception_formatter = structlog.dev.plain_traceback
    # Commands of the program start without importing it anew.
    with pytest.MonkeyPatch.context() as patch, forked_commands.installed():
        # They keep their state here, never in the home of whoever runs the tests.
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        patch.setenv("RUNTIME_DIRECTORY", str(tmp_path_factory.mktemp("run")))
        # Services beside each other do not all want the default port of operators.
        patch.setenv("V3BRIDGE_ADMIN_PORT", "0")
        # A proxy that has loaded a list exempts all objects of its process from garbage collection. Here these are
        # mostly garbage: what earlier tests left in cycles would stay for the rest of the session.
        patch.setattr(gc, "freeze", lambda: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def _shipped_mappings_are_read_and_compiled_once() -> Iterator[None]:
    """Every proxy of a test reads the same files, into values that nobody changes. Compiling takes most of a start."""
    read, compile_object, folder = loader.load, compiler.compile_object, shipped("mappings")
    # Also the transforms are part of them; a test may add one.
    read_once = functools.cache(lambda site, _: read(folder, site))
    kept: dict[int, loader.Mappings] = {}
    compiled: dict[tuple[Any, ...], compiler.CompiledObject] = {}

    def load(given: Path, site: str = "octopart", own_uids: Path | None = None) -> loader.Mappings:
        if (given, own_uids) != (folder, None):
            return read(given, site, own_uids)
        mappings = read_once(site, tuple(transforms.TRANSFORMS))
        kept[id(mappings)] = mappings
        return mappings

    def compile_once(
        mappings: loader.Mappings, name: str, projection: Projection, needs: tuple[str, ...] = ()
    ) -> compiler.CompiledObject:
        if id(mappings) not in kept:
            return compile_object(mappings, name, projection, needs)
        key = (id(mappings), name, projection, needs)
        if key not in compiled:
            compiled[key] = compile_object(mappings, name, projection, needs)
        return compiled[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loader, "load", load)
        patch.setattr(compiler, "compile_object", compile_once)
        yield


@pytest.fixture(autouse=True)
def _no_application_outlives_its_test() -> Iterator[None]:
    """aiohttp keeps the last thousand handlers with their middlewares, and with them the applications of all tests."""
    yield
    web_app._cached_build_middleware.cache_clear()


@pytest.fixture(scope="session")
def needs_program() -> Callable[[str], str]:
    """The path of a program that a test starts, such as `needs_program("redis-server")`.

    Where the program is missing, the test is skipped with that reason, so that `make test` passes on a
    machine that has nothing but Python. With CI=true it fails instead: a test that CI skips is never run,
    and what the tests need is a line in .ci/programs.
    """

    def find(name: str) -> str:
        path = shutil.which(name)
        if path is not None:
            return path
        if os.environ.get("CI") == "true":
            message = f"{name} is not installed, and CI must have it: add its package to .ci/programs"
            pytest.fail(message, pytrace=False)
        pytest.skip(f"{name} is not installed")

    return find


@pytest.fixture(scope="session")
def _redis_server(needs_program: Callable[[str], str]) -> "Iterator[RedisServer]":
    from support.redis_server import RedisServer

    program = needs_program("redis-server")
    # Short: a socket's path has 107 characters at most.
    with tempfile.TemporaryDirectory(prefix="v3bridge-") as folder, RedisServer(program, Path(folder)) as server:
        yield server


@pytest.fixture
def redis_server(_redis_server: "RedisServer") -> "RedisServer":
    """A real one, started once for all tests of a process, with nothing in it."""
    _redis_server.empty()
    return _redis_server
