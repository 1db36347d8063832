"""Access tokens of one process and of several with one store, with a manual clock and a scripted identity service."""

import asyncio
import io
import random
from dataclasses import replace
from typing import Any

import aiohttp
import pytest
from service.upstream.identity_service import CREDENTIALS, DAY, URL, background, until

from proxy import config, errors
from proxy import metrics as metering
from proxy.kit import clock as clocks
from proxy.upstream import identity, stored_tokens, tokens


@pytest.fixture
async def start(clock: clocks.ManualClock, metrics: metering.Metrics, shared_store: Any) -> Any:
    """Starts a process; all share a store. Waiting turns the clock."""

    async def sleep(seconds: float) -> None:
        clock.advance(seconds)
        await asyncio.sleep(0)

    processes: list[tokens.Tokens] = []
    async with aiohttp.ClientSession() as session:

        def started() -> tokens.Tokens:
            rng = random.Random(len(processes) + 1)
            known = tokens.Tokens(session, URL, store=shared_store, clock=clock, rng=rng, metrics=metrics, sleep=sleep)
            processes.append(known)
            return known

        yield started
        for process in processes:
            await process.close()


@pytest.fixture
async def store(start: Any) -> Any:
    """One process alone."""
    return start()


async def test_renewals_of_applications_are_spread(store: Any, service: Any) -> None:
    others = [identity.Credentials(f"a{n}", f"id{n}", CREDENTIALS.client_secret) for n in range(20)]
    service.grant(times=40)
    for other in others:
        await store.get(other)
    service.clock.advance(DAY - 450)
    for other in others:
        await store.get(other)
    await background()
    assert 25 <= len(service.requests) <= 35


async def test_short_lifetime_has_a_short_renewal_lead(store: Any, service: Any) -> None:
    service.grant(life=40, times=2)
    await store.get(CREDENTIALS)
    service.clock.advance(19.9)
    await store.get(CREDENTIALS)
    await background()
    assert len(service.requests) == 1
    service.clock.advance(10.2)
    await store.get(CREDENTIALS)
    await background()
    assert len(service.requests) == 2


async def test_failed_renewal_keeps_the_token_and_is_retried(store: Any, service: Any) -> None:
    service.grant()
    first = await store.get(CREDENTIALS)
    service.clock.advance(DAY - 300)
    service.refuse(500)
    assert await store.get(CREDENTIALS) == first
    await background()
    assert await store.get(CREDENTIALS) == first
    await background()
    assert len(service.requests) == 2
    service.clock.advance(tokens.REFUSED_SECONDS)
    service.grant()
    assert await store.get(CREDENTIALS) == first
    await background()
    assert await store.get(CREDENTIALS) != first


async def test_invalidate_keeps_a_newer_token(store: Any, service: Any) -> None:
    service.grant(times=2)
    first = await store.get(CREDENTIALS)
    await store.invalidate(CREDENTIALS, first)
    second = await store.get(CREDENTIALS)
    await store.invalidate(CREDENTIALS, first)
    assert await store.get(CREDENTIALS) == second
    assert len(service.requests) == 2


async def test_refused_credentials_start_a_back_off(store: Any, service: Any, metrics: metering.Metrics) -> None:
    service.refuse(400, {"error": "invalid_client"})
    for _ in range(5):
        with pytest.raises(errors.CredentialsRefused, match="demo: invalid_client"):
            await store.get(CREDENTIALS)
    assert len(service.requests) == 1
    service.clock.advance(tokens.REFUSED_SECONDS)
    service.grant()
    await store.get(CREDENTIALS)
    text = metrics.text().decode()
    assert 'token_requests_total{application="demo",outcome="CredentialsRefused"} 1.0' in text
    assert 'token_requests_total{application="demo",outcome="ok"} 1.0' in text


