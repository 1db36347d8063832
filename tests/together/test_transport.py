"""HTTP as v3 clients use it, over a raw socket (contract v3-rest.md §2, §6), and the header of what is ignored."""

import gzip
import io
import json
from urllib.parse import quote

from support import running_proxy
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
    (b"ODD " + PATH + b"?" + KEY + b" HTTP/1.1", [], "send a method such as GET"),
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


HEADER = "x-v3-unsupported"
NOBODY = "ffffffffffffffff"


async def get(environment: ProxyEnvironment, path: str) -> RawResponse:
    return await environment.get(f"/v3{path}{'&' if '?' in path else '?'}apikey={running_proxy.KEY}")


async def named(environment: ProxyEnvironment, query: dict[str, object]) -> str:
    """Return what is unsupported in a query of /parts/match."""
    reply = await get(environment, f"/parts/match?queries={quote(json.dumps([{'mpn': 'none-such', **query}]))}")
    assert (reply.status, "x-evil" in reply.headers) == (200, False)
    return reply.headers[HEADER].removeprefix("queries[0].")


async def test_cached_response_has_the_header(environment: ProxyEnvironment, log_output: io.StringIO) -> None:
    for path, unsupported in (
        ("/parts/search?q=resistor&limit=1&sortby=uid+asc", "sortby=uid"),
        (f"/categories/search?filter[fields][ancestor_uids][]={NOBODY}", f"filter[fields][ancestor_uids]={NOBODY}"),
        ('/parts/match?queries=[{"mpn":"SN74S74N","mpm":"x"}]', "queries[0].mpm"),
    ):
        replies = [await get(environment, path) for _ in range(4)]
        assert [reply.headers[HEADER] for reply in replies] == [unsupported] * 4
        lines = [json.loads(line) for line in log_output.getvalue().splitlines()]
        assert unsupported in {line["parameters"] for line in lines if line["event"] == "parameters ignored"}


async def test_client_input_can_neither_split_the_header_nor_make_it_long(environment: ProxyEnvironment) -> None:
    for key in ("a, b", "a\r\nX-Evil: 1", "\r\n\r\n<script>", "é\u2028", 'quote"', "\x00", "+3", "%0d%0a"):
        assert await named(environment, {key: 1}) == quote(key, safe="")
    keys: dict[str, object] = {f"key_{number:03}": 1 for number in range(500)}
    names = (await named(environment, {**keys, "x" * 5000: 1})).split(", ")
    assert len(", ".join(names)) <= 2_050
    assert names[0] == "key_000"
    assert names[-1] == "+401"  # a hundred have 2 000 characters
    name = await named(environment, {"é" * 300: 1})
    assert 0 < len(name) < 200
    assert name == "%C3%A9" * (len(name) // 6)
