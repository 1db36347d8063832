"""Operations that cost no parts: one at a time for all that ask, and kept for five minutes."""

import asyncio
import math
from typing import Any

import msgspec
import pytest
from service.gateway.world import client

from proxy import errors
from proxy.gateway.free_operations import FreeOperations
from proxy.kit.clock import ManualClock
from proxy.model import EncodedOperation
from proxy.planning.documents import Document, PartialData
from proxy.upstream.identity import Credentials

COUNT = Document("supSearch", "query supSearch($q: String) { supSearch(q: $q) { hits } }", dict[str, Any])
APPLICATION = client().application
OTHER = client(client_id="other").application
SECONDS = 30.0


def operation(q: str) -> EncodedOperation:
    return COUNT.operation({"q": q}, 0)


class _Upstream:
    """Returns what it is asked for, with more hits each time, or raises an error; a gate holds responses back."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str]] = []
        self.error: errors.BridgeError | None = None
        self.beside: list[dict[str, str]] = []
        self.padding = ""
        self.gate = asyncio.Event()
        self.gate.set()

    async def send(self, operation: EncodedOperation, credentials: Credentials, seconds: float) -> Any:
        assert seconds == SECONDS
        q = msgspec.json.decode(operation.payload)["variables"]["q"]
        self.sent.append((str(credentials.client_id), q))
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        data = {"supSearch": {"q": q, "hits": len(self.sent), "padding": self.padding}}
        return operation.decode(msgspec.json.encode({"data": data, "errors": self.beside})).data


@pytest.fixture
def upstream() -> _Upstream:
    return _Upstream()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def free(upstream: _Upstream, clock: ManualClock) -> Any:
    opened = FreeOperations(upstream.send, clock, SECONDS, {}, {})
    yield opened
    await opened.aclose()


async def hits(free: FreeOperations, q: str, application: Any = APPLICATION, deadline: float = math.inf) -> int:
    data = await free.execute(application, operation(q), deadline)
    data = data.data if isinstance(data, PartialData) else data
    assert data["supSearch"]["q"] == q
    return int(data["supSearch"]["hits"])


async def test_equal_operations_under_way_are_one(free: FreeOperations, upstream: _Upstream) -> None:
    assert await asyncio.gather(*(hits(free, "a") for _ in range(3)), hits(free, "b")) == [1, 1, 1, 2]


async def test_data_is_kept_for_five_minutes(free: FreeOperations, upstream: _Upstream, clock: ManualClock) -> None:
    assert await hits(free, "a") == 1
    clock.advance(299)
    assert await hits(free, "a") == 1
    clock.advance(2)
    assert await hits(free, "a") == 2


async def test_each_application_has_its_own(free: FreeOperations, upstream: _Upstream) -> None:
    assert [await hits(free, "a"), await hits(free, "a", OTHER)] == [1, 2]
    assert [client_id for client_id, _ in upstream.sent] == ["erp", "other"]


async def test_what_has_errors_is_not_kept(free: FreeOperations, upstream: _Upstream) -> None:
    upstream.beside = [{"message": "a field failed"}]
    assert [await hits(free, "a"), await hits(free, "a")] == [1, 2]


async def test_error_is_that_of_all_who_wait_and_not_kept(free: FreeOperations, upstream: _Upstream) -> None:
    upstream.error = errors.UpstreamFault("failed")
    outcomes = await asyncio.gather(*(hits(free, "a") for _ in range(2)), return_exceptions=True)
    assert [str(each) for each in outcomes] == ["failed", "failed"]
    upstream.error = None
    assert await hits(free, "a") == 2


async def test_what_is_kept_is_bounded(free: FreeOperations, upstream: _Upstream) -> None:
    upstream.padding = "x" * 200_000
    for number in range(40):
        await hits(free, str(number))
    assert await hits(free, "39") == 40
    assert await hits(free, "0") == 41
    upstream.padding = "x" * 300_000
    assert [await hits(free, "large"), await hits(free, "large")] == [42, 43]


async def test_caller_waits_until_its_deadline_and_the_operation_goes_on(
    free: FreeOperations, upstream: _Upstream, clock: ManualClock
) -> None:
    upstream.gate.clear()
    with pytest.raises(errors.DeadlineExceeded):
        await hits(free, "a", deadline=clock.monotonic() + 0.01)
    upstream.gate.set()
    assert await hits(free, "a") == 1
