"""Tests of configuration files: their settings, and messages about their mistakes."""

import hashlib
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
    assert own.admin == config.AdminSettings("10.0.0.1", 9000, config.OperatorsToken("sixteen letters."))


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
