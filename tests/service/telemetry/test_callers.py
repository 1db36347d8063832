"""Callers of a process: which requests are counted, as whose, and how many callers are told apart."""

import gc
from collections import Counter
from typing import cast

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.telemetry.activity import RequestRecord, RequestValues
from proxy.telemetry.callers import (
    BOUNDS_MS,
    CALLERS_MAX,
    DAY_SECONDS,
    KEYS_MAX,
    OTHERS,
    PENDING_MAX,
    UNKNOWN_MAX,
    UNSUPPORTED_MAX,
    Caller,
    CallerCount,
    CallerCounts,
    CallerSeen,
    KeyDurations,
    MonthlyRequests,
    UnsupportedUse,
)

DAY = 19_675
MIDNIGHT = float(DAY * DAY_SECONDS)


def record(
    at: float = MIDNIGHT,
    route: str = "/v3/parts/match",
    user_agent: str = "curl/8",
    *,
    status: int = 200,
    application: str | None = "demo",
    key: str | None = "erp",
    parts: int | None = None,
    error: str | None = None,
    cache: str | None = None,
    ms: float = 1.0,
    unsupported: tuple[str, ...] = (),
) -> RequestRecord:
    return RequestRecord(
        *(at, "id", "GET", route, route, status, ms, "::1", user_agent, application, key, parts, cache, error),
        unsupported=unsupported,
    )


def values(request: RequestRecord) -> RequestValues:
    return cast(RequestValues, msgspec.structs.astuple(request))


def unknown(user_agent: str = "curl/8", error: str = "ForbiddenKey") -> RequestRecord:
    return record(user_agent=user_agent, status=403, application=None, key=None, error=error)


def counted(*records: RequestRecord) -> tuple[list[CallerSeen], list[CallerCount]]:
    counts = CallerCounts()
    for each in records:
        counts.add(values(each))
    seen, by_day = counts.take()
    assert counts.take() == ([], [])
    return seen, by_day


def test_both_prefixes_and_a_trailing_slash_are_one_endpoint() -> None:
    routes = ["/v3/parts/{uid}", "/api/v3/parts/{uid}", "/v3/parts/{uid}/"]
    caller = Caller("demo", "erp", "parts/{uid}", "curl/8")
    assert counted(*(record(MIDNIGHT + at, route, parts=2) for at, route in enumerate(routes))) == (
        [CallerSeen(caller, int(MIDNIGHT), int(MIDNIGHT) + 2)],
        [CallerCount(DAY, caller, 3, 0, 6, 0, 3)],
    )


def test_errors_are_counted_whatever_status_they_are_sent_with() -> None:
    _, (count,) = counted(
        record(), record(status=410, error="Gone"), record(status=200, error="BadRequest"), record(status=404)
    )
    assert (count.requests, count.errors, count.parts) == (4, 3, 0)


def test_requests_without_a_valid_key_are_counted_under_no_key() -> None:
    _, days = counted(unknown(), unknown(error="MissingKey"), unknown(error="TooManyRequests"))
    assert days == [CallerCount(DAY, Caller("", "", "parts/match", "curl/8"), 3, 3, 0, 0, 3)]


def test_what_says_nothing_of_a_client_is_not_counted() -> None:
    excess = unknown(error="TooManyConnections")
    unserved = [record(route=route) for route in ("unknown", "/", "/v3/openapi.json")]
    assert counted(excess, unknown(error="MethodNotAllowed"), *unserved) == ([], [])


def test_callers_of_a_key_and_day_are_bounded() -> None:
    counts = CallerCounts()
    for _ in range(2):  # also over several writes of a day
        for number in range(3 * CALLERS_MAX):
            counts.add(values(record(user_agent=f"agent/{number}")))
        counts.add(values(record(key="other")))
        agents = {each.caller.user_agent: each.requests for each in counts.take()[1] if each.caller.key == "erp"}
        assert (len(agents), agents[OTHERS]) == (CALLERS_MAX + 1, 2 * CALLERS_MAX)
    counts.add(values(record(MIDNIGHT + DAY_SECONDS, user_agent="agent/250")))
    assert counts.take()[0][0].caller.user_agent == "agent/250"


def test_fewer_callers_are_told_apart_without_a_key() -> None:
    _, days = counted(*(unknown(f"agent/{number}") for number in range(100)))
    assert (len(days), days[-1].caller.user_agent, days[-1].requests) == (UNKNOWN_MAX + 1, OTHERS, 100 - UNKNOWN_MAX)


