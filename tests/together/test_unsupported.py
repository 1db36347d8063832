"""X-V3-Unsupported: ignored parameters are named in the header and in the log, cached or not."""

import io
import json
from urllib.parse import quote

from support import running_proxy
from together.environment import ProxyEnvironment, RawResponse

HEADER = "x-v3-unsupported"
NOBODY = "ffffffffffffffff"


async def get(environment: ProxyEnvironment, path: str) -> RawResponse:
    return await environment.get(f"/v3{path}{'&' if '?' in path else '?'}apikey={running_proxy.KEY}")


async def named(environment: ProxyEnvironment, query: dict[str, object]) -> str:
    """Return what is unsupported in a query of /parts/match."""
    reply = await get(environment, f"/parts/match?queries={quote(json.dumps([{'mpn': 'none-such', **query}]))}")
    assert (reply.status, "x-evil" in reply.headers) == (200, False)
    return reply.headers[HEADER].removeprefix("queries[0].")


async def test_what_is_supported_is_counted_beside_what_is_not(environment: ProxyEnvironment) -> None:
    counted = "facet[fields][brand.name][include]=1&stats[specs.resistance.value][include]=1"
    more = "facet[fields][mpn][include]=1&stats[avg_price][include]=1&sortby=uid+asc&spec_drilldown[limit]=100"
    path = f"/parts/search?q=resistor&limit=5&{counted}"
    alone, beside = await get(environment, path), await get(environment, f"{path}&{more}")
    assert (len(alone.json["results"]), len(beside.json["results"])) == (5, 5)
    counts, others = alone.json, beside.json
    assert others["facet_results"]["fields"].pop("mpn")["facets"] == []
    assert others["stats_results"].pop("avg_price")["count"] is None
    for kind in ("hits", "facet_results", "stats_results", "spec_metadata"):
        assert others[kind] == counts[kind]
    assert HEADER not in alone.headers
    assert beside.headers[HEADER] == "facet[fields][mpn], stats[avg_price], sortby=uid"


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
    assert int(names[-1].removeprefix("+")) == 501 - (len(names) - 1)
    name = await named(environment, {"é" * 300: 1})
    assert 0 < len(name) < 200
    assert name == "%C3%A9" * (len(name) // 6)
