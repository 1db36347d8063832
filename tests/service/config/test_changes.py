"""Differences of two configurations, and what of them waits for a restart."""

from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import pytest

from proxy import config, errors
from proxy.config import changes

UPSTREAM = config.UpstreamSettings("https://one.example/graphql", "https://one.example/token")

LEFT = "; it has the client_id of old, and parts that old has used do not count for its limit"


def key(text: str, **fields: Any) -> config.ApiKeySettings:
    return config.ApiKeySettings(config.digest(text), **fields)


def application(*keys: config.ApiKeySettings, **fields: Any) -> config.ApplicationSettings:
    credentials = {"client_id": config.ClientId("an-id"), "client_secret": config.Secret("a-secret")}
    return config.ApplicationSettings(keys or (key("a-key"),), **{**credentials, **fields})


def settings(demo: config.ApplicationSettings | None = None, **blocks: Any) -> config.Config:
    return config.Config(**{"applications": {"demo": demo or application()}, "upstream": UPSTREAM, **blocks})


def changed(before: config.Config, after: config.Config) -> list[str]:
    return changes.changed_settings(before, after)


@pytest.mark.parametrize(
    "after, names",
    [
        (settings(), []),
        (settings(cache=config.CacheSettings(seconds=1.0)), ["cache.seconds"]),
        (settings(application(parts=5)), ["applications.demo.parts"]),
        (settings(application(client_secret=config.Secret("new"))), ["applications.demo.client_secret"]),
        (settings(application(key("new"))), ["applications.demo.apikeys.1.key"]),
        (settings(application(key("a-key", rate=3))), ["applications.demo.apikeys.1.rate"]),
        (
            settings(application(key("a-key", expires=date(2027, 1, 31)), key("new", name="new"))),
            ["applications.demo.apikeys.new (added)", "applications.demo.apikeys.1.expires"],
        ),
        (
            settings(upstream=msgspec.structs.replace(UPSTREAM, timeouts=config.TimeoutSettings(total_seconds=9.0))),
            ["upstream.timeouts.total_seconds"],
        ),
        (settings(upstream="sandbox"), ["upstream"]),
        (settings(admin=False), ["admin"]),
    ],
)
def test_changed_settings_are_named(after: config.Config, names: list[str]) -> None:
    assert sorted(changed(settings(), after)) == sorted(names)
    assert changed(after, after) == []


def test_applications_and_keys_are_compared_by_name() -> None:
    erp, shop = key("erp-key", name="erp"), key("shop-key", name="shop")
    before = config.Config({"demo": application(erp, shop), "old": application()})
    after = config.Config({"new": application(), "demo": application(shop, erp)})
    assert changed(before, after) == ["applications.old (removed)", f"applications.new (added{LEFT})"]
    other = {"new": application(client_id=config.ClientId("another-id")), "demo": application(erp, shop)}
    assert changed(before, config.Config(other)) == ["applications.old (removed)", "applications.new (added)"]


def test_no_value_of_a_secret_is_named() -> None:
    before = settings(application(key("first-secret"), client_secret=config.Secret("second-secret")))
    after = settings(application(key("third-secret"), client_secret=config.Secret("fourth-secret")))
    names = " ".join(changed(before, after))
    assert "secret" not in names.replace("client_secret", "")


def test_what_waits_for_a_restart_stays_as_it_is() -> None:
    running = settings(listen=config.ListenSettings("127.0.0.1", 8080, 2), store=config.StoreUrl("memory:"))
    wanted = settings(
        listen=config.ListenSettings("0.0.0.0", 80, 4, connections=7),
        admin=config.AdminSettings("::1", 1, config.Secret("new")),
        store=config.StoreUrl("sqlite"),
        coalescing=config.CoalescingSettings(False),
    )
    names = changed(running, wanted)
    waiting = {"listen.host", "listen.port", "listen.workers", "admin.host", "admin.port", "store"}
    assert waiting == set(names) & changes.NEEDS_RESTART
    merged = changes.with_unchangeable(running, wanted)
    assert set(changed(running, merged)) == set(names) - waiting
    assert changed(merged, wanted) == [name for name in names if name in waiting]


@pytest.mark.parametrize("before, after", [(False, config.AdminSettings()), (config.AdminSettings(), False)])
def test_admin_interface_cannot_be_switched(before: Any, after: Any) -> None:
    assert changes.with_unchangeable(settings(admin=before), settings(admin=after)).admin == before


def test_change_to_the_sandbox_waits_for_a_restart() -> None:
    assert changes.with_unchangeable(settings(), settings(upstream="sandbox")).upstream == UPSTREAM
    without_credentials = settings(application(client_id=None, client_secret=None), upstream="sandbox")
    with pytest.raises(errors.ConfigError, match="upstream: the change to sandbox"):
        changes.with_unchangeable(settings(), without_credentials)


def test_content_of_files_counts(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("uids.yaml", "ca.pem")]
    for file in files:
        file.write_text("before")
    uids, ca = (config.File(str(file)) for file in files)
    read = settings(
        uids=uids,
        upstream=msgspec.structs.replace(UPSTREAM, tls=config.TlsSettings(ca)),
    )
    before = changes.contents(read)
    assert changes.changed_files(before, changes.contents(read)) == []
    files[0].unlink()
    files[1].write_text("after")
    names = ["content of uids", "content of upstream.tls.ca_file"]
    assert sorted(changes.changed_files(before, changes.contents(read))) == names
