"""Tests of HTTP as v3 clients use it (contract v3-rest.md §2, §6), mostly over a raw socket."""

import gzip
import io
import json

import pytest
from together.environment import ProxyEnvironment, RawResponse, target

KEY = b"apikey=EXAMPLE_KEY"
QUERIES = b'queries=[{"mpn":"SN74S74N"}]'
PATH = b"/v3/parts/match"


def hits(reply: RawResponse) -> list[int]:
    assert reply.status == 200, reply.body
    return [result["hits"] for result in reply.json["results"]]


@pytest.mark.parametrize(
    "asked",
    [
        PATH + b"?" + KEY + b"&" + QUERIES,
        b"/api/v3/parts/match?" + KEY + b"&" + QUERIES,
        PATH + b"/?" + KEY + b"&" + QUERIES,
        b"/api/v3/parts/match/?" + KEY + b"&" + QUERIES,
        b"/api/v3/parts/match?&" + QUERIES + b"&" + KEY + b"&include[]=datasheets",
        PATH + b"?" + KEY + b"&queries=%5B%7B%22mpn%22:%22SN74S74N%22%7D%5D&include%5B%5D=specs",
        PATH + b"?" + KEY + b"&queries=[{%22mpn%22:%20%22SN74S74N%22}]",
        PATH + b"?" + KEY + b"&queries=[{%22mpn%22:+%22SN74S74N%22}]",
        b"http://octopart.com/api/v3/parts/match?" + KEY + b"&" + QUERIES,
        b"http://octopart.com:80/api/v3/parts/match?&" + QUERIES + b"&" + KEY + b"&include[]=specs",
        b"https://octopart.com/api/v3/parts/match/?" + KEY + b"&" + QUERIES,
        PATH + b"?" + KEY + b"&" + QUERIES + b"&limit=3&sortby=score%20desc&userkey=x&%ff=%fe&=&&",
    ],
)
async def test_request_target_is_decoded_as_sent(environment: ProxyEnvironment, asked: bytes) -> None:
    assert hits(await environment.raw(b"GET " + asked + b" HTTP/1.1")) == [4]


async def test_number_sign_in_a_part_number_is_kept(environment: ProxyEnvironment) -> None:
    reply = await environment.raw(
        b"GET " + PATH + b"?" + KEY + b'&queries=[{"mpn":"LT1086#PBF"}]&exact_only=1 HTTP/1.1'
    )
    assert reply.json["request"]["queries"][0]["mpn"] == "LT1086#PBF"


async def test_percent_encoded_utf_8_is_decoded(environment: ProxyEnvironment) -> None:
    reply = await environment.raw(b"GET " + PATH + b"?" + KEY + b'&queries=[{"q":"%C2%B5%CE%A9"}] HTTP/1.1')
    assert reply.json["request"]["queries"][0]["q"] == "µΩ"


async def test_http_1_0_is_supported(environment: ProxyEnvironment) -> None:
    assert hits(await environment.raw(b"GET " + PATH + b"?" + KEY + b"&" + QUERIES + b" HTTP/1.0")) == [4]


