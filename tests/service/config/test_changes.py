"""Reload of a configuration: what waits for a restart."""

from typing import Any

import msgspec
import pytest

from proxy import config, errors, server

TOKEN = config.secret.OperatorsToken("x" * 16)
UPSTREAM = config.UpstreamSettings("https://one.example/graphql", "https://one.example/token")


KEYS = (config.ApiKeySettings(config.digest("a-key")),)
DEMO = config.ApplicationSettings(KEYS, client_id=config.ClientId("an-id"), client_secret=config.Secret("a-secret"))


def settings(demo: config.ApplicationSettings = DEMO, **blocks: Any) -> config.Config:
    return config.Config(**{"applications": {"demo": demo}, "upstream": UPSTREAM, **blocks})


def test_what_waits_for_a_restart_stays_as_it_is() -> None:
    running = settings(listen=config.ListenSettings("127.0.0.1", 8080, 2), store=config.StoreUrl("memory:"))
    wanted = settings(
        listen=config.ListenSettings("0.0.0.0", 80, 4, connections=7),
        admin=config.AdminSettings("::1", 1, TOKEN),
        store=config.StoreUrl("sqlite"),
        cache=config.CacheSettings(2**21),
    )
    merged, waiting = server.with_unchangeable(running, wanted)
    assert waiting == ["store", "listen.host", "listen.port", "listen.workers", "admin.host", "admin.port"]
    assert (merged.store, merged.cache) == (running.store, wanted.cache)
    assert merged.listen == msgspec.structs.replace(running.listen, connections=7)
    assert isinstance(merged.admin, config.AdminSettings)
    assert (merged.admin.host, merged.admin.port, merged.admin.token) == ("127.0.0.1", 8088, TOKEN)
    assert server.with_unchangeable(running, merged) == (merged, [])


@pytest.mark.parametrize("before, after", [(False, config.AdminSettings()), (config.AdminSettings(), False)])
def test_admin_interface_cannot_be_switched(before: Any, after: Any) -> None:
    merged, waiting = server.with_unchangeable(settings(admin=before), settings(admin=after))
    assert (merged.admin, waiting) == (before, ["admin"])


def test_change_to_the_sandbox_waits_for_a_restart() -> None:
    merged, waiting = server.with_unchangeable(settings(), settings(upstream="sandbox"))
    assert (merged.upstream, waiting) == (UPSTREAM, ["upstream"])
    without_credentials = settings(config.ApplicationSettings(KEYS), upstream="sandbox")
    with pytest.raises(errors.ConfigError, match="upstream: the change to sandbox"):
        server.with_unchangeable(settings(), without_credentials)
