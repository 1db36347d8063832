"""Configuration files: their settings, the store, API keys, quotas and rates; and messages about their mistakes."""

import hashlib
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support import cases

from proxy import config, errors
from proxy.config import loader

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
    assert load(SANDBOX) == config.Config(applications={"demo": demo}, store=store)


def test_every_written_setting_is_loaded(load: Any) -> None:
    loaded = load(real(), ID=" the-id\n", SECRET="the-secret")
    main = loaded.applications["main"]
    assert loaded.upstream == config.UpstreamSettings(
        graphql_url="https://api.example/graphql", token_url="https://identity.example/connect/token"
    )
    assert (main.client_id, main.country, main.currency) == ("the-id", "DE", "EUR")
    assert main.client_secret is not None
    assert main.client_secret.reveal() == "the-secret"
    assert main.allowed_features == {"LEAD_TIME", "DATASHEETS"}


def test_api_keys_are_stored_as_digests(load: Any) -> None:
    main = load(real(), ID="i", SECRET="s").applications["main"]
    assert [apikey.key for apikey in main.apikeys] == [config.digest("plain-key"), config.digest("other-key")]


def test_features_all_means_every_feature(load: Any) -> None:
    assert load(SANDBOX).applications["demo"].allowed_features == frozenset(config.FEATURES)


