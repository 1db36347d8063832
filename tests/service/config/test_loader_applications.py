"""Tests of the settings of the store, API key blocks, quotas and rate limits."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from support import cases

from proxy import config, errors

HEAD = "applications:\n  demo:\n    apikeys:\n"


@pytest.fixture
def mistake(load: Any) -> Any:
    def of(text: str, **environ: str) -> str:
        with pytest.raises(errors.ConfigError) as found:
            load(text, **environ)
        assert "hidden" not in str(found.value)
        return str(found.value)

    return of


def stored(line: str = "") -> str:
    return f"{line}\n{HEAD}      - a-key\n"


@cases.parametrize("written,url")
def test_every_form_of_store_is_accepted(load: Any, written: str, url: str) -> None:
    assert load(stored(written), STORE="rediss://:word@host\n").store == config.StoreUrl(url)


@pytest.mark.parametrize("written", ["", "store:", "store: sqlite"])
def test_store_without_path_is_beside_the_configuration(load: Any, tmp_path: Path, written: str) -> None:
    assert load(stored(written)).store.reveal() == f"sqlite:{tmp_path}/config.sqlite"


def test_relative_store_file_is_relative_to_the_configuration(load: Any, tmp_path: Path) -> None:
    assert load(stored("store: sqlite:own/state.sqlite")).store.reveal() == f"sqlite:{tmp_path}/own/state.sqlite"
    (tmp_path / "url").write_text("sqlite:other.sqlite\n")
    assert load(stored("store: file:url")).store.reveal() == f"sqlite:{tmp_path}/other.sqlite"


@cases.parametrize("written,said")
def test_invalid_store_is_refused_without_its_password(mistake: Any, written: str, said: str) -> None:
    found = mistake(stored(written), HIDDEN="mysql://hidden")
    assert found.startswith(f"config.yaml:1:1: store: {said}")


def test_redis_on_another_machine_needs_tls_or_a_word(load: Any, mistake: Any) -> None:
    assert "redis://host is reached without TLS; use rediss://, or set store_without_tls: true" in mistake(
        stored("store: redis://:hidden@host")
    )
    for accepted in ("redis://127.0.0.1", "redis://localhost/1", "rediss://host", "unix:///run/redis.sock"):
        load(stored(f"store: {accepted}"))
    assert load(stored("store: redis://host\nstore_without_tls: true")).store_without_tls


def test_repr_of_a_store_url_is_hidden(load: Any) -> None:
    loaded = load(stored("store: rediss://:passw0rd@host"))
    assert "passw0rd" not in f"{loaded!r} {loaded.store}"


def test_api_key_may_be_a_block(load: Any) -> None:
    text = (
        f'{HEAD}      - plain\n      - {{key: other, name: erp, parts: 500, rate: 3}}\n      - {{key: "third"}}\n'
        "    parts: 1000\n    period: lifetime\n    rate: 5\n"
    )
    demo = load(text).applications["demo"]
    assert (demo.parts, demo.period, demo.rate) == (1000, "lifetime", 5)
    assert demo.clients == {
        "1": config.ApiKeySettings(config.digest("plain")),
        "erp": config.ApiKeySettings(config.digest("other"), "erp", parts=500, rate=3),
        "3": config.ApiKeySettings(config.digest("third")),
    }


@cases.parametrize("entry,place,said")
def test_mistake_in_a_block_names_line_and_key(mistake: Any, entry: str, place: str, said: str) -> None:
    found = mistake(f"{HEAD}      - {entry}\n")
    assert found.startswith(f"config.yaml:{place}: applications.demo.{said}")
    assert "7777" not in found


@pytest.mark.parametrize(
    "first,second,name",
    [("{key: a, name: erp}", "{key: b, name: erp}", "erp"), ("{key: a, name: '2'}", "b", "2")],
)
def test_api_key_names_are_unique_in_an_application(mistake: Any, first: str, second: str, name: str) -> None:
    assert mistake(f"{HEAD}      - {first}\n      - {second}\n") == (
        f"config.yaml:5:9: applications.demo.apikeys[1]: the name {name} is already given in "
        "applications.demo.apikeys[0] (config.yaml:4:9)"
    )


def test_applications_may_use_equal_key_names(load: Any) -> None:
    text = f"{HEAD}      - {{key: a, name: erp}}\n  other: {{apikeys: [{{key: b, name: erp}}]}}\n"
    assert [list(entry.clients) for entry in load(text).applications.values()] == [["erp"], ["erp"]]


def test_api_keys_are_unique_in_any_form(mistake: Any) -> None:
    found = mistake(f"{HEAD}      - {{key: hidden, name: erp}}\n      - hidden\n")
    assert "apikeys[1]: this API key is already given in applications.demo.apikeys[0]" in found


@cases.parametrize(
    "line,said",
)
def test_mistake_in_a_plan_names_its_key(mistake: Any, line: str, said: str) -> None:
    assert f"applications.demo.{said}" in mistake(f"{HEAD}      - a\n    {line}\n")


DATE, LATER = date(2027, 6, 30), date(2028, 1, 1)


def test_sunset_of_a_key_overrides_that_of_its_application(load: Any) -> None:
    keys = "      - {key: a, sunset: {date: 2028-01-01}}\n      - b\n"
    demo = load(f"{HEAD}{keys}    sunset: {{date: 2027-06-30, link: 'https://a.example/v3'}}\n").applications["demo"]
    assert demo.sunset == config.SunsetSettings(DATE, "https://a.example/v3")
    assert [key.sunset for key in demo.apikeys] == [config.SunsetSettings(LATER), None]


@cases.parametrize("value,said")
def test_mistake_in_a_sunset_names_its_key(mistake: Any, value: str, said: str) -> None:
    assert f"applications.demo.{said}" in mistake(f"{HEAD}      - a\n    sunset: {value}\n")
    assert f"applications.demo.apikeys[0].{said}" in mistake(f"{HEAD}      - {{key: a, sunset: {value}}}\n")


@cases.parametrize("address, seen")
def test_displayed_url_has_no_password(address: str, seen: str) -> None:
    assert config.without_credentials(address) == seen
    assert config.StoreUrl(address).shown == seen


@pytest.mark.parametrize("parts, limit", [("30%", 600), ("7 %", 140), ("100%", 2000), ("12", 12), ("unlimited", None)])
def test_share_of_a_key_is_one_of_the_parts_of_its_application(load: Any, parts: str, limit: int | None) -> None:
    text = f"{HEAD}      - {{key: a, name: nightly, parts: {parts}}}\n    plan: standard\n    client_id: i\n"
    demo = load(text + "    client_secret: s3cret\n").applications["demo"]
    assert demo.parts_of(demo.clients["nightly"]) == limit
