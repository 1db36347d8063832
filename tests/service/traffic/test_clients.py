"""Tests of client names for API keys; no output contains a key."""

import hashlib
from typing import Any

import pytest

from proxy import errors
from proxy.config import secret
from proxy.traffic.clients import NO_KEY, ClientKeys, Clients, UnnamedKey


def digest(key: Any) -> Any:
    return "sha256:" + hashlib.sha256(key.encode()).hexdigest()


def entry(name: Any, source: Any = None, baseline: Any = None, candidate: Any = None) -> Any:
    """An entry as the loader makes it."""
    return ClientKeys(
        name,
        source and secret.apikey(source),
        baseline and secret.Secret(baseline),
        candidate and secret.Secret(candidate),
    )


def test_unnamed_keys_are_numbered_in_order() -> None:
    clients = Clients()
    assert [clients.register(key) for key in ("b", "a", "b", "c")] == ["key 1", "key 2", "key 1", "key 3"]
    assert (clients.key("key 2", "baseline"), clients.key("key 2", "candidate")) == ("a", "a")


def test_request_without_key_sends_none() -> None:
    clients = Clients()
    assert [clients.register(None), clients.register("")] == [NO_KEY, NO_KEY]
    assert clients.key(NO_KEY, "candidate") is None
    assert clients.key("somebody", "baseline") is None


@pytest.mark.parametrize("source", ["seen", digest("seen"), digest("seen").upper().replace("SHA", "sha")])
def test_named_client_is_identified_by_key_or_digest(source: Any) -> None:
    clients = Clients([entry("the shop", source, "for the old", "for the new")])
    assert clients.register("seen") == "the shop"
    assert (clients.key("the shop", "baseline"), clients.key("the shop", "candidate")) == ("for the old", "for the new")


def test_other_keys_can_be_replaced_by_one_and_keep_their_names() -> None:
    clients = Clients([entry("the shop", "seen"), entry("everybody", "*", candidate="n")])
    assert [clients.register(key) for key in ("x", "seen", "y")] == ["key 1", "the shop", "key 2"]
    assert [clients.key(name, "candidate") for name in ("key 1", "key 2", "the shop", NO_KEY)] == [
        "n",
        "n",
        "seen",
        None,
    ]
    assert clients.key("key 2", "baseline") == "y"


@pytest.mark.parametrize("sources", [("5ecret", digest("5ecret")), (None, None), ("*", "*")])
def test_clients_sharing_a_source_are_refused_without_showing_it(sources: Any) -> None:
    with pytest.raises(errors.ConfigError, match=r"^the clients a and b have the same source$"):
        Clients([entry("a", sources[0]), entry("b", sources[1])])


def test_all_keys_are_secrets_longest_first() -> None:
    entries = [
        entry("a", "5ecret-1", "5ecret-long", None),
        entry("b", digest("5ecret-2")),
        entry("c", "*"),
    ]
    clients = Clients(entries)
    clients.register("5ecret-2")
    clients.register("5ecret-3")
    assert clients.secrets() == ("5ecret-long", "5ecret-2", "5ecret-3")
    assert "5ecret" not in repr([clients, entries, f"{entries[0]}"])
    assert repr(clients) == "Clients(a, b, c, key 1; keys hidden)"


def test_unnamed_key_has_fingerprint_positions_and_program() -> None:
    clients = Clients([entry("erp", "5ecret-1")])
    for key, place, agent in (
        ("5ecret-2", "log:1", None),
        ("5ecret-1", "log:2", "erp/1"),
        ("5ecret-2", "log:3", "kicost/1.1"),
        ("5ecret-2", "log:9", "curl/8"),
        (None, "log:10", "curl/8"),
    ):
        clients.register(key, place, agent or "")
    shown = hashlib.sha256(b"5ecret-2").hexdigest()[:4]
    assert clients.unnamed() == (UnnamedKey("key 1", shown, "log:1", "log:9", "kicost/1.1"),)
