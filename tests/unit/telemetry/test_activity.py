"""Recent activity of a process: the last requests, and texts of clients that are safe to store and to show."""

from proxy.telemetry import activity


def _record(number: int) -> activity.RequestRecord:
    return activity.RequestRecord(1.0, str(number), "GET", "/v3/parts/match", "/v3/parts/match", 200, 1.0, "", "")


def test_only_the_last_requests_are_held() -> None:
    recent = activity.Activity()
    for number in range(activity.REQUESTS_MAX + 3):
        recent.add_request(_record(number))
    assert [recent.requests[0].id, recent.requests[-1].id] == ["3", str(activity.REQUESTS_MAX + 2)]


def test_user_agent_is_shown_as_text() -> None:
    assert activity.shown_user_agent("curl/7.88.1") == "curl/7.88.1"
    assert activity.shown_user_agent("a\x1b[31m\udcffb") == "a\ufffd[31m\ufffdb"
    assert len(activity.shown_user_agent("x" * 10_000)) == activity.USER_AGENT_MAX
