"""Configuration files: their settings, the store, API keys, quotas and rates; and messages about their mistakes."""

import hashlib
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support import cases

from proxy import config

SANDBOX = """\
applications:
  demo:
    apikeys: ["plain-key"]
"""

REAL = """\
upstream:
  graphql_url: https://api.example/graphql
  token_url: https://identity.example/connect/token
applications:
  main:
    client_id: env:ID
    client_secret: {secret}
    apikeys: ["plain-key", "{digest}"]
    country: DE
    currency: EUR
    features: [LEAD_TIME, DATASHEETS]
"""


def real(secret: str = "env:SECRET") -> str:
    return REAL.format(secret=secret, digest="sha256:" + hashlib.sha256(b"other-key").hexdigest())


def test_missing_setting_has_its_default(load: Any, tmp_path: Path) -> None:
    demo = config.ApplicationSettings(apikeys=(config.ApiKeySettings(config.digest("plain-key")),))
    store = config.StoreUrl(f"sqlite:{tmp_path}/config.sqlite")
    loaded = load(SANDBOX)
    assert loaded == config.Config(applications={"demo": demo}, store=store)
    assert loaded.applications["demo"].allowed_features == frozenset(config.FEATURES)


def test_every_written_setting_is_loaded(load: Any) -> None:
    loaded = load(real(), ID=" the-id\n", SECRET="the-secret")
    main = loaded.applications["main"]
    assert loaded.upstream == config.UpstreamSettings(
        graphql_url="https://api.example/graphql", token_url="https://identity.example/connect/token"
    )
    assert (main.client_id, main.country, main.currency) == ("the-id", "DE", "EUR")
    assert main.client_secret.reveal() == "the-secret"
    assert main.allowed_features == {"LEAD_TIME", "DATASHEETS"}
    assert [apikey.key for apikey in main.apikeys] == [config.digest("plain-key"), config.digest("other-key")]


