"""Report on clients: sums by client, day and caller agree with those made by hand; order; a store that changes."""

import asyncio
import csv
import io
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from proxy import config
from proxy.gateway import client_report
from proxy.gateway.client_report import ClientReport
from proxy.kit import clock
from proxy.stores.open import MemoryStore
from proxy.telemetry.callers import DAY_SECONDS, Caller, CallerCount, CallerSeen

NOW = clock.ManualClock().now()
TODAY = int(NOW // DAY_SECONDS)
APPLICATIONS = {
    "demo": config.ApplicationSettings(
        apikeys=(
            config.ApiKeySettings(config.digest("a"), name="erp"),
            config.ApiKeySettings(config.digest("b")),
        )
    )
}
CALLERS = st.sampled_from(
    [
        Caller(application, key, endpoint, agent)
        for application, key in (("demo", "erp"), ("demo", "2"), ("demo", "left"), ("", ""))
        for endpoint in ("parts/match", "brands/search")
        for agent in ("", "curl/8")
    ]
)
COUNTS = st.builds(
    CallerCount, st.integers(TODAY - 40, TODAY), CALLERS, st.integers(1, 9), st.integers(0, 9), st.integers(0, 9)
)


def report(counts: list[CallerCount], days: int) -> ClientReport:
    async def work() -> ClientReport:
        store = MemoryStore(clock.ManualClock())
        for number, count in enumerate(counts):
            at = count.day * DAY_SECONDS
            await store.add_callers(str(number), [CallerSeen(count.caller, at, at + 9)], [count])
        return await client_report.read(store, APPLICATIONS, days, NOW)

    return asyncio.run(work())


def day(number: int) -> str:
    return datetime.fromtimestamp(number * DAY_SECONDS, UTC).strftime("%Y-%m-%d")


def sums(counts: list[CallerCount], key: Callable[[CallerCount], object]) -> dict[object, tuple[int, int, int]]:
    """Requests, errors and parts by a key."""
    requests: Counter[object] = Counter()
    failed: Counter[object] = Counter()
    parts: Counter[object] = Counter()
    for each in counts:
        requests[key(each)] += each.requests
        failed[key(each)] += each.errors
        parts[key(each)] += each.parts
    return {name: (requests[name], failed[name], parts[name]) for name in requests}


@settings(deadline=None, max_examples=60)
@given(counts=st.lists(COUNTS, max_size=25), days=st.integers(1, 45))
def test_any_counts_are_summed_as_by_hand(counts: list[CallerCount], days: int) -> None:
    made = report(counts, days)
    wanted = [each for each in counts if each.day > TODAY - days]
    names = {(each.application or "", each.key or ""): each for each in made.clients}
    assert len(names) == len(made.clients)
    assert set(names) == {each.caller[:2] for each in counts} | {("demo", "erp"), ("demo", "2")}
    of_client, of_day = (
        sums(wanted, lambda each: each.caller[:2]),
        sums(wanted, lambda each: (each.caller[:2], each.day)),
    )
    of_caller = sums(wanted, lambda each: each.caller)
    for name, client in names.items():
        assert (client.requests, client.errors, client.parts) == of_client.get(name, (0, 0, 0))
        assert [(row.day, row.requests, row.errors, row.parts) for row in client.days] == [
            (day(number), *of_day.get((name, number), (0, 0, 0))) for number in range(TODAY - days + 1, TODAY + 1)
        ]
        assert {
            (*name, row.endpoint, row.user_agent): (row.requests, row.errors, row.parts) for row in client.callers
        } == {caller: numbers for caller, numbers in of_caller.items() if caller[:2] == name}  # type: ignore[index]
        seen = [each.day for each in counts if each.caller[:2] == name]
        assert client.first_seen == (f"{day(min(seen))}T00:00:00Z" if seen else None)
        assert client.last_seen == (f"{day(max(seen))}T00:00:09Z" if seen else None)
    order = [(each.requests, each.last_seen or "") for each in made.clients]
    assert order == sorted(order, reverse=True)
    table = list(csv.DictReader(io.StringIO("".join(client_report.csv_chunks(made)))))
    assert sum(int(row["requests"]) for row in table) == sum(each.requests for each in wanted)


def test_report_names_its_days_and_the_begin_of_recording() -> None:
    made = report([CallerCount(TODAY - 3, Caller("demo", "erp", "parts/match", ""), 1, 0, 0)], 2)
    assert (made.first_day, made.last_day) == ("2023-11-13", "2023-11-14")
    assert made.recorded_since == "2023-11-11T00:00:00Z"
    assert report([], 1).recorded_since is None


def test_csv_comes_in_chunks_of_a_thousand_rows() -> None:
    callers = [Caller("demo", "erp", "parts/match", f"program {number}") for number in range(2_500)]
    made = report([CallerCount(TODAY, caller, 1, 0, 0) for caller in callers], 1)
    chunks = [chunk.splitlines() for chunk in client_report.csv_chunks(made)]
    assert [len(lines) for lines in chunks] == [1_000, 1_000, 502]  # with the heading and the key without requests
