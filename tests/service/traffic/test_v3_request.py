"""Request targets, parsed and written back; the most that a request costs (its bill: together/test_costs.py); names of
clients for API keys, which no output contains."""

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import cases

from proxy import errors
from proxy.config import secret
from proxy.traffic import reading, v3_request
from proxy.traffic.v3_request import NO_KEY, ClientKeys, Clients, UnnamedKey, V3Request


@cases.parametrize("target")
def test_target_is_parsed_in_every_form(target: str) -> None:
    assert v3_request.parse_target(target) == ("/parts/match", (("queries", "[1]"),), "K")


@cases.parametrize(
    "query, pairs",
    ("q=caf\udce9", [("q", "caf\ufffd")]),
    ("q=\ud800", [("q", "?")]),
)
def test_values_are_decoded_as_by_the_service(query: str, pairs: Any) -> None:
    assert v3_request.parse_target(f"/v3/parts/match?{query}") == ("/parts/match", tuple(map(tuple, pairs)), None)


@cases.parametrize("target")
def test_path_without_prefix_is_refused(target: str) -> None:
    with pytest.raises(ValueError, match="its path does not begin with /v3 or /api/v3"):
        v3_request.parse_target(target)


@pytest.mark.parametrize(
    "target", ["/v3/", "/v3/part/x", "/v3/parts/a/b", "/v3//parts/x", "/v3/openapi.json", "/v3/manufacturers/x"]
)
def test_unknown_v3_path_is_refused(target: str) -> None:
    with pytest.raises(ValueError, match="its path is none of v3's"):
        v3_request.parse_target(target)


def test_empty_api_key_is_none() -> None:
    assert v3_request.parse_target("/v3/brands/x?apikey=")[2] is None


@pytest.mark.parametrize(
    "name", ["apikey", "APIKey", "apikey[]", "apikey%5B0%5D", "apikey[a]", "apikey[a][]", "%61pikey"]
)
def test_api_key_is_found_for_any_spelling_of_its_name(name: str) -> None:
    assert v3_request.parse_target(f"/v3/brands/x?{name}=K&q=1") == ("/brands/x", (("q", "1"),), "K")


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NAME = TEXT.filter(lambda name: not name.lower().startswith("apikey"))
PAIR = st.tuples(NAME, TEXT)


@given(
    path=st.sampled_from(["/parts/match", "/brands/ü ?#%", "/parts/search"]), query=st.lists(PAIR, max_size=5), key=TEXT
)
def test_serialized_request_is_parsed_back_equal(path: Any, query: Any, key: Any) -> None:
    request = v3_request.V3Request(path, tuple(query))
    read = v3_request.parse_target("/v3" + request.target(key))
    assert read == (path, request.query, key or None)


def match(*queries: Any, more: Any = ()) -> Any:
    return V3Request("/parts/match", (("queries", json.dumps(queries)), *more))


X = {"mpn": "SN74S74N"}
UID = "9cf2558336484335"


@pytest.mark.parametrize(
    "v3_request, parts",
    [
        (match(X), 3),
        (match({**X, "limit": 20}), 20),
        (match({**X, "limit": 0}), 0),
        (match(*[X] * 20), 60),
        (match(*[{**X, "limit": 20}] * 20), 400),
        (match({"mpn": "SN74*"}), 3),
        (match({"mpn": "SN74*N"}), 20),
        (match({"mpn": "SN74*N", "start": 60, "limit": 5}), 65),
        (match(X, more=[("exact_only", "true")]), 20),
        (match(X, more=[("exact_only[]", "")]), 20),
        (match(X, more=[("exact_only", "true"), ("exact_only", "0")]), 3),
        (match(X, more=[("exact_only", "maybe")]), 0),
        (match({"q": "flip flop"}, more=[("exact_only", "1")]), 3),
        (match(X, {"brand": 7}, {}, 5, {"mpn": "--"}, {**X, "limit": 21}), 3),
        (match(*[X] * 21), 0),
        (V3Request("/parts/match", (("queries", "nonsense"),)), 0),
        (V3Request("/parts/match"), 0),
        (V3Request("/parts/search"), 10),
        (V3Request("/parts/search", (("limit", "100"),)), 100),
        (V3Request("/parts/search", (("limit", "100"), ("limit", "7"))), 7),
        (V3Request("/parts/search", (("limit[]", "4"), ("limit[x]", "9"))), 4),
        (V3Request("/parts/search", (("limit", ""),)), 10),
        (V3Request("/parts/search", (("limit", "101"),)), 0),
        (V3Request("/parts/search", (("limit", "ten"),)), 0),
        (V3Request(f"/parts/{UID}"), 1),
        (V3Request("/parts/none"), 0),
        (V3Request("/parts/get_multi", (("uid[]", UID), ("uid[1]", UID), ("uid", "f" * 16), ("uid[]", "x"))), 2),
        (V3Request("/brands/search", (("limit", "100"),)), 0),
        (V3Request("/brands/get_multi", (("uid[]", UID),)), 0),
        (V3Request(f"/categories/{UID}"), 0),
        (V3Request(f"/seller/{UID}"), 0),
        (V3Request("/nowhere"), 0),
    ],
)
def test_request_cost_is_the_maximum_of_its_plan(v3_request: Any, parts: int) -> None:
    assert reading.worst_case_parts(v3_request) == parts


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
    assert [*clients.unnamed.values()] == [UnnamedKey("key 1", shown, "log:1", "log:9", "kicost/1.1")]
