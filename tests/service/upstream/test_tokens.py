"""Access tokens of one process and of several with one store, with a manual clock and a scripted identity service."""

import asyncio
import io
from dataclasses import replace
from typing import Any

import pytest
from service.upstream.identity_service import CREDENTIALS, DAY, URL, background
from support.time_limit import until

from proxy import config, errors
from proxy import metrics as metering
from proxy.upstream.tokens import LEASE_SECONDS, POLL_SECONDS, REFUSED_SECONDS, CachedToken, Credentials

OTHER = Credentials("other", "other-id", CREDENTIALS.client_secret)
AWAY = {"values", "put_value", "take"}  # what is asked of a store that is away
TAKES_NONE = errors.CredentialsRefused("no token of demo is taken")


async def test_renewals_of_applications_are_spread(start: Any, service: Any) -> None:
    others = [Credentials(f"a{n}", f"id{n}", CREDENTIALS.client_secret) for n in range(20)]
    worker = start(*others)
    service.grant(times=40)
    for seconds in (0, DAY - 450):
        service.clock.advance(seconds)
        for other in others:
            await worker.get(other)
    await background()
    assert 25 <= len(service.requests) <= 35


async def test_short_lifetime_has_a_short_renewal_lead(worker: Any, service: Any) -> None:
    service.grant(life=40, times=2)
    requests = []
    for seconds in (0, 19.9, 10.2):
        service.clock.advance(seconds)
        await worker.get(CREDENTIALS)
        await background()
        requests.append(len(service.requests))
    assert requests == [1, 1, 2]


@pytest.mark.parametrize("failure", [None, RuntimeError("a mistake in the program")])
async def test_failed_renewal_keeps_the_token_and_is_retried(
    worker: Any, service: Any, log_output: io.StringIO, failure: Exception | None
) -> None:
    service.grant()
    first = await worker.get(CREDENTIALS)
    service.clock.advance(DAY - 300)
    service.mock.post(URL, exception=failure, repeat=True) if failure else service.refuse(500)
    for _ in range(2):
        assert await worker.get(CREDENTIALS) == first
        await background()
    assert (type(failure).__name__ if failure else "UpstreamFault") in log_output.getvalue()
    assert len(service.requests) == (1 if failure else 2)
    service.mock.clear()
    service.clock.advance(REFUSED_SECONDS)
    service.grant()
    assert await worker.get(CREDENTIALS) == first
    await background()
    assert await worker.get(CREDENTIALS) != first


async def test_clock_set_back_does_not_extend_a_back_off(worker: Any, start: Any, service: Any) -> None:
    service.refuse(400, {"error": "invalid_client"})
    with pytest.raises(errors.CredentialsRefused):
        await worker.get(CREDENTIALS)
    service.clock.advance(-7200)
    service.grant()
    assert await start().get(CREDENTIALS) == await worker.get(CREDENTIALS)


async def test_refused_credentials_start_a_back_off_of_all_workers(
    start: Any, service: Any, metrics: metering.Metrics, log_output: io.StringIO
) -> None:
    service.refuse(400, {"error": "invalid_client", "error_description": "the-secret"})
    for worker in (start(), start()):
        for _ in range(2):
            with pytest.raises(errors.CredentialsRefused, match="demo: invalid_client"):
                await worker.get(CREDENTIALS)
    assert len(service.requests) == 1
    assert "CredentialsRefused: the identity service refuses application demo" in log_output.getvalue()
    assert "the-secret" not in log_output.getvalue()
    service.clock.advance(REFUSED_SECONDS)
    service.grant()
    await start().get(CREDENTIALS)
    text = metrics.text().decode()
    assert 'token_requests_total{application="demo",outcome="CredentialsRefused"} 1.0' in text
    assert 'token_requests_total{application="demo",outcome="ok"} 1.0' in text


async def test_refused_new_token_starts_a_back_off(start: Any, service: Any) -> None:
    first, second = start(), start()
    service.grant(times=2)
    await first.invalidate(CREDENTIALS, await first.get(CREDENTIALS), TAKES_NONE)
    for worker in (first, second):
        with pytest.raises(errors.CredentialsRefused, match=str(TAKES_NONE)) as found:
            await worker.get(CREDENTIALS)
        assert found.value.retry_after == 30
    assert len(service.requests) == 1
    service.clock.advance(REFUSED_SECONDS)
    await first.get(CREDENTIALS)
    for worker in (first, second):
        assert str(worker.known["demo"].refusal) == str(TAKES_NONE)


async def test_token_refused_after_acceptance_is_replaced_at_once(worker: Any, service: Any) -> None:
    service.grant(times=2)
    token = await worker.get(CREDENTIALS)
    worker.known["demo"].accepted = token
    await worker.invalidate(CREDENTIALS, token, TAKES_NONE)
    assert await worker.get(CREDENTIALS) != token
    assert worker.known["demo"].refusal is None


async def test_429_retry_after_counts_down(worker: Any, service: Any) -> None:
    service.refuse(429, {"error": "slow_down"}, **{"Retry-After": "40"})
    for seconds in (40, 30):
        with pytest.raises(errors.TokenLimit) as found:
            await worker.get(CREDENTIALS)
        assert found.value.retry_after == seconds
        service.clock.advance(10)
    assert len(service.requests) == 1


