"""How the old service speaks HTTP: prefixes, keys, its rate, errors, JSONP, pretty print (§2, §5, §6)."""

import asyncio
import json
from urllib.parse import quote

import pytest
from sandbox.legacy_client import KEY, LegacyClient, StartLegacy
from support import cases

from proxy.kit import clock

DIGIKEY = "/sellers/2c3be9310496fffc"
FORBIDDEN = b'{\n  "__class__": "ClientErrorResponse",\n  "message": "Forbidden request"\n}'


async def test_both_prefixes_and_a_trailing_slash_are_accepted(legacy: LegacyClient) -> None:
    expected = (await legacy.get(DIGIKEY)).body
    for path in (f"{DIGIKEY}/", f"/api/v3{DIGIKEY}", f"/api/v3{DIGIKEY}/"):
        assert (await legacy.get(path)).body == expected
    assert (await legacy.get(DIGIKEY.replace("sellers", "seller"))).body == expected
    assert (await legacy.get("/sellers/get_multi/?uid[]=2c3be9310496fffc")).json == {
        "2c3be9310496fffc": json.loads(expected)
    }


async def test_an_unknown_api_key_gets_403_and_a_missing_one_400(legacy: LegacyClient) -> None:
    response = await legacy.get(DIGIKEY, key="01234567")
    assert (response.status, response.body, response.headers["Content-Type"]) == (403, FORBIDDEN, "application/json")
    assert (await legacy.get(DIGIKEY, key=None)).status == 400
    assert (await legacy.get(DIGIKEY, key="")).status == 400


@cases.parametrize(
    "path, method, status",
    (DIGIKEY, "DELETE", 405),
)
async def test_an_unknown_path_gets_a_json_error(legacy: LegacyClient, path: str, method: str, status: int) -> None:
    response = await legacy.get(path, method=method)
    assert (response.status, response.json["__class__"]) == (status, "ClientErrorResponse")


async def test_rate_limit_is_three_a_second_per_key(start_legacy: StartLegacy, manual_clock: clock.ManualClock) -> None:
    async with start_legacy(requests_per_second=3, apikeys=("one", "two")) as old:
        statuses = [(await old.get(DIGIKEY, key="one")).status for _ in range(5)]
        assert statuses == [200, 200, 200, 429, 429]
        assert (await old.get(DIGIKEY, key="two")).status == 200
        manual_clock.advance(1)
        assert (await old.get(DIGIKEY, key="one")).status == 200


async def test_the_journal_has_legacy_requests_without_keys(legacy: LegacyClient) -> None:
    await legacy.get(DIGIKEY)
    await legacy.get("/parts/ffffffffffffffff")
    entries = legacy.sandbox.journal.entries
    assert [(each.service, each.operation, each.status, each.parts) for each in entries] == [
        ("legacy", "/sellers/{uid}", 200, 0),
        ("legacy", "/parts/{uid}", 404, 0),
    ]
    assert KEY not in repr(entries) + repr(legacy.sandbox)


async def test_bodies_are_sorted_escaped_and_indented_as_recorded(legacy: LegacyClient) -> None:
    """As recorded: 2018-10 and 2019-05 without pretty_print two deep, 2015-02 with it four."""
    target = "/parts/search?q=resistor&include[]=specs&limit=2"
    plain = await legacy.get(target)
    assert "Ω" in str(plain.json["results"])
    assert plain.body == json.dumps(plain.json, indent=2, sort_keys=True).encode()
    for spelling in ("true", "1", "True"):
        pretty = await legacy.get(f"{target}&pretty_print={spelling}")
        assert pretty.body == json.dumps(pretty.json, indent=4, sort_keys=True).encode()
        assert plain.json["results"] == pretty.json["results"]


async def test_large_integers_and_characters_beyond_16_bits_are_serialized_as_recorded(legacy: LegacyClient) -> None:
    for reference in (2**70, "\U0001f50c ± \ud83d"):
        queries = quote(json.dumps([{"mpn": "SN74S74N", "reference": reference, "limit": 1}]))
        response = await legacy.get(f"/parts/match?queries={queries}")
        assert response.json["results"][0]["reference"] == reference
        assert response.body == json.dumps(response.json, indent=2, sort_keys=True).encode()


async def test_a_callback_wraps_the_response_unless_it_is_empty(legacy: LegacyClient) -> None:
    response = await legacy.get(f"{DIGIKEY}?callback=app.show")
    assert response.headers["Content-Type"] == "application/javascript"
    text = response.body.decode()
    assert (text[:9], text[-1:]) == ("app.show(", ")")
    assert json.loads(text[9:-1])["name"] == "Digi-Key"
    assert (await legacy.get(f"{DIGIKEY}?callback=?")).body.startswith(b"?({")
    assert (await legacy.get(f"{DIGIKEY}?callback=")).json["name"] == "Digi-Key"
    assert (await legacy.get(f"{DIGIKEY}?callback=alert(1)")).status == 400


async def test_errors_have_status_200_if_status_codes_are_suppressed(legacy: LegacyClient) -> None:
    for spelling in ("1", "True"):
        response = await legacy.get(f"/parts/nothing?suppress_status_codes={spelling}")
        assert (response.status, response.json["__class__"]) == (200, "ClientErrorResponse")
    assert (await legacy.get("/parts/nothing?suppress_status_codes=False")).status == 404


async def test_a_request_target_over_8_kilobytes_gets_414_in_html(legacy: LegacyClient) -> None:
    response = await legacy.get(f"/parts/search?q={'x' * 8200}")
    assert (response.status, response.headers["Content-Type"]) == (414, "text/html; charset=utf-8")


async def test_invalid_request_line_is_refused_unlogged(legacy: LegacyClient, caplog: pytest.LogCaptureFixture) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", legacy.sandbox.port)
    writer.write(f"GET /v3/parts/match?apikey={KEY}&q=two words HTTP/1.1\r\nHost: here\r\n\r\n".encode())
    assert (await reader.readline()).startswith((b"HTTP/1.1 400", b"HTTP/1.0 400"))
    writer.close()
    assert KEY not in caplog.text


@pytest.mark.parametrize("origin", [b"", b"http://octopart.com"])
async def test_raw_quotes_ampersands_and_absolute_targets_are_accepted(legacy: LegacyClient, origin: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", legacy.sandbox.port)
    target = b'/api/v3/parts/match?&queries=[{"mpn":"SN74S74N"}]&include[]=specs&apikey=' + KEY.encode()
    writer.write(b"GET " + origin + target + b" HTTP/1.1\r\nHost: octopart.com\r\nConnection: close\r\n\r\n")
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    assert head.startswith(b"HTTP/1.1 200")
    assert json.loads(body)["results"][0]["hits"] == 4