@pytest.mark.parametrize("size", [9_000, 60_000, 66_000])
async def test_bom_beyond_the_default_line_limit_of_aiohttp_is_accepted(
    environment: ProxyEnvironment, size: int
) -> None:
    queries = [{"mpn": "SN74S74N", "limit": 0, "reference": "r" * (size // 20)} for _ in range(20)]
    asked = target(*queries)
    assert len(asked) > size
    assert hits(await environment.raw(f"GET {asked} HTTP/1.1".encode())) == [4] * 20


@pytest.mark.parametrize(
    "first_line, headers, says",
    [
        (b"GET " + PATH + b"?" + KEY + b"&q=" + b"x" * 140_000 + b" HTTP/1.1", [], "longer than 69632 bytes"),
        (b"GET " + PATH + b"?" + KEY + b" HTTP/1.1", [b"X-Long: EXAMPLE_KEY" + b"x" * 140_000], "longer than 16384"),
        (b"GET " + PATH + b"?" + KEY + b"&a b c HTTP/1.1", [], "percent-encode blanks and non-ASCII"),
        (b"GET " + PATH + b"?" + KEY + b" HTTP/9.9", [], "not valid HTTP"),
        (b"GET " + PATH + b"?" + KEY + "&q=µ HTTP/1.1".encode(), [], "percent-encode blanks and non-ASCII"),
        (b"ODD " + PATH + b"?" + KEY + b" HTTP/1.1", [], "not valid HTTP"),
        (b"EXAMPLE_KEY", [], "not valid HTTP"),
        (b"GET " + PATH + b"?" + KEY + b" HTTP/1.1", [b"EXAMPLE_KEY without a colon"], "not valid HTTP"),
        (b"\x16\x03\x01EXAMPLE_KEY", [], "not valid HTTP"),
    ],
    ids=[
        "long line",
        "long header",
        "blanks",
        "version",
        "raw utf-8",
        "method",
        "no request",
        "header",
        "tls",
    ],
)
async def test_malformed_request_is_a_v3_error_without_its_content(
    environment: ProxyEnvironment, first_line: bytes, headers: list[bytes], says: str
) -> None:
    reply = await environment.raw(first_line, *headers)
    assert (reply.status, reply.json["__class__"]) == (400, "ClientErrorResponse")
    assert says in reply.json["message"]
    assert reply.headers["content-type"].startswith("application/json")
    assert b"EXAMPLE_KEY" not in reply.body
    assert (await environment.reply({"mpn": "SN74S74N"}))["results"]


async def test_connect_request_gets_an_explanation(environment: ProxyEnvironment) -> None:
    reply = await environment.raw(b"CONNECT octopart.com:443 HTTP/1.1", b"Connection: close")
    assert (reply.status, reply.headers["allow"]) == (405, "GET, HEAD, OPTIONS")
    assert reply.json["message"].startswith(
        "CONNECT is refused: this is not a proxy for https; this port speaks plain HTTP"
    )


async def test_tls_on_the_plain_port_is_one_log_line(environment: ProxyEnvironment, log_output: io.StringIO) -> None:
    await environment.raw(b"\x16\x03\x01\x02\x00\x01\x00")
    await environment.raw(b"CONNECT octopart.com:443 HTTP/1.1", b"Connection: close")
    await environment.raw(b"CONNECT EXAMPLE_KEY HTTP/1.1", b"Connection: close")
    lines = [json.loads(line) for line in log_output.getvalue().splitlines()]
    said = [line for line in lines if line["event"].endswith(" refused")]
    assert [line["event"] for line in said] == ["malformed request refused", "CONNECT refused", "CONNECT refused"]
    assert [line.get("target") for line in said] == [None, "octopart.com:443", None]
    assert "EXAMPLE_KEY" not in log_output.getvalue()
    assert not any("exception" in line or "traceback" in line for line in said)


async def test_gzip_is_sent_only_on_request(environment: ProxyEnvironment) -> None:
    line = b"GET " + PATH + b"?" + KEY + b"&" + QUERIES + b" HTTP/1.1"
    plain = await environment.raw(line)
    identity = await environment.raw(line, b"Accept-Encoding: identity")
    zipped = await environment.raw(line, b"Accept-Encoding: gzip, deflate")
    assert ("content-encoding" in plain.headers, "content-encoding" in identity.headers) == (False, False)
    assert zipped.headers["content-encoding"] == "gzip"
    assert len(zipped.body) < len(plain.body) / 3
    assert json.loads(gzip.decompress(zipped.body))["results"] == plain.json["results"]


@pytest.mark.parametrize(
    "accepted, encoding",
    [(b"gzip;q=0", None), (b"Gzip;Q=0.0", None), (b"GZIP, br", "gzip"), (b"br, gzip;q=0.1", "gzip")],
)
async def test_gzip_is_sent_unless_refused_in_any_case_of_letters(
    environment: ProxyEnvironment, accepted: bytes, encoding: str | None
) -> None:
    line = b"GET " + PATH + b"?" + KEY + b"&" + QUERIES + b" HTTP/1.1"
    reply = await environment.raw(line, b"Accept-Encoding: " + accepted)
    assert reply.headers.get("content-encoding") == encoding
