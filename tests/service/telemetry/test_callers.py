"""Callers of a process: which requests are counted, as whose, and how many callers are told apart."""

from typing import Any

from proxy.telemetry.callers import (
    CALLERS_MAX,
    DAY_SECONDS,
    KEYS_MAX,
    OTHERS,
    PENDING_MAX,
    UNKNOWN_MAX,
    Caller,
    CallerCount,
    CallerCounts,
)

DAY = 19_675
MIDNIGHT = float(DAY * DAY_SECONDS)
MATCH = Caller("demo", "erp", "parts/match", "curl/8", "")


def add(
    counts: CallerCounts,
    at: float = MIDNIGHT,
    route: str = "/v3/parts/match",
    user_agent: str = "curl/8",
    **fields: Any,
) -> None:
    counts.add(at, route, user_agent, **{"application": "demo", "key": "erp", **fields})


def add_unknown(counts: CallerCounts, user_agent: str = "curl/8", error: str = "ForbiddenKey") -> None:
    add(counts, user_agent=user_agent, application=None, key=None, error=error)


def taken(counts: CallerCounts) -> list[CallerCount]:
    taken = counts.take()[0]
    assert counts.take() == ([], [])
    return taken


def test_both_prefixes_and_a_trailing_slash_are_one_endpoint() -> None:
    counts = CallerCounts()
    for at, route in enumerate(("/v3/parts/{uid}", "/api/v3/parts/{uid}", "/v3/parts/{uid}/")):
        add(counts, MIDNIGHT + at, route)
    assert taken(counts) == [CallerCount(DAY, MATCH._replace(endpoint="parts/{uid}"), 3, int(MIDNIGHT) + 2)]


def test_days_and_unsupported_uses_are_told_apart() -> None:
    counts = CallerCounts()
    add(counts, MIDNIGHT - 1)
    add(counts, unsupported=("sortby (ignored)", "show[]=x (no source)"))
    uses = MATCH._replace(unsupported="sortby (ignored), show[]=x (no source)")
    assert taken(counts) == [
        CallerCount(DAY - 1, MATCH, 1, int(MIDNIGHT) - 1),
        CallerCount(DAY, uses, 1, int(MIDNIGHT)),
    ]


def test_requests_without_a_valid_key_are_counted_under_no_key() -> None:
    counts = CallerCounts()
    for error in ("ForbiddenKey", "MissingKey", "TooManyRequests"):
        add_unknown(counts, error=error)
    assert taken(counts) == [CallerCount(DAY, Caller("", "", "parts/match", "curl/8", ""), 3, int(MIDNIGHT))]


def test_what_says_nothing_of_a_client_is_not_counted() -> None:
    counts = CallerCounts()
    for error in ("TooManyConnections", "MethodNotAllowed"):
        add_unknown(counts, error=error)
    for route in ("unknown", "/", "/v3/openapi.json"):
        add(counts, route=route)
    assert taken(counts) == []


def test_callers_of_a_key_and_day_are_bounded() -> None:
    counts = CallerCounts()
    for _ in range(2):  # also over several writes of a day
        for number in range(3 * CALLERS_MAX):
            add(counts, user_agent=f"agent/{number}")
        add(counts, key="other")
        agents = {each.caller.user_agent: each.requests for each in taken(counts) if each.caller.key == "erp"}
        assert (len(agents), agents[OTHERS]) == (CALLERS_MAX + 1, 2 * CALLERS_MAX)
    add(counts, MIDNIGHT + DAY_SECONDS, user_agent="agent/250")
    assert taken(counts)[0].caller.user_agent == "agent/250"


def test_fewer_callers_are_told_apart_without_a_key() -> None:
    counts = CallerCounts()
    for number in range(100):
        add_unknown(counts, f"agent/{number}")
    days = taken(counts)
    assert (len(days), days[-1].caller.user_agent, days[-1].requests) == (UNKNOWN_MAX + 1, OTHERS, 100 - UNKNOWN_MAX)


def test_memory_is_bounded_while_nothing_is_taken() -> None:
    counts = CallerCounts()
    total = PENDING_MAX * 2
    for number in range(total):
        add(counts, key=str(number // CALLERS_MAX), user_agent=f"agent/{number}")
    for number in range(2 * KEYS_MAX):
        counts.add_unknown(str(number), str(number), "::1", "", MIDNIGHT)
    days, unknown = counts.take()
    assert len(days) <= PENDING_MAX + total // CALLERS_MAX
    assert sum(each.requests for each in days) == total
    assert len(unknown) == KEYS_MAX