async def test_requests_count_in_windows_of_all_workers_when_they_arrive(start: Any, service: Any) -> None:
    """The first takes 0.9 s on its way."""
    workers = start(), start()
    for number, seconds in enumerate((0.9, 0.0, 0.0, 0.5, 0.0, 0.0)):
        service.grant(seconds=seconds)
        worker = workers[number % 2]
        await worker.invalidate(CREDENTIALS, await worker.get(CREDENTIALS))
    assert len(service.arrived) == 6
    assert all(later - first >= 1.0 for first, later in zip(service.arrived, service.arrived[2:], strict=False))


async def test_rate_limit_belongs_to_the_client_id_and_outlives_workers(start: Any, service: Any) -> None:
    service.grant(times=201)
    for _ in range(200):
        worker = start()
        await worker.invalidate(CREDENTIALS, await worker.get(CREDENTIALS))
        await worker.close()
    with_new_secret = replace(CREDENTIALS, client_secret=config.Secret("a new secret"))
    with pytest.raises(errors.TokenLimit, match="application demo has asked for too many tokens") as found:
        await start(with_new_secret).get(with_new_secret)
    assert found.value.retry_after == 900 - 99  # two were requested in each second
    assert len(service.requests) == 200
    assert await start(OTHER).get(OTHER)


async def test_application_without_credentials_is_refused(start: Any, service: Any) -> None:
    bare = Credentials("bare", None, None)
    with pytest.raises(errors.CredentialsRefused, match="application bare has no client id and secret"):
        await start(bare).get(bare)
    assert not service.requests


async def test_callers_that_leave_do_not_end_the_token_request(start: Any, service: Any) -> None:
    go = asyncio.Event()
    service.grant(when=go)
    requesting, waiting = start(), start()
    for seconds in (0.05, -1.0):
        with pytest.raises(errors.UpstreamUnreachable, match="no token of application demo in time") as caught:
            await asyncio.wait_for(requesting.get(CREDENTIALS, seconds), 20)
        assert not caught.value.may_be_billed
    callers = [asyncio.create_task(worker.get(CREDENTIALS)) for worker in (requesting, requesting, waiting, waiting)]
    await background()
    for leaving in callers[::2]:
        leaving.cancel()
    go.set()
    assert await callers[1] == await callers[3]
    assert len(service.requests) == 1


@pytest.mark.parametrize(
    "change, seconds", [({"client_secret": config.Secret("another")}, 0), ({"client_id": "another"}, 0), ({}, DAY)]
)
async def test_token_of_other_credentials_or_that_has_expired_is_not_used(
    start: Any, service: Any, change: Any, seconds: float
) -> None:
    service.grant(times=2)
    other = replace(CREDENTIALS, **change)
    old = await start().get(CREDENTIALS)
    service.clock.advance(seconds)
    assert await start(other).get(other) != old


async def test_refused_token_is_not_read_from_the_store_again(worker: Any, service: Any, shared_store: Any) -> None:
    service.grant(times=2)
    old = await worker.get(CREDENTIALS)
    shared_store.broken = AWAY
    await worker.invalidate(CREDENTIALS, old, TAKES_NONE)
    shared_store.broken = set()
    assert worker.known["demo"].refusal is TAKES_NONE
    assert await worker.get(CREDENTIALS) != old


async def test_failure_is_shared_by_workers_and_the_back_off_grows_until_success(start: Any, service: Any) -> None:
    workers = [start() for _ in range(3)]
    waits = []
    for number in range(8):
        if number == 6:
            service.grant()
            await workers[0].invalidate(CREDENTIALS, await workers[0].get(CREDENTIALS))
        service.refuse(500)
        callers = (worker.get(CREDENTIALS) for worker in workers)
        found: list[Any] = await asyncio.gather(*callers, return_exceptions=True)
        message = "the identity service answered with HTTP 500"
        assert {(type(error), str(error), error.status) for error in found} == {(errors.UpstreamFault, message, 502)}
        waits.append({error.retry_after for error in found})
        workers.append(workers.pop(0))
        service.clock.advance(max(waits[-1]))
    assert waits == [{1}, {2}, {4}, {8}, {15}, {15}, {1}, {2}]
    assert len(service.requests) == 9


async def test_stopping_worker_ends_the_lease(start: Any, service: Any) -> None:
    responding = asyncio.Event()
    service.grant(when=responding)
    stopping, staying = start(), start()
    leaving = asyncio.create_task(stopping.get(CREDENTIALS))
    await until(lambda: service.requests)
    await stopping.close()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    responding.set()
    started = service.clock.now()
    assert await staying.get(CREDENTIALS)
    assert service.clock.now() == started


async def test_another_process_requests_the_token_when_one_died(worker: Any, service: Any, shared_store: Any) -> None:
    stored = CachedToken(shared_store, URL, CREDENTIALS, service.clock)
    await shared_store.put_value(stored.lease, "a process that was killed", LEASE_SECONDS)
    service.grant()
    started = service.clock.now()
    assert await worker.get(CREDENTIALS)
    assert service.clock.now() - started == pytest.approx(LEASE_SECONDS, abs=2 * POLL_SECONDS)


async def test_process_without_the_store_uses_its_token_and_requests_none(
    start: Any, service: Any, shared_store: Any
) -> None:
    responding = asyncio.Event()
    service.grant(when=responding)
    worker = start(CREDENTIALS, OTHER)
    requesting = asyncio.create_task(worker.get(CREDENTIALS))
    await until(lambda: service.requests)
    shared_store.broken = AWAY  # before it can take the token
    responding.set()
    assert await requesting == await worker.get(CREDENTIALS)
    with pytest.raises(errors.StoreUnavailable):
        await worker.get(OTHER)
    assert len(service.requests) == 1