def test_memory_is_bounded_while_nothing_is_taken() -> None:
    counts = CallerCounts()
    total = PENDING_MAX * 2
    for number in range(total):
        counts.add(values(record(key=str(number // CALLERS_MAX), user_agent=f"agent/{number}")))
    _, days = counts.take()
    keys = total // CALLERS_MAX
    assert len(days) <= PENDING_MAX + keys
    assert sum(each.requests for each in days) == total


RECORDS = st.builds(
    record,
    st.floats(MIDNIGHT - 3 * DAY_SECONDS, MIDNIGHT, exclude_max=True),
    st.sampled_from(["/v3/parts/match", "/api/v3/parts/match", "/v3/brands/{uid}"]),
    st.sampled_from(["curl/8", "", "é"]),
    status=st.sampled_from([200, 410]),
    key=st.sampled_from(["erp", "2"]),
    parts=st.sampled_from([None, 0, 3]),
    cache=st.sampled_from([None, "hit", "miss"]),
)


@settings(deadline=None)
@given(records=st.lists(RECORDS))
def test_any_requests_are_counted_as_by_hand(records: list[RequestRecord]) -> None:
    seen, days = counted(*records)
    requests: Counter[tuple[int, Caller]] = Counter()
    failed: Counter[tuple[int, Caller]] = Counter()
    parts: Counter[tuple[int, Caller]] = Counter()
    hits: Counter[tuple[int, Caller]] = Counter()
    times: dict[Caller, list[int]] = {}
    for each in records:
        endpoint = "parts/match" if "match" in each.route else "brands/{uid}"
        caller = Caller("demo", each.key or "", endpoint, each.user_agent)
        place = int(each.at // DAY_SECONDS), caller
        requests[place] += 1
        failed[place] += each.status == 410
        parts[place] += each.parts or 0
        hits[place] += each.cache == "hit"
        times.setdefault(caller, []).append(int(each.at))
    assert sorted(days) == sorted(
        CallerCount(*place, requests[place], failed[place], parts[place], hits[place], requests[place])
        for place in requests
    )
    assert sorted(seen) == sorted(CallerSeen(caller, min(at), max(at)) for caller, at in times.items())


def test_durations_are_counted_by_key_and_day() -> None:
    counts = CallerCounts()
    for at, ms in ((0, 0.3), (1, 5), (2, 5.1), (3, 90_000), (DAY_SECONDS, 6)):
        counts.add(values(record(MIDNIGHT + at, ms=ms)))
    counts.add(values(record(application=None, key=None, error="MissingKey")))
    day, none = int(MIDNIGHT // DAY_SECONDS), (0,) * (len(BOUNDS_MS) - 2)
    assert counts.take_durations() == [
        KeyDurations(day, "demo", "erp", (2, 1, *none, 1)),
        KeyDurations(day + 1, "demo", "erp", (0, 1, *none, 0)),
    ]
    assert counts.take_durations() == []


def test_unsupported_uses_are_added_up_by_key() -> None:
    counts = CallerCounts()
    for at, names in enumerate([("sortby price",), ("sortby price", "include[]=x (no source)"), ()]):
        counts.add(values(record(MIDNIGHT + at, unsupported=names)))
    counts.add(values(record(application=None, key=None, error="MissingKey", unsupported=("a",))))
    begin = int(MIDNIGHT)
    assert counts.take_unsupported() == [
        UnsupportedUse("demo", "erp", "sortby price", 2, begin, begin + 1),
        UnsupportedUse("demo", "erp", "include[]=x (no source)", 1, begin + 1, begin + 1),
    ]
    assert counts.take_unsupported() == []
    for number in range(2 * UNSUPPORTED_MAX):
        counts.add(values(record(MIDNIGHT, unsupported=(f"filter[fields][{number}]",))))
    uses = counts.take_unsupported()
    assert len(uses) == UNSUPPORTED_MAX - 1  # two of the day were counted before
    assert uses[-1] == UnsupportedUse("demo", "erp", OTHERS, UNSUPPORTED_MAX + 2, begin, begin)


def test_counts_are_no_work_for_the_garbage_collector() -> None:
    """A report of 20 000 callers has hundreds of thousands of them; a collection of these stops the event loop."""
    _, (count,) = counted(record())
    assert not gc.is_tracked(count)


def test_unknown_keys_are_bounded_and_never_in_a_user_agent() -> None:
    counts = CallerCounts()
    for number in range(2 * KEYS_MAX):
        key = f"wrong-key-{number}"
        counts.add_unknown(key, f"digest {number}", "192.0.2.1", f"curl/8 {key} \x1b[31m", MIDNIGHT + number)
    counts.add_unknown("wrong-key-0", "digest 0", "192.0.2.9", "other/1", MIDNIGHT - 5)
    first, second, *others = counts.take_unknown()
    assert first == ("digest 0", "192.0.2.9", "curl/8 … �[31m", int(MIDNIGHT) - 5, int(MIDNIGHT), 2)
    assert (second.digest, second.requests, len(others)) == ("digest 1", 1, KEYS_MAX - 2)
    assert counts.take_unknown() == []


def test_requests_of_a_month_are_those_of_a_key_whatever_it_requests() -> None:
    counts, december = CallerCounts(), MIDNIGHT + 17 * DAY_SECONDS
    for at, route, cache, cached, coalesced in (
        (december - 1.0, "/v3/parts/match", "hit", 3, 0),
        (december - DAY_SECONDS, "/graphql", "shared", 2, 5),
        (december - 2.0, "/v3/brands/search", None, 0, 0),
        (december, "/v3/parts/match", "hit", 4, 0),
    ):
        request = record(at, route)
        counts.add(
            values(msgspec.structs.replace(request, cache=cache, cached_parts=cached, coalesced_parts=coalesced))
        )
    counts.add(values(unknown()))
    assert sorted(counts.take_months()) == [
        MonthlyRequests("2023-11", "demo", "erp", 3, 1, 5, 5),
        MonthlyRequests("2023-12", "demo", "erp", 1, 1, 4, 0),
    ]
    assert counts.take_months() == []
