"""Callers of a process: which requests are counted, as whose, how many callers are told apart, and how all of it comes
to the store."""

import json
from typing import Any

import msgspec
import pytest
from support import log_lines
from support.store_client import BrokenStore

from proxy import errors
from proxy.gateway.recording import (
    ADDRESS_KEYS_MAX,
    CALLERS_MAX,
    OTHERS,
    PENDING_MAX,
    UNKNOWN_MAX,
    SeenRequests,
)
from proxy.kit.clock import ManualClock
from proxy.model import FailureDetail, Seen
from proxy.redaction import Redaction
from proxy.store.protocol import CLIENT, DAY_SECONDS
from proxy.store.sqlite import SqliteStore

DAY = 19_675
MIDNIGHT = float(DAY * DAY_SECONDS)
MATCH = Seen("client", DAY, "demo", "erp", "parts/match", "curl/8", "")


def seen(*shown: Any) -> SeenRequests:
    store: Any = None
    return SeenRequests(store, *shown)


def add(
    counts: SeenRequests,
    at: float = MIDNIGHT,
    route: str = "/v3/parts/match",
    user_agent: str = "curl/8",
    **fields: Any,
) -> None:
    counts.add_client(at, route, user_agent, **{"application": "demo", "key": "erp", **fields})


def add_unknown(counts: SeenRequests, user_agent: str = "curl/8", error: str = "ForbiddenKey") -> None:
    add(counts, user_agent=user_agent, application=None, key=None, error=error)


def taken(counts: SeenRequests) -> list[Seen]:
    taken = list(counts.take())
    assert list(counts.take()) == []
    return taken


def test_days_and_unsupported_uses_are_told_apart() -> None:
    counts = seen()
    add(counts, MIDNIGHT - 1)
    add(counts, unsupported=("sortby (ignored)", "show[]=x (no source)"))
    uses = MATCH._replace(detail="sortby (ignored), show[]=x (no source)")
    assert taken(counts) == [
        MATCH._replace(day=DAY - 1, requests=1, last=MIDNIGHT - 1),
        uses._replace(requests=1, last=MIDNIGHT),
    ]


def test_requests_without_a_valid_key_are_counted_under_no_key() -> None:
    counts = seen()
    for error in ("ForbiddenKey", "MissingKey", "TooManyRequests"):
        add_unknown(counts, error=error)
    assert taken(counts) == [MATCH._replace(application="", key="", requests=3, last=MIDNIGHT)]


def test_callers_of_a_key_and_day_are_bounded() -> None:
    counts = seen()
    for _ in range(2):  # also over several writes of a day
        for number in range(3 * CALLERS_MAX):
            add(counts, user_agent=f"agent/{number}")
        add(counts, key="other")
        agents = {each.user_agent: each.requests for each in taken(counts) if each.key == "erp"}
        assert (len(agents), agents[OTHERS]) == (CALLERS_MAX + 1, 2 * CALLERS_MAX)
    add(counts, MIDNIGHT + DAY_SECONDS, user_agent="agent/250")
    assert taken(counts)[0].user_agent == "agent/250"


def test_fewer_callers_are_told_apart_without_a_key() -> None:
    counts = seen()
    for number in range(100):
        add_unknown(counts, f"agent/{number}")
    days = taken(counts)
    assert (len(days), days[-1].user_agent, days[-1].requests) == (UNKNOWN_MAX + 1, OTHERS, 100 - UNKNOWN_MAX)


def test_memory_is_bounded_while_nothing_is_taken() -> None:
    counts = seen()
    total = PENDING_MAX * 2
    for number in range(total):
        add(counts, key=str(number // CALLERS_MAX), user_agent=f"agent/{number}")
    for number in range(100):
        counts.add_unknown(str(number), str(number), f"::{number}", "", MIDNIGHT)
        counts.add_failure(MIDNIGHT, "/v3/parts/match", None, None, FailureDetail(str(number), "GET", 500, 1.0, "X"))
    kinds: dict[str, list[Seen]] = {"client": [], "unknown key": [], "failure": []}
    for each in taken(counts):
        kinds[each.kind].append(each)
    assert len(kinds["client"]) <= PENDING_MAX + total // CALLERS_MAX
    assert sum(each.requests for each in kinds["client"]) == total
    assert not kinds["unknown key"]
    assert len(kinds["failure"]) == 50
    assert '"99"' in kinds["failure"][-1].detail


def test_failure_shows_no_key_and_of_a_long_request_no_text() -> None:
    counts = seen(Redaction(), lambda target, keys: keys.text(target))
    for target in ("/v3/parts/match?apikey=THE_KEY&q=x+THE_KEY", f"/v3/parts/match?apikey=THE_KEY&q={'x' * 4_000}"):
        detail = FailureDetail("1", "GET", 400, 1.0, "X", "THE_KEY is no number", target)
        counts.add_failure(MIDNIGHT, "/v3/parts/match", None, None, detail)
    shown = [msgspec.json.decode(each.detail) for each in taken(counts)]
    assert [(each["message"], each["target"]) for each in shown] == [
        ("… is no number", "/v3/parts/match?apikey=…&q=x+…"),
        ("", ""),
    ]


def test_keys_of_one_address_and_day_are_bounded() -> None:
    counts = seen()
    for day in (0, 1):
        for number in range(2 * ADDRESS_KEYS_MAX):
            counts.add_unknown(f"{day} {number}", f"{day} {number}", "::1", "", MIDNIGHT + day * DAY_SECONDS)
        assert len(taken(counts)) == ADDRESS_KEYS_MAX


@pytest.fixture
async def store() -> Any:
    opened = await SqliteStore.open(None, ManualClock(MIDNIGHT), "worker", 2**20)
    store = BrokenStore(opened)
    store.broken = {"add_seen"}
    yield store
    await opened.aclose()


@pytest.mark.parametrize("loses", [False, True])
async def test_counts_wait_for_a_store_that_is_unavailable_and_are_added_once(store: Any, loses: bool) -> None:
    counts, store.loses = SeenRequests(store), loses
    for _ in range(3):
        add(counts)
        with pytest.raises(errors.StoreUnavailable):
            await counts.write()
    store.broken = set()
    await counts.write()
    assert await store.seen(CLIENT, 0) == [MATCH._replace(requests=3, last=MIDNIGHT)]


async def test_counts_that_cannot_be_written_at_the_end_are_logged(store: Any) -> None:
    counts = SeenRequests(store)
    for _ in range(4):
        add(counts)
    with log_lines.collected() as stream:
        await counts.close()
    line = json.loads(stream.getvalue())
    assert (line["event"], line["level"], line["requests"]) == ("caller counts lost", "warning", 4)