def test_files_are_relative_to_the_configuration(load: Any, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("from-a-file\n")
    (tmp_path / "uids.yaml").write_text("")
    text = f"uids: uids.yaml\n{real('file:secret.txt')}".replace(
        "\napplications:", "\n  total_seconds: 9\napplications:"
    )
    loaded = load(text, ID="i")
    assert loaded.applications["main"].client_secret.reveal() == "from-a-file"
    assert loaded.uids == str(tmp_path / "uids.yaml")
    assert loaded.upstream.total_seconds == 9


@pytest.mark.parametrize("address", ["http://proxy.example:3128", "http://me:hidden@[::1]:3128/", "http://proxy"])
def test_repr_of_the_configuration_shows_no_secret(load: Any, address: str) -> None:
    text = f"store: rediss://:passw0rd@host\n{real('the-secret')}".replace(
        "applications:", "  proxy: env:PROXY\napplications:"
    )
    loaded = load(text, ID="i", PROXY=address)
    assert loaded.upstream.proxy.reveal() == address
    shown = f"{loaded!r} {loaded.store}"
    secrets = address, "the-secret", "passw0rd", "plain-key", hashlib.sha256(b"plain-key").hexdigest()
    assert [each for each in secrets if each in shown] == []


BLOCKS = [
    name
    for name, default in msgspec.structs.asdict(config.Config(applications={})).items()
    if isinstance(default, msgspec.Struct)
]


@pytest.mark.parametrize("name", BLOCKS)
def test_every_block_is_read(mistake: Any, name: str) -> None:
    assert f"{name}.no_such_setting: unknown key" in mistake(f"{name}: {{no_such_setting: 1}}\n{SANDBOX}")


@cases.parametrize("block, message")
def test_mistake_names_position_key_and_accepted_values(mistake: Any, block: str, message: str) -> None:
    assert mistake(f"{block}\n{SANDBOX}").startswith(message)


@cases.parametrize("key, value, message")
def test_mistake_in_upstream_settings_is_shown(mistake: Any, key: str, value: int | str, message: str) -> None:
    block, _, inner = key.partition(".")
    upstream = {"graphql_url": "https://a/g", "token_url": "https://a/t", block: {inner: value} if inner else value}
    shown = mistake(f"upstream: {msgspec.json.encode(upstream).decode()}\n{SANDBOX}")
    assert f"upstream.{key}: {message}" in shown or f"upstream.{message}" in shown


@cases.parametrize("line, message")
def test_mistake_in_an_application_names_it(mistake: Any, tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "empty.txt").write_text(" \n")
    lines = mistake(f"{SANDBOX}    {line}\n", EMPTY=" ").splitlines()
    place = "2:3" if "missing" in message else "4:16" if "[0]" in message else "4:5"
    # A secret on the sandbox also needs the client id that is not here.
    assert next(each for each in lines if message in each).startswith(f"config.yaml:{place}: applications.demo.")


@cases.parametrize("apikeys, message")
def test_mistake_in_api_keys_shows_no_key(mistake: Any, apikeys: str, message: str) -> None:
    found = mistake(f"applications:\n  demo:\n    apikeys: {apikeys}\n")
    assert f"applications.demo.{message}" in found
    assert "12345678" not in found


def test_api_key_of_two_applications_is_refused_with_both_positions(mistake: Any) -> None:
    other = hashlib.sha256(b"plain-key").hexdigest().upper()
    assert mistake(f"{SANDBOX}  second:\n    apikeys:\n      - free\n      - sha256:{other}\n") == (
        "config.yaml:7:9: applications.second.apikeys[1]: "
        "this API key is already given in applications.demo.apikeys[0] (config.yaml:3:15)"
    )


@pytest.mark.parametrize(
    "text, message",
    [
        *((text, "at least one block") for text in ("", "applications:", "applications: {}", "applications: [a]")),
        ("applications:\n  demo:\n", "2:3: applications.demo.apikeys: is missing; it accepts a list"),
        ("applications:\n  7: {apikeys: [a]}\n", ": is not a name"),
        ("applications:\n  demo:\n    apikeys: [KEY-1]\n    plan: free\n", "evaluation, standard, pro or enterprise"),
        (real().replace("    client_secret: env:SECRET\n", ""), "5:3: applications.main.client_secret: is missing"),
        (f"admin: {{token: hidden-letters}}\n{SANDBOX}", "admin.token: is shorter than 16 characters"),
    ],
)
def test_mistake_says_what_is_accepted(mistake: Any, text: str, message: str) -> None:
    assert message in mistake(text, ID="i")


def test_operators_port_is_open_unless_it_is_switched_off(load: Any) -> None:
    assert load(SANDBOX).admin == config.AdminSettings()
    assert load(f"admin: false\n{SANDBOX}").admin is False
    own = load(f"admin: {{host: 10.0.0.1, port: 9000, token: env:TOKEN}}\n{SANDBOX}", TOKEN="sixteen letters.")
    assert own.admin == config.AdminSettings("10.0.0.1", 9000, config.secret.OperatorsToken("sixteen letters."))


@pytest.mark.parametrize(
    "lines, expected",
    [
        ("plan: evaluation", (100, "lifetime", "all")),
        ("plan: standard", (2_000, "month", ())),
        ("plan: pro\n    features: [DATASHEETS]", (15_000, "month", ("DATASHEETS",))),
        ("plan: enterprise\n    parts: 50000", (50_000, "month", "all")),
        ("plan: evaluation\n    period: month", (100, "month", "all")),
    ],
)
def test_plan_sets_parts_period_and_features_unless_they_are_set(load: Any, lines: str, expected: Any) -> None:
    application = load(f"applications:\n  demo:\n    apikeys: [KEY-1]\n    {lines}\n").applications["demo"]
    assert (application.parts, application.period, application.features) == expected


HEAD = "applications:\n  demo:\n    apikeys:\n"


def stored(line: str = "") -> str:
    return f"{line}\n{HEAD}      - a-key\n"


@cases.parametrize("written,url")
def test_every_form_of_store_is_accepted(load: Any, written: str, url: str) -> None:
    assert load(stored(written), STORE="rediss://:word@host\n").store == config.StoreUrl(url)


@pytest.mark.parametrize(
    "written, file",
    [
        *((written, "config.sqlite") for written in ("", "store:", "store: sqlite")),
        ("store: sqlite:own/state.sqlite", "own/state.sqlite"),
        ("store: file:url", "other.sqlite"),
    ],
)
def test_store_is_relative_to_the_configuration(load: Any, tmp_path: Path, written: str, file: str) -> None:
    (tmp_path / "url").write_text("sqlite:other.sqlite\n")
    assert load(stored(written)).store.reveal() == f"sqlite:{tmp_path}/{file}"


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


def test_api_key_may_be_a_block(load: Any) -> None:
    text = (
        f'{HEAD}      - plain\n      - {{key: other, name: erp, parts: 500, rate: 3}}\n      - {{key: "third"}}\n'
        "    parts: 1000\n    period: lifetime\n    rate: 5\n"
    )
    demo = load(text).applications["demo"]
    assert (demo.parts, demo.period, demo.rate) == (1000, "lifetime", 5)
    assert demo.clients == {
        "1": (config.ApiKeySettings(config.digest("plain")), None),
        "erp": (config.ApiKeySettings(config.digest("other"), "erp", parts=500, rate=3), 500),
        "3": (config.ApiKeySettings(config.digest("third")), None),
    }


@cases.parametrize("entry,place,said")
def test_mistake_in_a_block_names_line_and_key(mistake: Any, entry: str, place: str, said: str) -> None:
    found = mistake(f"{HEAD}      - {entry}\n")
    assert found.startswith(f"config.yaml:{place}: applications.demo.{said}")
    assert "7777" not in found


@pytest.mark.parametrize(
    "first, second, what",
    [
        ("{key: a, name: erp}", "{key: b, name: erp}", "the name erp"),
        ("{key: a, name: '2'}", "b", "the name 2"),
        ("{key: hidden, name: erp}", "hidden", "this API key"),
    ],
)
def test_api_keys_and_their_names_are_unique(mistake: Any, first: str, second: str, what: str) -> None:
    assert mistake(f"{HEAD}      - {first}\n      - {second}\n") == (
        f"config.yaml:5:9: applications.demo.apikeys[1]: {what} is already given in "
        "applications.demo.apikeys[0] (config.yaml:4:9)"
    )


def test_applications_may_use_equal_key_names(load: Any) -> None:
    text = f"{HEAD}      - {{key: a, name: erp}}\n  other: {{apikeys: [{{key: b, name: erp}}]}}\n"
    assert [list(entry.clients) for entry in load(text).applications.values()] == [["erp"], ["erp"]]


@cases.parametrize("line,said")
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
    assert config.StoreUrl(address).shown == seen


@pytest.mark.parametrize("parts, limit", [("30%", 600), ("7 %", 140), ("100%", 2000), ("12", 12), ("unlimited", None)])
def test_share_of_a_key_is_one_of_the_parts_of_its_application(load: Any, parts: str, limit: int | None) -> None:
    text = f"{HEAD}      - {{key: a, name: nightly, parts: {parts}}}\n    plan: standard\n    client_id: i\n"
    demo = load(text + "    client_secret: s3cret\n").applications["demo"]
    assert demo.clients["nightly"][1] == limit
