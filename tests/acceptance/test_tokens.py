"""Requests for access tokens: one for all processes, restarts included, and within the limits of the identity service.

WINDOWS in the environment is the number of those limits that are tested, from the shortest; all four take minutes.
"""

import os
import time
from collections import Counter

from acceptance import bills, running

WINDOWS = ((2, 1.0), (200, 900.0), (3_000, 12 * 3_600.0), (40_000, 7 * 86_400.0))
TESTED = int(os.environ.get("WINDOWS", "2"))


def test_token_is_requested_once_by_four_processes_and_renewed_once(processes: running.Processes) -> None:
    sandbox = bills.sandbox(processes)
    service = processes.service(bills.configuration(sandbox), "--workers", "4")

    def token_requests_after(first: int) -> int:
        lines = [bills.match(number) for number in bills.numbers(40, first)]
        assert Counter(each.status for each in bills.at_once(service.get, lines)) == {200: 40}
        return sandbox.requests("token")

    assert token_requests_after(0) == 1
    service.restart()
    assert token_requests_after(40) == 1
    sandbox.inject("expired count=1")
    assert token_requests_after(80) == 2
    assert token_requests_after(120) == 2


def test_tokens_are_requested_within_the_windows(processes: running.Processes, clock: running.Clock) -> None:
    """Tokens end at once, so that each request needs one."""
    upstream = processes.upstream()
    upstream.token_seconds = 0.1
    upstream.answer = lambda _: {"data": {"supMultiMatch": [{"hits": 0, "parts": []}]}}
    application = "{client_id: an-id, client_secret: a-secret, apikeys: [KEY]}"
    text = f"{upstream.upstream}\nstore: sqlite:store\napplications: {{demo: {application}}}"
    service = processes.service(text, clock=clock)
    before: list[float] = []  # the time before and after the request that each token was requested for
    after: list[float] = []
    number = 0
    while len(before) <= WINDOWS[TESTED - 1][0] + 1:
        began = time.time() + clock.ahead
        response = service.get(bills.match(f"NONE{number}", key="KEY"))
        if len(upstream.tokens) > len(before):
            before.append(began)
            after.append(time.time() + clock.ahead)
        wait = 0.2 if number < 6 else 0.5
        clock.turn(float(response.headers["retry-after"]) if response.status == 503 else wait)
        number += 1
    assert len(upstream.tokens) == len(before)
    for count, seconds in WINDOWS[:TESTED]:
        assert all(later - first >= seconds for first, later in zip(before, after[count:], strict=False))
