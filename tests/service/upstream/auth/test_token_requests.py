"""Token requests of several workers with one store: the lease, shared results, and outages of the store."""

import asyncio
import io
from dataclasses import replace
from typing import Any

import pytest
from service.upstream.identity_service import CREDENTIALS, DAY, URL, background, until
from support import cases

from proxy import config, errors
from proxy.upstream import http_post
from proxy.upstream.auth import backoff, identity, token_requests, token_store


@pytest.mark.parametrize("change", [{"client_secret": config.Secret("another")}, {"client_id": "another"}])
async def test_other_credentials_find_no_stored_token(start: Any, service: Any, change: Any) -> None:
    service.grant(times=2)
    token = await start().get(CREDENTIALS)
    assert await start().get(replace(CREDENTIALS, **change)) != token


async def test_other_scope_finds_no_stored_token(start: Any, service: Any) -> None:
    service.grant(times=2)
    token = await start().get(CREDENTIALS)
    assert await start(scope="design.domain").get(CREDENTIALS) != token


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
    service.clock.advance(backoff.REFUSED_SECONDS)
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


async def test_lease_of_a_dead_worker_expires(start: Any, service: Any, shared_store: Any) -> None:
    keys = token_store.keys(URL, "supply.domain", CREDENTIALS)
    assert await shared_store.put_value(keys.lease, "a worker that was killed", token_requests.LEASE_SECONDS)
    service.grant()
    started = service.clock.now()
    assert await start().get(CREDENTIALS)
    assert service.clock.now() - started == pytest.approx(
        token_requests.LEASE_SECONDS, abs=2 * token_requests.POLL_SECONDS
    )


async def test_wait_for_the_lease_is_limited(start: Any, service: Any, shared_store: Any) -> None:
    keys = token_store.keys(URL, "supply.domain", CREDENTIALS)
    assert await shared_store.put_value(keys.lease, "a worker that hangs", 10 * token_requests.LEASE_WAIT_MAX)
    with pytest.raises(errors.UpstreamUnreachable, match="application demo waits for another worker"):
        await start().get(CREDENTIALS)
    assert not service.requests


async def test_lease_is_extended_during_the_request(
    start: Any, service: Any, shared_store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_requests, "LEASE_SECONDS", 0.03)
    leases = []
    responding = asyncio.Event()
    service.grant_when(responding)
    put_value = shared_store.put_value

    async def counted(*arguments: Any, **named: Any) -> Any:
        leases.append(arguments)
        return await put_value(*arguments, **named)

    shared_store.put_value = counted
    requesting = asyncio.create_task(start().get(CREDENTIALS))
    await until(lambda: len(leases) > 3)
    owners = {owner for _, owner, _ in leases}
    responding.set()
    assert await requesting
    assert len(owners) == 1


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


async def test_worker_without_store_uses_and_requests_its_own_tokens(
    start: Any, service: Any, shared_store: Any, log_output: io.StringIO
) -> None:
    other = identity.Credentials("other", "other-id", CREDENTIALS.client_secret)
    service.grant(times=2)
    worker = start()
    token = await worker.get(CREDENTIALS)
    shared_store.away = True
    assert await worker.get(CREDENTIALS) == token
    assert await worker.get(other) != token
    assert len(service.requests) == 2
    assert log_output.getvalue().count("token sharing suspended") == 1
    assert "StoreUnavailable: the store is away" in log_output.getvalue()


async def test_worker_without_store_keeps_its_known_rate_limit(start: Any, service: Any, shared_store: Any) -> None:
    service.grant(times=200)
    worker = start()
    for n in range(200):
        shared_store.away = n >= 100
        await worker.invalidate(CREDENTIALS, await worker.get(CREDENTIALS))
    with pytest.raises(errors.TokenLimit):
        await worker.get(CREDENTIALS)


async def test_open_circuit_breaker_requests_no_token_but_uses_valid_ones(
    start: Any, service: Any, make_breaker: Any
) -> None:
    breaker = make_breaker(failures=1)
    other = identity.Credentials("other", "other-id", CREDENTIALS.client_secret)
    service.grant()
    worker = start(breaker=breaker)
    token = await worker.get(CREDENTIALS)
    service.refuse(500)
    with pytest.raises(errors.UpstreamFault):
        await worker.get(other)
    third = identity.Credentials("third", "third-id", CREDENTIALS.client_secret)
    with pytest.raises(errors.CircuitBreakerOpen):
        await worker.get(third)
    assert await worker.get(CREDENTIALS) == token
    assert len(service.requests) == 2
    service.clock.advance(5)
    service.grant()
    assert await worker.get(third)
    assert breaker.refusal() is None


@cases.parametrize("status, body, opened")
async def test_only_service_failures_open_the_circuit_breaker(
    start: Any, service: Any, make_breaker: Any, status: int, body: Any, opened: bool
) -> None:
    breaker = make_breaker(failures=1)
    service.refuse(status, body)
    with pytest.raises(errors.ServerError):
        await start(breaker=breaker).get(CREDENTIALS)
    assert (breaker.refusal() is not None) is opened


async def test_missing_local_connection_does_not_open_the_circuit_breaker(
    start: Any, make_breaker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def crowded(*_: Any) -> None:
        raise errors.DeadlineExceeded("the identity service did not answer in time")

    monkeypatch.setattr(http_post, "post", crowded)
    breaker = make_breaker(failures=1)
    worker = start(breaker=breaker)
    for _ in range(2):  # the second time in the pause that the first has brought
        with pytest.raises(errors.DeadlineExceeded):
            await worker.get(CREDENTIALS)
    assert breaker.refusal() is None


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
