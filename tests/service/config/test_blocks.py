"""Tests of mistakes that are collected: all of them at once, in the order of the file, and no consequences of them."""

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies

from proxy import errors
from proxy.config import loader

SANDBOX = "applications:\n  demo:\n    apikeys: [a-key]\n"
REAL = "upstream: {graphql_url: 'http://a/g', token_url: 'http://a/t'}\n"

MANY = Path(__file__).with_name("many_mistakes.yaml").read_text(encoding="utf-8")
MISTAKES = Path(__file__).with_name("many_mistakes.txt").read_text(encoding="utf-8")  # place and path of each


def test_every_mistake_is_reported_in_the_order_of_the_file(mistake: Any) -> None:
    found = mistake(MANY).splitlines()
    starts = [f"config.yaml:{start.replace(' ', ': ', 1)}" for start in MISTAKES.splitlines()]
    assert [line[: len(start)] for line, start in zip(found, starts, strict=True)] == starts


@pytest.mark.parametrize(
    "text, message",
    [
        pytest.param(SANDBOX.replace("apikeys", "apikys"), "unknown key", id="a required key that is misspelt"),
        pytest.param("aplications: {demo: {apikeys: [a]}}", "unknown key", id="a required block that is misspelt"),
        pytest.param(f"upstrem: {{graphql_url: 'http://a/'}}\n{SANDBOX}", "unknown key", id="upstream is misspelt"),
        pytest.param("applications: {demo: 5}", "not accepted", id="no block"),
        pytest.param("[]", "not accepted", id="no settings at all"),
        pytest.param("applications: {demo: {apikeys: [env:A]}}", "is read from nowhere else", id="a wrong apikey"),
        pytest.param(f"{REAL}{SANDBOX}    client_id: a\n    client_secret: env:NOPE\n", "NOPE", id="secret"),
    ],
)
def test_a_mistake_has_no_consequences_that_are_reported_too(mistake: Any, text: str, message: str) -> None:
    (found,) = mistake(text).splitlines()
    assert message in found


def test_a_key_of_the_store_is_required_without_an_upstream_too(tmp_path: Any) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(f"store: env:NOPE\n{SANDBOX}")
    with pytest.raises(errors.ConfigError, match="store: the environment variable NOPE is not set"):
        loader.load(file, {}, upstream=False)


SCALARS = (
    strategies.none(),
    strategies.booleans(),
    strategies.integers(),
    strategies.floats(allow_nan=False),
    strategies.text(),
)
VALUES = strategies.recursive(
    strategies.one_of(*SCALARS),
    lambda inner: strategies.lists(inner, max_size=3) | strategies.dictionaries(strategies.text(), inner, max_size=3),
    max_leaves=5,
)
FULL: dict[str, Any] = {
    "upstream": {"graphql_url": "http://a/g", "token_url": "http://a/t", "proxy": None},
    "store": "memory:",
    "uids": None,
    "listen": {"port": 1, "trusted_proxies": ["10.0.0.0/8"]},
    "applications": {
        "demo": {
            "apikeys": ["a", {"key": "b", "name": "b", "sunset": {"date": "2028-06-30"}}],
            "client_id": "a",
            "client_secret": "b",
            "features": ["LEAD_TIME"],
            "sunset": {"date": "2027-06-30", "link": "https://a"},
        }
    },
}


def _paths(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(path for key, child in children for path in _paths(child, (*at, key)))]


@given(strategies.lists(strategies.tuples(strategies.sampled_from(_paths(FULL)), VALUES), min_size=1, max_size=3))
def test_any_value_anywhere_is_accepted_or_a_mistake_with_its_place(changes: list[tuple[tuple[Any, ...], Any]]) -> None:
    document = json.loads(json.dumps({"": FULL}))
    for path, value in changes:
        parent = document
        try:
            for step in ("", *path)[:-1]:
                parent = parent[step]
            parent[("", *path)[-1]] = value
        except (KeyError, IndexError, TypeError):  # an earlier change has removed it
            continue
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "config.yaml"
        file.write_text(json.dumps(document[""]), encoding="utf-8")
        mistakes = _mistakes(file)
    assert [
        mistake for mistake in mistakes if not mistake.startswith("config.yaml:") or not mistake.isprintable()
    ] == []


def _mistakes(file: Path) -> list[str]:
    try:
        loader.load(file, {"KEY": "A" * 43 + "="})
    except errors.ConfigError as error:
        return error.message.split("\n")
    return []
