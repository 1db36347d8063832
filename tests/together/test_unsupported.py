"""Tests of X-V3-Unsupported: ignored parameters are named in the header and in the log, cached or not."""

import io
import json
from urllib.parse import quote

import pytest
from support import running_proxy
from together.environment import ProxyEnvironment, RawResponse, StartEnvironment

HEADER = "x-v3-unsupported"
NOBODY = "ffffffffffffffff"
# What a published shell script sends for every line of a parts list, but for its key.
SCRIPT = (
    "pretty_print=true&limit=5&include[]=descriptions&incude[]=short_description"
    "&facet[fields][descriptions.value][include]=true&spec_drilldown[include]=true&spec_drilldown[limit]=100"
    + "".join(
        f"&facet[fields][specs.{key}.value][include]=true"
        for key in (
            "tripping_current",
            "vdg_drain_to_gate_voltage",
            "vds_drain_to_source_voltage",
            "viewing_angle",
            "voltage_nodes",
            "voltage_rating_ac",
            "voltage_rating_dc",
            "voltage_rating_transient",
            "wavelength",
            "weight",
            "wire_gauge",
        )
    )
)


async def get(environment: ProxyEnvironment, path: str) -> RawResponse:
    return await environment.get(f"/v3{path}{'&' if '?' in path else '?'}apikey={running_proxy.KEY}")


def said(log_output: io.StringIO) -> list[str]:
    """Return the unsupported parameters in each log line."""
    lines = [json.loads(line) for line in log_output.getvalue().splitlines()]
    return [line["parameters"] for line in lines if line["event"] == "parameters ignored"]


async def test_facet_without_source_still_returns_parts(environment: ProxyEnvironment, log_output: io.StringIO) -> None:
    reply = await get(environment, f"/parts/search?q=resistor&{SCRIPT}")
    assert (reply.status, len(reply.json["results"])) == (200, 5)
    fields = reply.json["facet_results"]["fields"]
    assert fields["descriptions.value"]["facets"] == []
    assert fields["specs.tripping_current.value"]["facets"] == []
    named = reply.headers[HEADER].split(", ")
    assert named[0] == "facet[fields][descriptions.value]"
    assert "facet[fields][specs.tripping_current.value]" in named
    assert said(log_output) == [reply.headers[HEADER]]


async def test_supported_facets_are_counted_beside_unsupported_ones(environment: ProxyEnvironment) -> None:
    counted = "facet[fields][brand.name][include]=1&stats[specs.resistance.value][include]=1"
    more = "facet[fields][mpn][include]=1&stats[avg_price][include]=1&sortby=uid+asc"
    path = f"/parts/search?q=resistor&limit=0&{counted}"
    alone, beside = await get(environment, path), await get(environment, f"{path}&{more}")
    counts, others = alone.json, beside.json
    assert others["facet_results"]["fields"].pop("mpn")["facets"] == []
    assert others["stats_results"].pop("avg_price")["count"] is None
    for kind in ("hits", "facet_results", "stats_results", "spec_metadata"):
        assert others[kind] == counts[kind]
    assert "specs.resistance.value" in counts["stats_results"]
    assert HEADER not in alone.headers
    assert beside.headers[HEADER] == "facet[fields][mpn], stats[avg_price], sortby=uid"


async def test_filter_without_source_is_refused(environment: ProxyEnvironment) -> None:
    for field in ("avg_price", "descriptions.value", "specs.test_text_attribute.value"):
        reply = await get(environment, f"/parts/search?q=resistor&filter[fields][{field}][]=1")
        assert (reply.status, HEADER in reply.headers) == (400, False)
        assert field.removeprefix("specs.").removesuffix(".value") in reply.json["message"]


@pytest.mark.parametrize(
    "path, named",
    [
        ("/parts/search?q=resistor&limit=1&sortby=uid+asc", "sortby=uid"),
        (
            f"/parts/search?q=resistor&filter[fields][category_uids][]={NOBODY}",
            f"filter[fields][category_uids]={NOBODY}",
        ),
        (f"/categories/search?filter[fields][ancestor_uids][]={NOBODY}", f"filter[fields][ancestor_uids]={NOBODY}"),
        ('/parts/match?queries=[{"mpn":"SN74S74N","mpm":"x"}]', "queries[0].mpm"),
    ],
)
async def test_cached_response_has_the_unsupported_header(
    start: StartEnvironment, log_output: io.StringIO, path: str, named: str
) -> None:
    async with start() as environment:
        replies = [await get(environment, path) for _ in range(4)]
    assert [reply.headers[HEADER] for reply in replies] == [named] * 4
    assert said(log_output) == [named] * 4
    cached = [reply.headers.get("x-cache") for reply in replies]
    assert cached == ([None] * 4 if NOBODY in path else ["miss", "hit", "hit", "hit"])  # no upstream has such a uid


@pytest.mark.parametrize(
    "key", ["a, b", "a\r\nX-Evil: 1", "\r\n\r\n<script>", "é\u2028", 'quote"', "\x00", "+3", "%0d%0a"]
)
async def test_client_input_cannot_split_the_header(environment: ProxyEnvironment, key: str) -> None:
    reply = await get(environment, f"/parts/match?queries={quote(json.dumps([{'mpn': 'none-such', key: 1}]))}")
    assert reply.status == 200
    assert reply.headers[HEADER] == f"queries[0].{quote(key, safe='')}"
    assert "x-evil" not in reply.headers


async def test_unsupported_header_is_bounded_and_counts_the_rest(environment: ProxyEnvironment) -> None:
    keys = {f"key_{number:03}": 1 for number in range(500)}
    reply = await get(
        environment, f"/parts/match?queries={quote(json.dumps([{'mpn': 'none-such', **keys, 'x' * 5000: 1}]))}"
    )
    names = reply.headers[HEADER].split(", ")
    assert len(reply.headers[HEADER]) <= 2_050
    assert names[0] == "queries[0].key_000"
    assert int(names[-1].removeprefix("+")) == 501 - (len(names) - 1)


async def test_long_name_is_truncated_between_characters(environment: ProxyEnvironment) -> None:
    reply = await get(environment, f"/parts/match?queries={quote(json.dumps([{'mpn': 'none-such', 'é' * 300: 1}]))}")
    name = reply.headers[HEADER].removeprefix("queries[0].")
    assert 0 < len(name) < 200
    assert name == "%C3%A9" * (len(name) // 6)