async def test_clock_set_back_does_not_extend_a_back_off(store: Any, start: Any, service: Any) -> None:
    service.refuse(400, {"error": "invalid_client"})
    with pytest.raises(errors.CredentialsRefused):
        await store.get(CREDENTIALS)
    service.clock.advance(-7200)
    service.grant()
    assert await start().get(CREDENTIALS) == await store.get(CREDENTIALS)


async def test_refused_tokens_start_a_back_off(store: Any, service: Any) -> None:
    service.grant()
    token = await store.get(CREDENTIALS)
    await store.invalidate(CREDENTIALS, token)
    await store.mark_refused(CREDENTIALS, token, errors.CredentialsRefused("no token of demo is taken"))
    with pytest.raises(errors.CredentialsRefused, match="no token of demo is taken") as found:
        await store.get(CREDENTIALS)
    assert found.value.retry_after == 30
    assert len(service.requests) == 1


async def test_refusal_is_known_until_a_token_is_accepted(store: Any, start: Any, service: Any) -> None:
    other = start()
    service.grant()
    assert store.refusal(CREDENTIALS) is None
    token = await store.get(CREDENTIALS)
    await store.invalidate(CREDENTIALS, token)
    error = errors.CredentialsRefused("no token of demo is taken")
    await store.mark_refused(CREDENTIALS, token, error)
    with pytest.raises(errors.CredentialsRefused):
        await other.get(CREDENTIALS)
    service.clock.advance(tokens.REFUSED_SECONDS)
    service.grant()
    token = await store.get(CREDENTIALS)
    for worker in (store, other):
        assert str(worker.refusal(CREDENTIALS)) == error.message
        worker.mark_accepted(CREDENTIALS, token)
        assert worker.refusal(CREDENTIALS) is None


async def test_token_refused_after_acceptance_is_replaced_at_once(store: Any, service: Any) -> None:
    service.grant()
    service.grant()
    token = await store.get(CREDENTIALS)
    store.mark_accepted(CREDENTIALS, token)
    await store.invalidate(CREDENTIALS, token)
    await store.mark_refused(CREDENTIALS, token, errors.CredentialsRefused("no token of demo is taken"))
    assert await store.get(CREDENTIALS) != token
    assert store.refusal(CREDENTIALS) is None
    assert len(service.requests) == 2


async def test_429_retry_after_counts_down(store: Any, service: Any) -> None:
    service.refuse(429, {"error": "slow_down"}, **{"Retry-After": "40"})
    with pytest.raises(errors.TokenLimit) as first:
        await store.get(CREDENTIALS)
    service.clock.advance(10)
    with pytest.raises(errors.TokenLimit) as second:
        await store.get(CREDENTIALS)
    assert (first.value.retry_after, second.value.retry_after) == (40, 30)
    assert len(service.requests) == 1


@pytest.mark.parametrize(
    "exception, message",
    [
        (aiohttp.ClientOSError(111, "the-secret"), "closed the connection"),
        (aiohttp.ServerDisconnectedError(), "closed the connection"),
        (TimeoutError(), "did not answer in time: not whole within"),
    ],
)
async def test_no_connection_is_upstream_unreachable(store: Any, service: Any, exception: Any, message: str) -> None:
    service.fail(exception)
    with pytest.raises(errors.UpstreamUnreachable, match=message):
        await store.get(CREDENTIALS)


async def test_long_outage_does_not_exhaust_the_rate_limit(store: Any, service: Any) -> None:
    """Else the service would be back and the windows on this side still full."""
    service.mock.post(URL, exception=TimeoutError(), repeat=True)
    for _ in range(12 * 60):  # an hour
        with pytest.raises(errors.UpstreamUnreachable):
            await store.get(CREDENTIALS)
        service.clock.advance(5)
    assert len(service.requests) <= 3_000 / 12
    service.mock.clear()
    service.grant()
    service.clock.advance(15)
    assert await store.get(CREDENTIALS)


