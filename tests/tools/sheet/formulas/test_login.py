"""How long the login of a workbook lasts."""

from pathlib import Path

from proxy.config import ClientId
from proxy.tools.sheet.formulas.login import LOGIN_SECONDS, LoginRecords

APPLICATION = ClientId("planted-id")


def test_a_login_lasts_a_day_from_its_first_use(tmp_path: Path) -> None:
    assert not LoginRecords(tmp_path).is_expired(APPLICATION, 0.0)
    LoginRecords(tmp_path).note(APPLICATION, 0.0, refreshed=False)
    LoginRecords(tmp_path).note(APPLICATION, 1_000.0, refreshed=False)
    assert not LoginRecords(tmp_path).is_expired(APPLICATION, LOGIN_SECONDS - 1)
    assert LoginRecords(tmp_path).is_expired(APPLICATION, LOGIN_SECONDS)
    assert not LoginRecords(tmp_path).is_expired(ClientId("other"), LOGIN_SECONDS)


def test_a_refreshed_login_lasts_a_day_from_then(tmp_path: Path) -> None:
    LoginRecords(tmp_path).note(APPLICATION, 0.0, refreshed=False)
    LoginRecords(tmp_path).note(APPLICATION, 1_000.0, refreshed=True)
    assert not LoginRecords(tmp_path).is_expired(APPLICATION, LOGIN_SECONDS)


def test_records_name_no_application(tmp_path: Path) -> None:
    LoginRecords(tmp_path).note(APPLICATION, 0.0, refreshed=False)
    assert "planted" not in (tmp_path / "logins.json").read_text()


def test_an_unreadable_record_is_as_good_as_none(tmp_path: Path) -> None:
    (tmp_path / "logins.json").write_bytes(b"\xff{")
    assert not LoginRecords(tmp_path).is_expired(APPLICATION, LOGIN_SECONDS)
    LoginRecords(tmp_path).note(APPLICATION, 0.0, refreshed=False)
    assert LoginRecords(tmp_path).is_expired(APPLICATION, LOGIN_SECONDS)
