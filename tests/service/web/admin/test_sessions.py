"""Session cookies: signed with the token, bound to a time, and nothing else is accepted."""

import base64

import pytest

from proxy import config
from proxy.kit import clock
from proxy.web.admin import sessions

TOKEN = config.Secret("an-admin-token")


@pytest.fixture
def time() -> clock.ManualClock:
    return clock.ManualClock()


@pytest.fixture
def issuer(time: clock.ManualClock) -> sessions.Sessions:
    return sessions.Sessions(TOKEN, time)


def test_session_is_valid_until_its_end_in_every_worker(issuer: sessions.Sessions, time: clock.ManualClock) -> None:
    cookie = issuer.new()
    assert sessions.Sessions(TOKEN, time).text(cookie) == ""
    time.advance(sessions.SESSION_SECONDS - 1)
    assert issuer.text(cookie) == ""
    time.advance(1)
    assert issuer.text(cookie) is None


def test_every_session_is_another(issuer: sessions.Sessions) -> None:
    first, second = issuer.new(), issuer.new()
    assert first != second
    assert issuer.derived("csrf", first) != issuer.derived("csrf", second)


def test_new_token_ends_all_sessions(issuer: sessions.Sessions, time: clock.ManualClock) -> None:
    assert sessions.Sessions(config.Secret("another-token"), time).text(issuer.new()) is None


def test_changed_cookie_is_refused(issuer: sessions.Sessions) -> None:
    content = base64.urlsafe_b64decode(issuer.new("ada@example.com"))
    for place in range(len(content)):
        changed = content[:place] + bytes((content[place] ^ 1,)) + content[place + 1 :]
        assert issuer.text(base64.urlsafe_b64encode(changed).decode()) is None


@pytest.mark.parametrize("cookie", ["", "x", "=", "é", "\udcff", "A" * 75, "A" * 76, "A" * 10_000, "!" * 76])
def test_text_that_is_no_session_is_refused(issuer: sessions.Sessions, cookie: str) -> None:
    assert issuer.text(cookie) is None


def test_session_carries_a_text(issuer: sessions.Sessions) -> None:
    assert issuer.text(issuer.new("Åsa, ada@example.com")) == "Åsa, ada@example.com"


def test_value_of_another_purpose_is_another(issuer: sessions.Sessions) -> None:
    cookie = issuer.new()
    assert len({issuer.derived(purpose, cookie) for purpose in ("csrf", "state", "nonce", "verifier")}) == 4
    assert not issuer.is_derived("state", cookie, issuer.derived("csrf", cookie))


def test_csrf_token_belongs_to_one_session(issuer: sessions.Sessions) -> None:
    cookie = issuer.new()
    assert issuer.is_derived("csrf", cookie, issuer.derived("csrf", cookie))
    for text in ("", "\udcff", cookie, issuer.derived("csrf", issuer.new())):
        assert not issuer.is_derived("csrf", cookie, text)


def test_csrf_token_is_no_session(issuer: sessions.Sessions) -> None:
    assert issuer.text(issuer.derived("csrf", issuer.new())) is None


@pytest.mark.parametrize("text", ["", "an-admin-toke", "an-admin-token ", "An-admin-token", "\udcff"])
def test_only_the_token_is_the_token(issuer: sessions.Sessions, text: str) -> None:
    assert issuer.is_token("an-admin-token")
    assert not issuer.is_token(text)
