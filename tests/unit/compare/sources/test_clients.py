"""Names for keys and keys for names; nothing shows a key."""

import hashlib
from typing import Any

import pytest

from proxy import errors
from proxy.compare.judging.settings import ClientKeys
from proxy.compare.results import UnnamedKey
from proxy.compare.sources.clients import NO_KEY, Clients
from proxy.config import secret


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


def test_keys_that_nobody_named_are_numbered_as_they_appear() -> None:
    clients = Clients()
    assert [clients.name(key) for key in ("b", "a", "b", "c")] == ["key 1", "key 2", "key 1", "key 3"]
    assert (clients.key("key 2", "baseline"), clients.key("key 2", "candidate")) == ("a", "a")


def test_a_request_without_a_key_has_none_to_send() -> None:
    clients = Clients()
    assert [clients.name(None), clients.name("")] == [NO_KEY, NO_KEY]
    assert clients.key(NO_KEY, "candidate") is None
    assert clients.key("somebody", "baseline") is None


@pytest.mark.parametrize("source", ["seen", digest("seen"), digest("seen").upper().replace("SHA", "sha")])
def test_a_named_client_is_known_by_its_key_or_its_digest(source: Any) -> None:
    clients = Clients([entry("the shop", source, "for the old", "for the new")])
    assert clients.name("seen") == "the shop"
    assert (clients.key("the shop", "baseline"), clients.key("the shop", "candidate")) == ("for the old", "for the new")


def test_what_is_not_set_is_the_key_that_was_seen() -> None:
    clients = Clients([entry("the shop", digest("seen"), candidate="for the new")])
    assert clients.key("the shop", "baseline") is None
    clients.name("seen")
    assert (clients.key("the shop", "baseline"), clients.key("the shop", "candidate")) == ("seen", "for the new")


def test_requests_without_a_key_can_be_given_one() -> None:
    clients = Clients([entry("parts lists", None, "o", "n"), entry("the shop", "seen")])
    assert clients.name(None) == "parts lists"
    assert (clients.key("parts lists", "baseline"), clients.key("parts lists", "candidate")) == ("o", "n")


def test_all_other_keys_can_be_sent_as_one_and_keep_their_names() -> None:
    clients = Clients([entry("the shop", "seen"), entry("everybody", "*", candidate="n")])
    assert [clients.name(key) for key in ("x", "seen", "y")] == ["key 1", "the shop", "key 2"]
    assert [clients.key(name, "candidate") for name in ("key 1", "key 2", "the shop", NO_KEY)] == [
        "n",
        "n",
        "seen",
        None,
    ]
    assert clients.key("key 2", "baseline") == "y"


def test_a_number_that_is_somebody_s_name_is_not_given_again() -> None:
    clients = Clients([entry("key 1", "seen")])
    assert [clients.name("x"), clients.name("seen")] == ["key 2", "key 1"]


@pytest.mark.parametrize("sources", [("5ecret", digest("5ecret")), (None, None), ("*", "*")])
def test_two_clients_with_one_source_are_refused_without_it(sources: Any) -> None:
    with pytest.raises(errors.ConfigError, match=r"^the clients a and b have the same source$"):
        Clients([entry("a", sources[0]), entry("b", sources[1])])


def test_every_key_is_known_as_a_secret_the_longest_first_and_shown_nowhere() -> None:
    entries = [
        entry("a", "5ecret-1", "5ecret-long", None),
        entry("b", digest("5ecret-2")),
        entry("c", "*"),
    ]
    clients = Clients(entries)
    clients.name("5ecret-2")
    clients.name("5ecret-3")
    assert clients.secrets() == ("5ecret-long", "5ecret-2", "5ecret-3")
    assert "5ecret" not in repr([clients, entries, f"{entries[0]}"])
    assert repr(clients) == "Clients(a, b, c, key 1; keys hidden)"


def test_a_key_that_nobody_named_is_known_by_its_fingerprint_its_places_and_its_program() -> None:
    clients = Clients([entry("erp", "5ecret-1")])
    for key, place, agent in (
        ("5ecret-2", "log:1", None),
        ("5ecret-1", "log:2", "erp/1"),
        ("5ecret-2", "log:3", "kicost/1.1"),
        ("5ecret-2", "log:9", "curl/8"),
        (None, "log:10", "curl/8"),
    ):
        clients.met(key, place, agent)
    shown = hashlib.sha256(b"5ecret-2").hexdigest()[:4]
    assert clients.unnamed() == (UnnamedKey("key 1", shown, "log:1", "log:9", "kicost/1.1"),)
