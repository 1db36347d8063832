"""Errors: those that many requests share, and the wait for the 1st of the month."""

import calendar
import traceback
from datetime import UTC, datetime

from support import cases

from proxy import errors


@cases.parametrize("now, first")
def test_retry_after_reaches_the_next_month(now: str, first: str) -> None:
    start = datetime.fromisoformat(now).replace(tzinfo=UTC).timestamp()
    end = calendar.timegm(datetime.fromisoformat(first).timetuple())
    assert errors.seconds_to_next_month(start) == end - start


def test_retry_after_is_never_zero() -> None:
    end_of_year = datetime(2027, 1, 1, tzinfo=UTC).timestamp()
    assert errors.seconds_to_next_month(end_of_year - 0.001) == 1


def test_error_shared_by_many_requests_keeps_its_place_and_does_not_grow() -> None:
    shared = errors.UpstreamFault("down")
    depths = []
    for _ in range(100):
        try:
            raise shared.shared()
        except errors.UpstreamFault as error:
            depths.append(len(traceback.extract_tb(error.__traceback__)))
    assert set(depths[1:]) == {depths[1]}
