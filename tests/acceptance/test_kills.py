"""`kill -9` under load in three dialects: what the sandbox billed is booked, within the limit, and what was served is.
No more is uncertain than what the requests that were cut could cost; where they are sent again, no more than they cost.

KILLS in the environment is the number of kills of each service.
"""

import concurrent.futures
import contextlib
import http.client
import itertools
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from acceptance import bills, running

KILLS = int(os.environ.get("KILLS", "5"))
DIALECTS = {"v3": 3, "GraphQL": 1, "v4": 1}  # and the most parts that a request can cost
NUMBERS = 3_000
LIMIT = 100
ENDED_SECONDS = 150.0  # Redis moves reservations past their deadline (35 s) once a minute; a busy machine takes longer


class Load:
    """Clients that request one number after another of a service. `served` has the numbers by API key, `cut` dialect
    and number of each request that was in flight when a process was killed."""

    def __init__(self, service: running.Service) -> None:
        self._service = service
        self._numbers = itertools.cycle(bills.numbers(NUMBERS))
        self._ended = threading.Event()
        self.served: dict[str, set[str]] = {"free": set(), "limited": set()}
        self.cut: dict[str, list[tuple[str, str]]] = {"free": [], "limited": []}

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        with concurrent.futures.ThreadPoolExecutor(2 * len(DIALECTS)) as clients:
            sent = [clients.submit(self._send, *each) for each in itertools.product(DIALECTS, self.served)]
            try:
                yield
            finally:
                self._ended.set()
        for each in sent:
            each.result()

    def _send(self, dialect: str, key: str) -> None:
        while not self._ended.wait(0.05):
            self.ask(dialect, key)

    def ask(self, dialect: str, key: str) -> int:
        """Request the next number; returns the status, 0 where the process was killed."""
        number = next(self._numbers)
        try:
            response = bills.ask(self._service, dialect, number, key)
        except ConnectionRefusedError:
            return 0
        except (OSError, http.client.HTTPException):
            self.cut[key].append((dialect, number))
            return 0
        self.served[key] |= set(bills.found(response))
        return response.status


def keep_running(service: running.Service) -> None:
    """Start the service again if it has ended, as a service manager does: a worker may be killed while it starts."""
    if service.ended is not None:
        service.start()


def kill(service: running.Service, worker: bool) -> None:
    """Kill one of the workers, or the service with all of them."""
    if worker and (workers := service.workers):
        with contextlib.suppress(ProcessLookupError):
            os.kill(random.choice(workers), signal.SIGKILL)
    else:
        service.kill()


def is_used_up(service: running.Service, load: Load) -> bool:
    """Use up what is left; return whether nothing is reserved any more for requests that ended with their process."""
    keep_running(service)
    while (status := load.ask("v3", "limited")) == 200:
        pass
    return status == 429 and not any(row.reserved for row in bills.usage(service).values())


def is_booked(service: running.Service, billed: dict[str, int]) -> bool:
    """Return whether the bill is booked: what a killed process has reserved is, when its deadline has passed."""
    rows = bills.usage(service)
    return all(parts <= rows[name].used + rows[name].uncertain for name, parts in billed.items())


def check_booked_after_kills(processes: running.Processes, store: str, workers: int) -> None:
    """Kill a service of an application without a limit and one with a limit, and compare its books with the bill."""
    sandbox = bills.sandbox(processes, NUMBERS)
    text = bills.configuration(
        sandbox,
        store,
        free=bills.application(sandbox, "apikeys: [free]"),
        limited=bills.application(sandbox, f"apikeys: [limited], parts: {LIMIT}", second=True),
    )
    service = processes.service(text, "--workers", str(workers))
    sandbox.inject("latency ms=50")
    load = Load(service)
    with load.running():
        for number in range(KILLS):
            time.sleep(random.uniform(0.3, 1.2))
            kill(service, worker=workers > 1 and number % 3 < 2)
            keep_running(service)
    sandbox.inject()
    running.until(lambda: is_used_up(service, load), "the limit is used up", ENDED_SECONDS)
    billed = dict(zip(load.served, bills.billed(sandbox), strict=True))
    running.until(lambda: is_booked(service, billed), f"the books have {billed}", ENDED_SECONDS)
    usage = bills.usage(service)
    for name, served in load.served.items():
        row = usage[name]
        assert 0 < len(served) <= row.used <= billed[name] <= row.used + row.uncertain, (name, billed, usage)
        assert row.uncertain <= sum(DIALECTS[dialect] for dialect, _ in load.cut[name]), (usage, load.cut)
    assert billed["limited"] <= LIMIT
    for dialect, wanted in load.cut["free"]:
        assert bills.found(bills.ask(service, dialect, wanted, "free")) == [wanted]
    row = bills.usage(service)["free"]
    assert bills.billed(sandbox)[0] - row.used <= row.uncertain <= len(load.cut["free"]), (row, load.cut)


@pytest.mark.parametrize("store", ["sqlite", "redis"])
def test_bill_is_booked_after_kills(tmp_path: Path, request: pytest.FixtureRequest, store: str) -> None:
    with contextlib.ExitStack() as stack, concurrent.futures.ThreadPoolExecutor() as threads:
        url = request.getfixturevalue("redis_server").url if store == "redis" else "sqlite:store"
        checks = []
        for workers in (1, 2):
            (folder := tmp_path / str(workers)).mkdir()
            processes = stack.enter_context(running.Processes(folder))
            address = f"{url}?db={workers}" if store == "redis" else url
            checks.append(threads.submit(check_booked_after_kills, processes, address, workers))
        for each in checks:
            each.result()
