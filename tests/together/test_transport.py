"""HTTP as v3 clients use it (contract v3-rest.md §2, §6), over a raw socket."""

import gzip
import json

from together.environment import ProxyEnvironment, RawResponse, target

KEY = b"apikey=EXAMPLE_KEY"
QUERIES = b'queries=[{"mpn":"SN74S74N"}]'
PATH = b"/v3/parts/match"
GET = b"GET " + PATH + b"?" + KEY
TARGETS = [
    PATH + b"?" + KEY + b"&" + QUERIES,
    b"/api/v3/parts/match/?" + KEY + b"&" + QUERIES,
    b"/api/v3/parts/match?&" + QUERIES + b"&" + KEY + b"&include[]=datasheets",
    PATH + b"?" + KEY + b"&queries=%5B%7B%22mpn%22:%22SN74S74N%22%7D%5D&include%5B%5D=specs",
    PATH + b"?" + KEY + b"&queries=[{%22mpn%22:%20%22SN74S74N%22}]",
    PATH + b"?" + KEY + b"&queries=[{%22mpn%22:+%22SN74S74N%22}]",
    b"http://octopart.com/api/v3/parts/match?" + KEY + b"&" + QUERIES,
    b"https://octopart.com/api/v3/parts/match/?" + KEY + b"&" + QUERIES,
    PATH + b"?" + KEY + b"&" + QUERIES + b"&limit=3&sortby=score%20desc&userkey=x&%ff=%fe&=&&",
]
MALFORMED: list[tuple[bytes, list[bytes], str]] = [
    (GET + b"&q=" + b"x" * 140_000 + b" HTTP/1.1", [], "longer than 69632 bytes"),
    (GET + b" HTTP/1.1", [b"X-Long: EXAMPLE_KEY" + b"x" * 140_000], "longer than 16384"),
    (GET + b"&a b c HTTP/1.1", [], "percent-encode blanks and non-ASCII"),
    (GET + b" HTTP/9.9", [], "not valid HTTP"),
    (GET + "&q=µ HTTP/1.1".encode(), [], "percent-encode blanks and non-ASCII"),
    (b"ODD " + PATH + b"?" + KEY + b" HTTP/1.1", [], "not valid HTTP"),
    (b"EXAMPLE_KEY", [], "not valid HTTP"),
    (GET + b" HTTP/1.1", [b"EXAMPLE_KEY without a colon"], "not valid HTTP"),
    (b"\x16\x03\x01EXAMPLE_KEY", [], "not valid HTTP"),
]


def hits(reply: RawResponse) -> list[int]:
    assert reply.status == 200, reply.body
    return [result["hits"] for result in reply.json["results"]]


async def test_request_target_is_decoded_as_sent(environment: ProxyEnvironment) -> None:
    for asked in TARGETS:
        assert hits(await environment.raw(b"GET " + asked + b" HTTP/1.1")) == [4], asked
    assert hits(await environment.raw(GET + b"&" + QUERIES + b" HTTP/1.0")) == [4]
    reply = await environment.raw(GET + b'&queries=[{"mpn":"LT1086#PBF","q":"%C2%B5%CE%A9"}] HTTP/1.1')
    (query,) = reply.json["request"]["queries"]
    assert (query["mpn"], query["q"]) == ("LT1086#PBF", "µΩ")


async def test_bom_beyond_the_default_line_limit_of_aiohttp_is_accepted(environment: ProxyEnvironment) -> None:
    for size in (9_000, 66_000):
        asked = target(*[{"mpn": "SN74S74N", "limit": 0, "reference": "r" * (size // 20)}] * 20)
        assert len(asked) > size
        assert hits(await environment.raw(f"GET {asked} HTTP/1.1".encode())) == [4] * 20


async def test_malformed_request_is_a_v3_error_without_its_content(environment: ProxyEnvironment) -> None:
    for first_line, headers, says in MALFORMED:
        reply = await environment.raw(first_line, *headers)
        assert (reply.status, reply.json["__class__"]) == (400, "ClientErrorResponse")
        assert says in reply.json["message"], first_line[:99]
        assert reply.headers["content-type"].startswith("application/json")
        assert b"EXAMPLE_KEY" not in reply.body
    assert (await environment.reply({"mpn": "SN74S74N"}))["results"]


async def test_connect_request_gets_an_explanation(environment: ProxyEnvironment) -> None:
    reply = await environment.raw(b"CONNECT octopart.com:443 HTTP/1.1", b"Connection: close")
    assert (reply.status, reply.headers["allow"]) == (405, "GET, HEAD, OPTIONS")
    assert reply.json["message"].startswith(
        "CONNECT is refused: this is not a proxy for https; this port speaks plain HTTP"
    )


async def test_gzip_is_sent_only_on_request(environment: ProxyEnvironment) -> None:
    line = GET + b"&" + QUERIES + b" HTTP/1.1"
    plain = await environment.raw(line)
    assert "content-encoding" not in plain.headers
    for accepted in (b"identity", b"gzip;q=0", b"Gzip;Q=0.0"):
        assert "content-encoding" not in (await environment.raw(line, b"Accept-Encoding: " + accepted)).headers
    for accepted in (b"gzip, deflate", b"GZIP, br", b"br, gzip;q=0.1"):
        zipped = await environment.raw(line, b"Accept-Encoding: " + accepted)
        assert zipped.headers["content-encoding"] == "gzip"
        assert len(zipped.body) < len(plain.body) / 3
        assert json.loads(gzip.decompress(zipped.body))["results"] == plain.json["results"]
