"""Tests of redaction: API keys are removed from texts, values and bodies; other text is unchanged."""

import itertools
import json
import time
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from support import cases

from proxy.redaction import Redaction

KEY = "9f3c0de5ba11ad00"


@pytest.fixture
def redaction() -> Any:
    return Redaction([KEY])


@cases.parametrize("text,left")
def test_known_and_sent_api_keys_are_redacted(redaction: Any, text: str, left: str) -> None:
    assert redaction.text(text.replace("<KEY>", KEY)) == left


@pytest.mark.parametrize("secret", ["k/ey+with=signs", "schlüssel-ä-lang", 'quote"and\\slash', "percent%41key"])
def test_every_encoding_of_a_key_is_redacted(secret: str) -> None:
    redaction = Redaction([secret])
    for spelling in (secret, quote(secret, safe=""), quote_plus(secret), quote(secret, safe="").lower()):
        assert redaction.text(f"<{spelling}>") == "<…>"
    body = json.dumps({"link": f"https://x/?k={secret}", secret: 1}).encode()
    assert json.loads(redaction.body(body)) == {"link": "https://x/?k=…", "…": 1}


def test_short_key_is_redacted_as_a_whole_word_only() -> None:
    redaction = Redaction(["demo"])
    assert redaction.text("key demo, demolition, apikey=demo&x") == "key …, demolition, apikey=…&x"


def test_longer_of_overlapping_keys_is_redacted_completely() -> None:
    assert Redaction(["secret-key-1", "secret-key-123"]).text("secret-key-123") == "…"


def test_numeric_key_does_not_change_numbers_of_a_body() -> None:
    body = b'{"in_stock_quantity": 12345678, "link": "https://x/?apikey=12345678", "uid": "12345678"}'
    left = json.loads(Redaction(["12345678"]).body(body))
    assert left == {"in_stock_quantity": 12345678, "link": "https://x/?apikey=…", "uid": "…"}


@pytest.mark.parametrize("key", ["1", "-1.5e3", "true", "false", "null", "nul", ": 1", "},{", "a", 'k","'])
def test_redacted_body_stays_valid_json(key: str) -> None:
    body: dict[str, Any] = {"a": [1, -1.5e3, True, False, None, {}, {}], "told": f"<{key}>"}
    left = json.loads(Redaction([key]).body(json.dumps(body).encode()))
    assert (left["told"], next(iter(left.values()))) == ("<…>", body["a"])


def test_body_without_keys_is_unchanged(redaction: Any) -> None:
    for body in (b'{"price": 1.10, "name": "\xc3\xa4", "bad": "\xff"}', b"<html>\xff</html>", b"", b'cb({"a":1})'):
        assert redaction.body(body) == body


def test_apikey_field_of_a_body_is_redacted(redaction: Any) -> None:
    assert (
        redaction.body(b'{"request": {"apikey" : "an\\"y", "q": "x"}}')
        == '{"request": {"apikey" : "…", "q": "x"}}'.encode()
    )


def test_repr_shows_no_key(redaction: Any) -> None:
    assert KEY not in repr(redaction)


def test_keys_are_redacted_in_non_json_bodies(redaction: Any) -> None:
    assert redaction.body(f'cb({{"a":"{KEY}"}})'.encode()) == 'cb({"a":"…"})'.encode()


def test_many_keys_are_redacted_in_bounded_time() -> None:
    redaction = Redaction([f"{number:016x}" for number in range(2000)])
    body = json.dumps([{"uid": f"{n:x}", "name": "a part of some name"} for n in range(4000)]).encode()
    began = time.process_time()
    redaction.body(body)
    assert time.process_time() - began < 5


OURS = 'ours-"é+/='
REDACTION = Redaction(is_key=lambda text: text in ("OURS", OURS))


@cases.parametrize("target, shown")
def test_target_is_shown_without_api_keys(target: str, shown: str) -> None:
    assert REDACTION.including(target).text(target) == shown
    assert REDACTION.including(target).text(shown) == shown


@cases.parametrize(
    "text, shown",
    (f"erp/1 key={OURS}", "erp/1 key=…"),
)
def test_texts_of_a_client_are_shown_without_its_api_keys(text: str, shown: str) -> None:
    assert REDACTION.including("/v3/parts/match?queries=[]&apikey=S3CR%2BT&apikey=").text(text) == shown


@pytest.mark.parametrize("key", ["aGVsbG8+d29y/bGQ==", "4f9a8c1e2b", "550e8400-e29b-41d4-a716-446655440000"])
def test_a_key_is_hidden_between_other_words(key: str) -> None:
    """Also one in Base64, whose punctuation separates words elsewhere."""
    redaction = Redaction(is_key=lambda text: text == key)
    targets = ("match;<KEY>", "match?q=a+<KEY>+b", "match?q=x,<KEY>", "match?q=(<KEY>)", "match?q=mpn:<KEY>.", "<KEY>")
    agents = ("erp/<KEY>", "<KEY>/1.0", "erp (k=<KEY>; Windows)", "erp,<KEY>", "erp|<KEY>|", "erp '<KEY>'")
    once = quote(key, safe="")
    for target, spelling in itertools.product(targets, (once, quote(once, safe=""))):
        assert redaction.text(f"/v3/parts/{target.replace('<KEY>', spelling)}").count("…") == 1, target
    for agent in agents:
        assert redaction.text(agent.replace("<KEY>", key)) == agent.replace("<KEY>", "…")


@cases.parametrize("repeated")
def test_a_hostile_target_is_shown_in_bounded_time(repeated: str) -> None:
    target = f"/v3/parts/match?q={repeated * (69_000 // len(repeated))}u"
    began = time.process_time()
    REDACTION.including(target).text(target)
    assert time.process_time() - began < 2