def test_secret_file_is_relative_to_the_configuration(load: Any, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("from-a-file\n")
    secret = load(real("file:secret.txt"), ID="i").applications["main"].client_secret
    assert secret is not None
    assert secret.reveal() == "from-a-file"


def test_files_are_relative_to_the_configuration(load: Any, tmp_path: Path) -> None:
    (tmp_path / "uids.yaml").write_text("")
    loaded = load(
        f"uids: uids.yaml\n{real()}".replace("\napplications:", "\n  total_seconds: 9\napplications:"),
        ID="i",
        SECRET="s",
    )
    assert loaded.uids == str(tmp_path / "uids.yaml")
    assert loaded.upstream.total_seconds == 9


@pytest.mark.parametrize("address", ["http://proxy.example:3128", "http://me:hidden@[::1]:3128/", "http://proxy"])
def test_proxy_url_is_hidden_in_repr(load: Any, address: str) -> None:
    text = real().replace("applications:", "  proxy: env:PROXY\napplications:")
    loaded = load(text, ID="i", SECRET="s", PROXY=address)
    assert loaded.upstream.proxy.reveal() == address
    assert address not in repr(loaded)


def test_repr_of_the_configuration_shows_no_secret(load: Any) -> None:
    shown = repr(load(real("'the-secret'"), ID="i"))
    assert "the-secret" not in shown
    assert "plain-key" not in shown
    assert hashlib.sha256(b"plain-key").hexdigest() not in shown


BLOCKS = [
    name
    for name, default in msgspec.structs.asdict(config.Config(applications={})).items()
    if isinstance(default, msgspec.Struct)
]


@pytest.mark.parametrize("name", BLOCKS)
def test_every_block_is_read(load: Any, name: str) -> None:
    with pytest.raises(errors.ConfigError, match=rf"{name}\.no_such_setting: unknown key"):
        load(f"{name}: {{no_such_setting: 1}}\n{SANDBOX}")


@cases.parametrize("block, message")
def test_mistake_names_position_key_and_accepted_values(load: Any, block: str, message: str) -> None:
    with pytest.raises(errors.ConfigError) as found:
        load(f"{block}\n{SANDBOX}")
    assert str(found.value).startswith(message)


@cases.parametrize("key, value, message")
def test_mistake_in_upstream_settings_is_shown(load: Any, key: str, value: int | str, message: str) -> None:
    block, _, inner = key.partition(".")
    upstream = {"graphql_url": "https://a/g", "token_url": "https://a/t", block: {inner: value} if inner else value}
    with pytest.raises(errors.ConfigError) as found:
        load(f"upstream: {msgspec.json.encode(upstream).decode()}\n{SANDBOX}")
    shown = str(found.value)
    assert f"upstream.{key}: {message}" in shown or f"upstream.{message}" in shown
    assert "hidden" not in str(found.value)


@cases.parametrize("line, message")
def test_mistake_in_an_application_names_it(load: Any, tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "empty.txt").write_text(" \n")
    with pytest.raises(errors.ConfigError) as found:
        load(f"{SANDBOX}    {line}\n", EMPTY=" ")
    place = "2:3" if "missing" in message else "4:16" if "[0]" in message else "4:5"
    # A secret on the sandbox also needs the client id that is not here.
    mistake = next(mistake for mistake in found.value.message.splitlines() if message in mistake)
    assert mistake.startswith(f"config.yaml:{place}: applications.demo.")
    assert "hidden" not in str(found.value)


@cases.parametrize("apikeys, message")
def test_mistake_in_api_keys_shows_no_key(load: Any, apikeys: str, message: str) -> None:
    with pytest.raises(errors.ConfigError) as found:
        load(f"applications:\n  demo:\n    apikeys: {apikeys}\n")
    assert f"applications.demo.{message}" in str(found.value)
    assert "hidden" not in str(found.value)
    assert "12345678" not in str(found.value)


def test_api_key_of_two_applications_is_refused_with_both_positions(load: Any) -> None:
    other = hashlib.sha256(b"plain-key").hexdigest().upper()
    with pytest.raises(errors.ConfigError) as found:
        load(f"{SANDBOX}  second:\n    apikeys:\n      - free\n      - sha256:{other}\n")
    assert str(found.value) == (
        "config.yaml:7:9: applications.second.apikeys[1]: "
        "this API key is already given in applications.demo.apikeys[0] (config.yaml:3:15)"
    )


@pytest.mark.parametrize("text", ["", "applications:", "applications: {}", "applications: [a]"])
def test_missing_applications_are_refused(load: Any, text: str) -> None:
    with pytest.raises(errors.ConfigError, match="at least one block"):
        load(text)


def test_application_without_api_keys_is_refused(load: Any) -> None:
    with pytest.raises(errors.ConfigError, match=r"2:3: applications\.demo\.apikeys: is missing; it accepts a list"):
        load("applications:\n  demo:\n")


def test_application_without_name_is_refused(load: Any) -> None:
    with pytest.raises(errors.ConfigError, match=r"applications.*: is not a name"):
        load("applications:\n  7: {apikeys: [a]}\n")


def test_real_upstream_needs_credentials(load: Any) -> None:
    text = real().replace("    client_secret: env:SECRET\n", "")
    with pytest.raises(errors.ConfigError, match=r"5:3: applications\.main\.client_secret: is missing"):
        load(text, ID="i")


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(errors.ConfigError, match=r"no\.yaml: cannot be read: No such file"):
        loader.load(tmp_path / "no.yaml", {})


def test_operators_port_is_open_unless_it_is_switched_off(load: Any) -> None:
    assert load(SANDBOX).admin == config.AdminSettings()
    assert load(f"admin: false\n{SANDBOX}").admin is False
    own = load(f"admin: {{host: 10.0.0.1, port: 9000, token: env:TOKEN}}\n{SANDBOX}", TOKEN="sixteen letters.")
    assert own.admin == config.AdminSettings("10.0.0.1", 9000, config.secret.OperatorsToken("sixteen letters."))


def test_short_admin_token_is_refused_without_showing_it(load: Any) -> None:
    with pytest.raises(errors.ConfigError, match=r"admin\.token: is shorter than 16 characters") as caught:
        load(f"admin: {{token: fifteen-letters}}\n{SANDBOX}")
    assert "fifteen-letters" not in caught.value.message


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


def test_unknown_plan_is_a_mistake(load: Any) -> None:
    with pytest.raises(errors.ConfigError, match="evaluation, standard, pro or enterprise"):
        load("applications:\n  demo:\n    apikeys: [KEY-1]\n    plan: free\n")


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
    assert config.StoreUrl(address).shown == seen


@pytest.mark.parametrize("parts, limit", [("30%", 600), ("7 %", 140), ("100%", 2000), ("12", 12), ("unlimited", None)])
def test_share_of_a_key_is_one_of_the_parts_of_its_application(load: Any, parts: str, limit: int | None) -> None:
    text = f"{HEAD}      - {{key: a, name: nightly, parts: {parts}}}\n    plan: standard\n    client_id: i\n"
    demo = load(text + "    client_secret: s3cret\n").applications["demo"]
    assert demo.parts_of(demo.clients["nightly"]) == limit
