"""Clients of a configuration: their accounts, limits, rates and ends."""

import datetime
import random
from unittest import mock

import pytest
from service.gateway.world import START

from proxy import config, errors
from proxy.gateway.applications import AccessTokens, Applications, periods
from proxy.gateway.process import ProcessState
from proxy.kit.clock import ManualClock
from proxy.metrics import Metrics
from proxy.store.protocol import DAY_SECONDS, Account, Refused
from proxy.store.sqlite import SqliteStore

DEMO = config.ApplicationSettings(
    apikeys=(
        config.ApiKeySettings(config.digest("a"), name="erp", parts="20%", rate=0),
        config.ApiKeySettings(config.digest("b"), expires=datetime.date(2026, 12, 9)),
    ),
    client_id=config.ClientId("id"),
    parts=200,
    rate=5,
)


def test_accounts_are_digests_in_the_periods_of_a_moment() -> None:
    client = Applications({"demo": DEMO}).client("a")
    application, key = config.digest("id").reveal(), config.digest("a").reveal()
    assert periods(client.charged, START // DAY_SECONDS).every == (
        Account(application, "2026-12-10"),
        Account(application, "2026-12", 200),
        Account(application, "lifetime"),
        Account(key, "2026-12-10"),
        Account(key, "2026-12", 40),
        Account(key, "lifetime"),
    )


def test_a_renamed_application_and_one_with_the_same_client_id_have_its_account() -> None:
    entry = config.ApplicationSettings(apikeys=(config.ApiKeySettings(config.digest("c")),), client_id=DEMO.client_id)
    served = Applications({"demo": DEMO, "other": entry, "embedded": config.ApplicationSettings(apikeys=())})
    assert served.client("c").application.account == served.client("a").application.account
    assert list(served.by_name) == ["demo", "other"]


def test_what_is_said_where_parts_do_not_fit_names_account_period_and_reset() -> None:
    client = Applications({"demo": DEMO}).client("a")
    error = client.exceeded(Refused(periods(client.charged, START // DAY_SECONDS).own[1], 3, 1), 5, START)
    assert error.message == (
        "demo/erp has 3 of 40 parts left, its share of 20 % of demo (2026-12), and this request may cost 5; it is "
        "reset on 2027-01-01"
    )
    assert error.retry_after == 22 * 86_400


def test_a_key_has_its_own_rate_or_that_of_its_application_and_an_end() -> None:
    served = Applications({"demo": DEMO})
    first, second = served.client("a"), served.client("b")
    assert [first.rate, second.rate] == [0, 5]
    assert (first.name, second.name) == ("demo/erp", "demo/2")
    assert first.refusal(START) is None
    assert isinstance(second.refusal(START), errors.ExpiredKey)
    assert second.refusal(START - 1.0) is None


async def test_a_signing_secret_that_the_store_loses_is_named() -> None:
    store, applications = mock.AsyncMock(), Applications({"demo": DEMO})
    store.values.return_value = [None]
    with pytest.raises(errors.StoreUnavailable, match="the signing secret was lost"):
        await AccessTokens(store, applications, ManualClock(START)).issue(applications.client("a"))


async def test_tokens_of_another_process_are_known_after_the_store_has_lost_the_secret() -> None:
    time, applications = ManualClock(START), Applications({"demo": DEMO})
    store = await SqliteStore.open(None, time, "worker", 10**6)
    own, other = (AccessTokens(store, applications, time) for _ in range(2))
    await own.issue(applications.client("a"))
    await store.put_value("signing secret", "", 0.0)
    token = await other.issue(applications.client("a"))
    assert await own.client(token) is None
    await own.refresh()
    assert await own.client(token) is applications.client("a")
    await store.aclose()


@pytest.mark.parametrize("workers, admitted", [(1, 5), (2, 3), (3, 2), (9, 1)])
def test_each_worker_admits_its_share_of_a_rate_in_any_second(workers: int, admitted: int) -> None:
    keys = tuple(config.ApiKeySettings(config.digest(key), rate=5) for key in ("c", "d"))
    served, time = Applications({"demo": config.ApplicationSettings(apikeys=keys)}), ManualClock()
    state = ProcessState(mock.Mock(), time, random.Random(1), Metrics(time), workers)
    client = served.client("c")
    for _ in range(admitted):
        state.admit(client)
        time.advance(0.125)
    with pytest.raises(errors.TooManyRequests, match="demo/1 may make no more than 5 requests") as refused:
        state.admit(client)
    assert refused.value.retry_after == 1
    state.admit(served.client("d"))
    time.advance(1.0 - 0.125 * admitted)
    state.admit(client)