async def test_third_token_request_within_a_second_waits(store: Any, service: Any) -> None:
    service.grant(times=3)
    started = service.clock.now()
    for _ in range(3):
        await store.invalidate(CREDENTIALS, await store.get(CREDENTIALS))
    assert len(service.requests) == 3
    assert service.clock.now() - started == pytest.approx(1.0)


async def test_requests_count_when_they_arrive(start: Any, service: Any) -> None:
    """The first takes 0.9 s on its way. Two processes share the window."""
    arrived: list[float] = []

    def arrive(seconds: float) -> None:
        def make() -> Any:
            service.clock.advance(seconds)
            arrived.append(service.clock.now())
            return {"payload": {"access_token": f"token{len(arrived)}", "expires_in": DAY}}

        service.respond(make)

    workers = start(), start()
    for number, seconds in enumerate((0.9, 0.0, 0.0, 0.5, 0.0, 0.0)):
        arrive(seconds)
        worker = workers[number % 2]
        await worker.invalidate(CREDENTIALS, await worker.get(CREDENTIALS))
    assert len(arrived) == 6
    assert all(later - first >= 1.0 for first, later in zip(arrived, arrived[2:], strict=False))


async def test_long_wait_for_the_rate_limit_is_an_error(store: Any, service: Any) -> None:
    service.grant(times=200)
    for _ in range(200):
        await store.invalidate(CREDENTIALS, await store.get(CREDENTIALS))
    with pytest.raises(errors.TokenLimit, match="application demo has asked for too many tokens") as found:
        await store.get(CREDENTIALS)
    assert found.value.retry_after is not None
    assert 700 < found.value.retry_after <= 900
    assert len(service.requests) == 200


async def test_rate_limit_belongs_to_the_client_id(store: Any, service: Any) -> None:
    other = identity.Credentials("other", "other-id", CREDENTIALS.client_secret)
    service.grant(times=3)
    started = service.clock.now()
    await store.invalidate(CREDENTIALS, await store.get(CREDENTIALS))
    await store.get(CREDENTIALS)
    await store.get(other)
    assert service.clock.now() == started


async def test_application_without_credentials_is_refused(store: Any, service: Any) -> None:
    with pytest.raises(errors.CredentialsRefused, match="application bare has no client id and secret"):
        await store.get(identity.Credentials("bare", None, None))
    assert not service.requests


async def test_cancelled_caller_does_not_cancel_the_token_request(store: Any, service: Any) -> None:
    service.grant()
    leaving = asyncio.create_task(store.get(CREDENTIALS))
    staying = asyncio.create_task(store.get(CREDENTIALS))
    await asyncio.sleep(0)
    leaving.cancel()
    assert await staying
    assert len(service.requests) == 1


async def test_caller_waits_for_a_token_within_its_time_limit(store: Any, service: Any) -> None:
    go = asyncio.Event()
    service.grant_when(go)
    for seconds in (0.05, -1.0):
        with pytest.raises(errors.UpstreamUnreachable, match="no token of application demo in time") as caught:
            await asyncio.wait_for(store.get(CREDENTIALS, seconds), 20)
        assert not caught.value.may_be_billed
    go.set()
    assert await store.get(CREDENTIALS, 20)
    assert len(service.requests) == 1


async def test_no_secret_is_logged(store: Any, service: Any, log_output: io.StringIO) -> None:
    service.refuse(400, {"error": "invalid_client", "error_description": "the-secret"})
    with pytest.raises(errors.CredentialsRefused):
        await store.get(CREDENTIALS)
    assert "CredentialsRefused: the identity service refuses application demo" in log_output.getvalue()
    assert "the-secret" not in log_output.getvalue()


@pytest.mark.parametrize("change", [{"client_secret": config.Secret("another")}, {"client_id": "another"}])
async def test_other_credentials_find_no_stored_token(start: Any, service: Any, change: Any) -> None:
    service.grant(times=2)
    token = await start().get(CREDENTIALS)
    assert await start().get(replace(CREDENTIALS, **change)) != token


