"""Ids of requests: the client's, or a new one; never the API key."""

import string

import pytest

from proxy.redaction import Redaction
from proxy.web.middleware import RequestIds

KEY = "0af7651916cd43dd8448eb211c80319c"
REDACTION = Redaction(is_key=lambda text: text == "OURS")


@pytest.mark.parametrize(
    "query", [f"apikey={KEY}", f"apikey%5B%5D={KEY}", f"apikey[0]={KEY}", f"%61pikey={KEY}", f"apikey=%30{KEY[1:]}"]
)
def test_id_that_is_the_api_key_of_the_request_is_not_used(query: str) -> None:
    assert RequestIds(REDACTION).resolve(KEY, f"/v3/parts/match?queries=[]&{query}") != KEY


def test_other_id_is_used() -> None:
    ids = RequestIds(REDACTION)
    target = "/v3/parts/match?apikey=a-key&queries=[]"
    assert ids.resolve("an-id", target) == "an-id"
    assert ids.resolve("OURS", target) != "OURS"


CHARACTERS = string.ascii_letters + string.digits + "._-"


@pytest.mark.parametrize("hexadecimal", ["{:02x}", "{:02X}"])
@pytest.mark.parametrize("character", CHARACTERS)
def test_api_key_with_an_encoded_character_is_recognized(character: str, hexadecimal: str) -> None:
    given = f"id{character}id"
    encoded = f"id%{hexadecimal.format(ord(character))}id"
    assert RequestIds(REDACTION).resolve(given, f"/v3/parts/match?queries=%5B%5D&apikey={encoded}") != given
    assert RequestIds(REDACTION).resolve(given, f"/v3/parts/match?queries=%5B%5D&apikey=a-key&mpn={encoded}") == given
