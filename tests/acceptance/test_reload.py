"""SIGHUP: keys and limits change without a lost request; a broken file changes nothing and says where it is wrong."""

import contextlib
import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator

from acceptance import bills, running


@contextlib.contextmanager
def load(service: running.Service, key: str) -> Iterator[Counter[int]]:
    """Request parts with a key all the time; counts the statuses."""
    statuses: Counter[int] = Counter()
    ended = threading.Event()

    def send(line: str) -> None:
        while not ended.wait(0.01):
            statuses[service.get(bills.match(line, key=key)).status] += 1

    threads = [threading.Thread(target=send, args=(line,)) for line in bills.numbers(4)]
    for thread in threads:
        thread.start()
    try:
        yield statuses
    finally:
        ended.set()
        for thread in threads:
            thread.join(running.SECONDS)


def test_hangup_takes_over_keys_and_limits_without_losing_a_request(processes: running.Processes) -> None:
    sandbox = bills.sandbox(processes)

    def text(keys: str, parts: object) -> str:
        limited = bills.application(sandbox, f"apikeys: [limited], parts: {parts}", second=True)
        return bills.configuration(sandbox, shop=bills.application(sandbox, f"apikeys: [{keys}]"), limited=limited)

    def statuses(key: str, first: int) -> set[int]:
        """Request parts of a key over connections that the workers get in turn."""
        lines = bills.numbers(10, first)
        return {service.get(bills.match(line, key=key, limit=1)).status for line in lines}

    def served(key: str) -> int:
        with contextlib.suppress(OSError):  # no worker listens now
            return service.get(bills.match("SN74S74N", key=key)).status
        return 0

    service = processes.service(text("old", 10), "--workers", "2")
    assert statuses("limited", 0) == {200}
    with load(service, "old") as seen:
        assert (statuses("new", 0), statuses("limited", 10)) == ({403}, {429})
        service.reload(text("old, new", 200))
        running.until(lambda: statuses("limited", 20) == {200}, "the new limit holds")
        assert statuses("new", 0) == {200}
        service.reload(text("new", "lots"))
        wrong = f"{service.file.name}:{text('new', 'lots').splitlines().index('applications:') + 3}"
        running.until(lambda: wrong in service.log, "the log says where the file is wrong")
        assert "applications.limited.parts" in service.log
        assert statuses("new", 10) == statuses("limited", 30) == {200}
    assert set(seen) == {200}
    assert seen[200] > 20
    service.reload(text("new", 200))
    running.until(lambda: 200 not in statuses("old", 0), "the old key is gone")
    before = service.workers
    os.kill(before[0], signal.SIGKILL)
    running.until(lambda: len(set(service.workers) - set(before)) == 1, "the worker is replaced")
    os.kill(before[1], signal.SIGKILL)  # so that only a worker that was started after the reload is left
    assert running.until(lambda: served("new"), "the new worker serves") == 200
    assert service.stop() == 0