async def test_one_worker_renews_for_all(start: Any, service: Any) -> None:
    service.grant(times=2)
    workers = [start() for _ in range(3)]
    old = {await worker.get(CREDENTIALS) for worker in workers}
    service.clock.advance(DAY - 300)
    assert {await worker.get(CREDENTIALS) for worker in workers} == old
    await background()
    new = {await worker.get(CREDENTIALS) for worker in workers}
    assert len(new) == 1
    assert new.isdisjoint(old)
    assert len(service.requests) == 2


async def test_expired_stored_token_is_not_used(start: Any, service: Any) -> None:
    service.grant(times=2)
    old = await start().get(CREDENTIALS)
    service.clock.advance(DAY)
    assert await start().get(CREDENTIALS) != old


async def test_invalidated_token_is_replaced_once_for_all_workers(start: Any, service: Any) -> None:
    service.grant(times=2)
    workers = [start() for _ in range(3)]
    (old,) = {await worker.get(CREDENTIALS) for worker in workers}
    new = set()
    for worker in workers:
        await worker.invalidate(CREDENTIALS, old)
        new.add(await worker.get(CREDENTIALS))
    assert len(new) == 1
    assert old not in new
    assert len(service.requests) == 2


async def test_concurrent_refusals_make_one_token_request(start: Any, service: Any) -> None:
    service.grant(times=2)
    workers = [start(), start()]
    (old,) = {await worker.get(CREDENTIALS) for worker in workers}

    async def meet(worker: Any) -> Any:
        await worker.invalidate(CREDENTIALS, old)
        return await worker.get(CREDENTIALS)

    new = set(await asyncio.gather(*(meet(worker) for worker in workers for _ in range(50))))
    assert len(new) == 1
    assert old not in new
    assert len(service.requests) == 2


async def test_invalidated_token_is_not_read_from_the_store_again(start: Any, service: Any, shared_store: Any) -> None:
    service.grant(times=2)
    worker = start()
    old = await worker.get(CREDENTIALS)
    shared_store.away = True
    await worker.invalidate(CREDENTIALS, old)
    shared_store.away = False
    assert await worker.get(CREDENTIALS) != old


async def test_failure_is_shared_by_waiting_workers(start: Any, service: Any) -> None:
    service.refuse(500)
    workers = [start() for _ in range(5)]
    found: list[Any] = await asyncio.gather(*(worker.get(CREDENTIALS) for worker in workers), return_exceptions=True)
    assert [type(error) for error in found] == [errors.UpstreamFault] * 5
    assert {(error.message, error.status, error.retry_after) for error in found} == {
        ("the identity service answered with HTTP 500", 502, 1)
    }
    assert len(service.requests) == 1


async def test_back_off_grows_over_all_workers(start: Any, service: Any) -> None:
    workers = [start() for _ in range(3)]
    waits = []
    for _ in range(6):
        service.refuse(500)
        found: list[Any] = await asyncio.gather(
            *(worker.get(CREDENTIALS) for worker in workers), return_exceptions=True
        )
        waits.append({error.retry_after for error in found})
        workers.append(workers.pop(0))
        service.clock.advance(max(waits[-1]))
    assert waits == [{1}, {2}, {4}, {8}, {15}, {15}]
    assert len(service.requests) == 6


async def test_refused_credentials_are_not_tried_by_every_worker(start: Any, service: Any) -> None:
    service.refuse(400, {"error": "invalid_client"})
    for _ in range(3):
        with pytest.raises(errors.CredentialsRefused, match="demo: invalid_client"):
            await start().get(CREDENTIALS)
    assert len(service.requests) == 1
    service.clock.advance(tokens.REFUSED_SECONDS)
    service.grant()
    assert await start().get(CREDENTIALS)


