"""A store file that cannot be written: readiness names it, what is in memory is served, and nothing that costs parts is
begun, with or without a limit."""

import os
import resource
from collections.abc import Callable

import pytest
from acceptance import bills, running
from support.redis_server import RedisServer

NAMES = ("free", "limited")
NO_SPACE = (1, resource.RLIM_INFINITY)  # bytes of a file: every write fails as on a full disk
Serve = Callable[[str], running.Service]
UNAVAILABLE = "\nv3bridge_store_unavailable 1.0\n"
FIRST, *OTHERS = bills.numbers(3)


@pytest.fixture(scope="module")
def sandbox(module_processes: running.Processes) -> running.Sandbox:
    return bills.sandbox(module_processes)


@pytest.fixture
def serve(module_processes: running.Processes, sandbox: running.Sandbox) -> Serve:
    """`serve(store)` is a service whose applications have one part each in memory."""

    def serve(store: str) -> running.Service:
        free, limited = bills.application(sandbox, "apikeys: [free]"), "apikeys: [limited], parts: 1000"
        applications = {"free": free, "limited": bills.application(sandbox, limited, second=True)}
        started = module_processes.service(bills.configuration(sandbox, store, **applications))
        for _ in range(2):  # a response is kept in memory when the store has answered it
            assert statuses(started, FIRST) == [200, 200]
        return started

    return serve


@pytest.fixture
def service(serve: Serve) -> running.Service:
    return serve("sqlite:store")


def statuses(service: running.Service, number: str) -> list[int]:
    """Request a number by each key; what is refused says when to come again."""
    responses = [service.get(bills.match(number, key=key)) for key in NAMES]
    assert all("retry-after" in each.headers for each in responses if each.status == 503)
    assert not any(str(service.folder) in each.text for each in responses)
    return [each.status for each in responses]


def reasons(service: running.Service) -> dict[str, str]:
    """Return why the service is not ready, by check."""
    response = running.request(service.operators, "/readyz")
    assert (response.status == 200) is not ("reasons" in response.json)
    return {each["check"]: each["reason"] for each in response.json.get("reasons", ())}


def check_refused(service: running.Service, sandbox: running.Sandbox) -> str:
    """Wait until the service knows, check what it serves, and return the reason that readiness names."""
    running.until(lambda: reasons(service), "the store is not ready")
    billed = bills.billed(sandbox)
    assert statuses(service, FIRST) == [200, 200]
    for number in OTHERS:
        assert statuses(service, number) == [503, 503]
    assert bills.billed(sandbox) == billed
    running.until(lambda: UNAVAILABLE in running.request(service.operators, "/metrics").text, "the metric says so")
    (named,) = reasons(service).items()
    assert named[0] == "store"
    return named[1]


def test_full_disk(service: running.Service, sandbox: running.Sandbox) -> None:
    before = bills.usage(service)
    usual = resource.prlimit(service.workers[0], resource.RLIMIT_FSIZE, NO_SPACE)
    assert check_refused(service, sandbox).startswith("the store (SQLite) cannot be used: ")
    resource.prlimit(service.workers[0], resource.RLIMIT_FSIZE, usual)
    running.until(lambda: not reasons(service), "the store is ready")
    assert statuses(service, OTHERS[0]) == [200, 200]
    running.until(lambda: '"store available"' in service.log, "the log says so")
    for name, row in bills.usage(service).items():
        assert (row.used, row.uncertain, row.reserved) == (before[name].used + 1, 0, 0)


def test_redis_that_lost_usage_is_not_ready_until_it_is_set(
    serve: Serve, sandbox: running.Sandbox, redis_server: RedisServer
) -> None:
    service = serve(redis_server.url)
    redis_server.empty()
    assert "Redis has lost usage of parts" in check_refused(service, sandbox)
    usage = "usage", "--config", service.file
    assert "Redis has lost usage" in running.command(*usage, folder=service.folder).stdout
    for name in NAMES:
        assert reasons(service)
        running.command(*usage, "--set", f"{name}=1", folder=service.folder)
    running.until(lambda: not reasons(service), "the store is ready")
    assert statuses(service, OTHERS[0]) == [200, 200]


def test_deleted_store_is_refused_until_a_restart(service: running.Service, sandbox: running.Sandbox) -> None:
    for file in [*service.folder.glob("store*")]:
        file.unlink()
    assert "store was deleted or cannot be reached" in check_refused(service, sandbox)
    service.kill()  # what it has yet to write, it would try to write for as long as it may
    service.start()
    assert not reasons(service)
    assert statuses(service, FIRST) == [200, 200]


def test_store_emptied_while_nothing_used_it_is_refused(service: running.Service) -> None:
    assert service.stop() == 0
    os.truncate(service.folder / "store", 0)
    done = running.command("usage", "--config", service.file, folder=service.folder)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"v3bridge: store: {service.folder / 'store'} was truncated; stop the service" in done.stderr


@pytest.mark.parametrize("name", ["store", "store-wal"])
def test_truncated_store_is_refused_everywhere(service: running.Service, sandbox: running.Sandbox, name: str) -> None:
    os.truncate(service.folder / name, 0)
    assert "was truncated; stop the service, restore the file" in check_refused(service, sandbox)
    quoted = service.get(bills.match(OTHERS[0], key="free"), method="HEAD")
    assert (quoted.status, quoted.text, "x-parts-cost" in quoted.headers) == (503, "", False)
    done = running.command("usage", "--config", service.file, folder=service.folder)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"v3bridge: store: {service.folder / 'store'} ")


def test_damaged_store_is_refused(service: running.Service, sandbox: running.Sandbox) -> None:
    service.restart()  # which moves all pages to the file
    file = service.folder / "store"
    with file.open("r+b") as overwritten:
        overwritten.write(os.urandom(file.stat().st_size))
    assert statuses(service, FIRST) == [503, 503]
    running.until(lambda: reasons(service), "the store is not ready")
    assert "is damaged (" in reasons(service)["store"]
    assert "stop the service, restore the file" in reasons(service)["store"]
