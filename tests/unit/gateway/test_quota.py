"""Reserve, settle, the turn of the month, and a limit that is used up (contract graphql.md §6)."""

import datetime

import pytest

from proxy import errors
from proxy.gateway import quota
from proxy.kit import clock

LAST_OF_NOVEMBER = datetime.datetime(2023, 11, 30, 23, 59, tzinfo=datetime.UTC).timestamp()


@pytest.fixture
def time() -> clock.ManualClock:
    return clock.ManualClock(LAST_OF_NOVEMBER)


@pytest.fixture
def ledger(time: clock.ManualClock) -> quota.Quota:
    return quota.Quota(time)


def use_up(ledger: quota.Quota) -> None:
    with pytest.raises(errors.PartLimitUsedUp), ledger.reserve("demo", 3):
        raise errors.PartLimitUsedUp("used up", retry_after=1)


def test_a_call_reserves_its_worst_case_and_settles_what_came_back(ledger: quota.Quota) -> None:
    with ledger.reserve("demo", 60) as one, ledger.reserve("demo", 40) as other:
        assert (ledger.account("demo").reserved, ledger.account("demo").returned) == (100, 0)
        one.returned, other.returned = 7, 5
    assert (ledger.account("demo").reserved, ledger.account("demo").returned) == (0, 12)


def test_a_call_that_fails_gives_its_reservation_back(ledger: quota.Quota) -> None:
    with pytest.raises(errors.UpstreamUnreachable), ledger.reserve("demo", 60):
        raise errors.UpstreamUnreachable("no")
    account = ledger.account("demo")
    assert (account.reserved, account.returned, account.refusal) == (0, 0, "")


def test_applications_are_counted_apart(ledger: quota.Quota) -> None:
    with ledger.reserve("demo", 3) as reservation:
        reservation.returned = 3
    use_up(ledger)
    with ledger.reserve("other", 3):
        assert (ledger.account("other").returned, ledger.account("other").reserved) == (0, 3)


def test_a_used_up_limit_is_believed_for_ten_minutes(time: clock.ManualClock) -> None:
    time.advance(-86_400)
    ledger = quota.Quota(time)
    use_up(ledger)
    time.advance(quota.PROBE_SECONDS - 1)
    with pytest.raises(errors.PartLimitUsedUp, match="used up") as refused, ledger.reserve("demo", 3):
        pass
    assert refused.value.retry_after == 86_400 + 60 - 599
    assert ledger.account("demo").reserved == 0
    time.advance(1)
    with ledger.reserve("demo", 3) as probe:
        probe.returned = 3
    with ledger.reserve("demo", 3):
        assert ledger.account("demo").returned == 3


def test_a_probe_that_is_refused_closes_for_ten_minutes_more(time: clock.ManualClock) -> None:
    time.advance(-86_400)
    ledger = quota.Quota(time)
    for _ in range(3):
        use_up(ledger)
        time.advance(quota.PROBE_SECONDS - 1)
        with pytest.raises(errors.PartLimitUsedUp), ledger.reserve("demo", 3):
            pytest.fail("the call was let through")
        time.advance(1)


def test_one_call_tries_while_all_others_wait_for_what_it_meets(time: clock.ManualClock) -> None:
    time.advance(-86_400)
    ledger = quota.Quota(time)
    use_up(ledger)
    time.advance(quota.PROBE_SECONDS)
    with ledger.reserve("demo", 3) as probe:
        for _ in range(3):
            with pytest.raises(errors.PartLimitUsedUp), ledger.reserve("demo", 3):
                pytest.fail("a second call was let through")
        probe.returned = 1
    with ledger.reserve("demo", 3):
        pass


def test_a_try_without_a_part_proves_nothing(time: clock.ManualClock) -> None:
    time.advance(-86_400)
    ledger = quota.Quota(time)
    use_up(ledger)
    time.advance(quota.PROBE_SECONDS)
    with ledger.reserve("demo", 3):
        pass
    with pytest.raises(errors.PartLimitUsedUp), ledger.reserve("demo", 3):
        pytest.fail("a second call was let through")


def test_the_first_of_the_month_forgives(ledger: quota.Quota, time: clock.ManualClock) -> None:
    with ledger.reserve("demo", 3) as reservation:
        reservation.returned = 3
    use_up(ledger)
    with pytest.raises(errors.PartLimitUsedUp) as refused, ledger.reserve("demo", 3):
        pass
    assert refused.value.retry_after == 60
    time.advance(60)
    with ledger.reserve("demo", 3):
        assert (ledger.account("demo").month, ledger.account("demo").returned) == ("2023-12", 0)


def test_a_call_under_way_at_the_turn_of_the_month_gives_its_claim_back(
    ledger: quota.Quota, time: clock.ManualClock
) -> None:
    with ledger.reserve("demo", 5) as reservation:
        time.advance(60)
        assert ledger.account("demo").reserved == 5
        reservation.returned = 5
    assert (ledger.account("demo").reserved, ledger.account("demo").month) == (0, "2023-12")