async def test_back_off_after_refused_tokens_holds_for_all_workers(start: Any, service: Any) -> None:
    service.grant()
    first, second = start(), start()
    await first.invalidate(CREDENTIALS, await first.get(CREDENTIALS))
    await first.mark_refused(CREDENTIALS, "a token", errors.CredentialsRefused("no token of demo is taken"))
    with pytest.raises(errors.CredentialsRefused, match="no token of demo is taken"):
        await second.get(CREDENTIALS)
    assert len(service.requests) == 1


async def test_stopping_worker_ends_the_lease(start: Any, service: Any) -> None:
    responding = asyncio.Event()
    service.grant_when(responding)
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


async def test_cancelled_callers_do_not_affect_another_worker(start: Any, service: Any) -> None:
    responding = asyncio.Event()
    service.grant_when(responding)
    requesting = asyncio.create_task(start().get(CREDENTIALS))
    await until(lambda: service.requests)
    waiting = start()
    leaving, staying = (asyncio.create_task(waiting.get(CREDENTIALS)) for _ in range(2))
    await background()
    leaving.cancel()
    responding.set()
    assert await staying == await requesting
    assert len(service.requests) == 1


async def test_rate_limit_is_shared_by_workers_and_outlives_them(start: Any, service: Any) -> None:
    service.grant(times=200)
    for _ in range(200):
        worker = start()
        await worker.invalidate(CREDENTIALS, await worker.get(CREDENTIALS))
        await worker.close()
    with pytest.raises(errors.TokenLimit, match="application demo has asked for too many tokens"):
        await start().get(replace(CREDENTIALS, client_secret=config.Secret("a new secret")))
    assert len(service.requests) == 200


async def test_unexpected_exception_in_the_background_is_logged(
    store: Any, service: Any, log_output: io.StringIO
) -> None:
    service.grant()
    await store.get(CREDENTIALS)
    service.clock.advance(DAY - 300)
    service.fail(RuntimeError("a mistake in the program"))
    await store.get(CREDENTIALS)
    await background()
    assert "RuntimeError" in log_output.getvalue()
    assert await store.get(CREDENTIALS)


async def test_process_without_the_store_uses_its_token_and_requests_none(
    start: Any, service: Any, shared_store: Any
) -> None:
    other = identity.Credentials("other", "other-id", CREDENTIALS.client_secret)
    service.grant()
    worker = start()
    token = await worker.get(CREDENTIALS)
    shared_store.away = True
    assert await worker.get(CREDENTIALS) == token
    with pytest.raises(errors.StoreUnavailable):
        await worker.get(other)
    assert len(service.requests) == 1


async def test_token_that_the_store_does_not_take_is_used(start: Any, service: Any, shared_store: Any) -> None:
    responding = asyncio.Event()
    service.grant_when(responding)
    worker = start()
    requesting = asyncio.create_task(worker.get(CREDENTIALS))
    await until(lambda: service.requests)
    shared_store.away = True
    responding.set()
    assert await requesting == await worker.get(CREDENTIALS)
    assert len(service.requests) == 1


async def test_another_process_requests_the_token_when_one_died(start: Any, service: Any, shared_store: Any) -> None:
    stored = stored_tokens.StoredTokens(shared_store, URL, service.clock)
    assert await stored.lease(CREDENTIALS, "a process that was killed")
    service.grant()
    started = service.clock.now()
    assert await start().get(CREDENTIALS)
    assert service.clock.now() - started == pytest.approx(stored_tokens.LEASE_SECONDS, abs=2 * tokens.POLL_SECONDS)


async def test_success_ends_the_count_of_failures(store: Any, service: Any) -> None:
    for _ in range(2):
        service.refuse(500)
        with pytest.raises(errors.UpstreamFault) as found:
            await store.get(CREDENTIALS)
        assert found.value.retry_after == 1
        service.clock.advance(1)
        service.grant()
        await store.invalidate(CREDENTIALS, await store.get(CREDENTIALS))
        service.clock.advance(1)
