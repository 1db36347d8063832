"""API keys and applications: nothing shared with others, rate, last day, sunset, and no guessing."""

import datetime
import time
from collections import Counter

from acceptance import bills, running

DAY = 86_400.0


def test_applications_and_markets_share_nothing(processes: running.Processes) -> None:
    sandbox = bills.sandbox(processes)
    service = processes.service(
        bills.configuration(
            sandbox,
            first=bills.application(sandbox, "apikeys: [first]"),
            second=bills.application(sandbox, "apikeys: [second]", second=True),
            german=bills.application(sandbox, "apikeys: [german], country: DE, currency: EUR"),
        )
    )
    (number,) = bills.numbers(1)
    prices = {}
    for total, key in enumerate(("first", "second", "german"), 1):
        for _ in range(2):
            response = service.get(bills.match(number, key=key))
            assert (bills.found(response), sandbox.parts) == ([number], total)
        offers = response.json["results"][0]["items"][0]["offers"]
        prices[key] = {currency for offer in offers for currency in offer["prices"]}
    assert bills.billed(sandbox) == [2, 1]
    assert prices["first"] == prices["second"] != prices["german"]


def last_day(clock: running.Clock, days: int) -> str:
    today = datetime.datetime.fromtimestamp(time.time() + clock.ahead, datetime.UTC)
    return str((today + datetime.timedelta(days=days)).date())


def test_keys_have_a_rate_a_last_day_and_a_sunset(processes: running.Processes, clock: running.Clock) -> None:
    sandbox = bills.sandbox(processes, clock=clock)
    day = last_day(clock, 1)
    sunset = f'{{date: {day}, link: "https://wiki.example/v3"}}'
    keys = f"[{{key: old, expires: {day}}}, {{key: quick, rate: 3}}, {{key: leaving, sunset: {sunset}}}, plain]"
    demo = bills.application(sandbox, f"apikeys: {keys}")
    service = processes.service(bills.configuration(sandbox, demo=demo), clock=clock)
    line = bills.numbers(1)[0]

    def ask(key: str) -> running.Response:
        return service.get(bills.match(line, key=key))

    began = time.monotonic()
    answers = [ask("quick") for _ in range(12)]
    seen = Counter(each.status for each in answers)
    assert seen[200] <= 3 * (int(time.monotonic() - began) + 1)
    assert seen[200] + seen[429] == 12
    assert {each.headers["retry-after"] for each in answers if each.status == 429} in ({"1"}, set())
    assert {key: ask(key).status for key in ("old", "leaving", "plain")} == {"old": 200, "leaving": 200, "plain": 200}
    announced = ask("leaving").headers
    ends = datetime.date.fromisoformat(day).strftime("%a, %d %b %Y 23:59:59 GMT")
    assert announced["sunset"] == ends
    assert 'rel="sunset"' in announced["link"]
    assert "sunset" not in ask("plain").headers
    clock.turn(2 * DAY)
    assert {key: ask(key).status for key in ("old", "leaving", "plain")} == {"old": 403, "leaving": 410, "plain": 200}
    for key in ("old", "leaving"):
        assert ask(key).json["__class__"] == "ClientErrorResponse"
        assert day in ask(key).json["message"]


def test_wrong_keys_are_throttled_and_used_ones_go_on(processes: running.Processes, sandbox: running.Sandbox) -> None:
    text = bills.configuration(sandbox, demo=bills.application(sandbox, "apikeys: [used, unused]"))
    service = processes.service(f"{text}listen: {{failed_auth_per_minute: 5}}\n")

    def status(key: str) -> int:
        return service.get(bills.match("SN74S74N", key=key)).status

    assert status("used") == 200
    assert [status(f"guess-{number}") for number in range(8)] == [403] * 5 + [429] * 3
    assert (status("used"), status("unused")) == (200, 429)
    assert "guess-" not in service.log
