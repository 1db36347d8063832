"""The tree of errors: statuses, recorded messages, and the wait for the 1st of the month."""

import calendar
import inspect
import traceback
from datetime import UTC, datetime
from typing import Any

import pytest
from support import cases

from proxy import errors

ALL = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.BridgeError)]


@cases.parametrize("now, first")
def test_retry_after_reaches_the_next_month(now: str, first: str) -> None:
    start = datetime.fromisoformat(now).replace(tzinfo=UTC).timestamp()
    end = calendar.timegm(datetime.fromisoformat(first).timetuple())
    assert errors.seconds_to_next_month(start) == end - start


def test_retry_after_is_never_zero() -> None:
    end_of_year = datetime(2027, 1, 1, tzinfo=UTC).timestamp()
    assert errors.seconds_to_next_month(end_of_year - 0.001) == 1


def test_response_class_follows_from_the_status() -> None:
    assert errors.NotFound("no").v3_class == "ClientErrorResponse"
    assert errors.StoreUnavailable("no").v3_class == "ServerErrorResponse"


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_every_error_is_in_the_diagram(kind: Any) -> None:
    assert any(kind.__name__ in line.split() for line in (errors.__doc__ or "").splitlines())


@pytest.mark.parametrize("kind", [kind for kind in ALL if not kind.__subclasses__()], ids=lambda kind: kind.__name__)
def test_diagram_has_the_status_of_client_visible_errors(kind: Any) -> None:
    line = next(line.split() for line in (errors.__doc__ or "").splitlines() if kind.__name__ in line.split())
    assert str(kind.status) in line or issubclass(kind, errors.StartError | errors.UpstreamFault)


def test_recorded_messages_are_the_defaults() -> None:
    assert errors.ForbiddenKey().message == "Forbidden request"
    assert errors.MissingKey().message == "apikey argument missing"


def test_closed_upstream_stays_503() -> None:
    closed = errors.UpstreamFault("closed", status=503, retry_after=9)
    assert (closed.status, closed.retry_after) == (503, 9)
    assert errors.UpstreamFault("broken").status == 502


def test_error_shared_by_many_requests_keeps_its_place_and_does_not_grow() -> None:
    shared = errors.UpstreamFault("down")
    depths = []
    for _ in range(100):
        try:
            raise shared.shared()
        except errors.UpstreamFault as error:
            depths.append(len(traceback.extract_tb(error.__traceback__)))
    assert set(depths[1:]) == {depths[1]}
