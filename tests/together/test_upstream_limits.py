"""Tests of upstream limits: each request is within them, or refused with a reason."""

import asyncio
import json
from urllib.parse import quote

import hypothesis
import pytest
from hypothesis import strategies as st
from support import running_proxy
from together.environment import ProxyEnvironment, StartEnvironment, single_application

SPECS = [
    "specs.resistance.value",
    "specs.case_package.value",
    "specs.pin_count.value",
    "specs.lifecycle_status.value",
    "specs.nonsense.value",
    "specs.Resistance.value",
]
FIELDS = st.sampled_from(
    [
        "brand.name",
        "brand.uid",
        "offers.seller.name",
        "offers.seller.id",
        "category_uids",
        "avg_avail",
        "mpn",
        "uid",
        *SPECS,
    ]
)
VALUES = st.sampled_from(
    [
        "TI",
        "Yageo",
        "2239e3330e2df5fe",
        "8a1e4714bb3951d9",
        "459",
        "0603",
        "10000",
        "±5%",
        "*",
        "[1 TO *]",
        "[a TO b]",
        "x y",
    ]
) | st.text(max_size=6)
EXPRESSIONS = st.sampled_from(
    ["[1 TO *]", "[* TO 5]", "[nan TO inf]", "[-1e999 TO 3]", "(A or B)", "-A", "A~", '"A B"', "{1 TO 2}"]
)
NUMBERS = st.integers(-2, 1200).map(str) | st.sampled_from(["", "x", "1e3", "9" * 30])
FLAGS = st.sampled_from(["true", "True", "1", "0", "", "false"])
SORTS = st.sampled_from(
    ["score desc", "avg_price asc", "mpn", "avg_price asc, score desc", "name desc", "x y z", f"{SPECS[0]} desc"]
)


def named(form: str, values: st.SearchStrategy[str]) -> st.SearchStrategy[tuple[str, str]]:
    """A parameter of a field, such as facet[fields][{}][include]."""
    return st.tuples(FIELDS.map(form.format), values)


SEARCHING = st.one_of(
    st.tuples(st.just("q"), st.sampled_from(["resistor", "", "*", "SN74*"]) | st.text(max_size=8)),
    st.tuples(st.sampled_from(["start", "limit"]), NUMBERS),
    st.tuples(st.just("sortby"), SORTS),
    named("filter[fields][{}][]", VALUES),
    named("filter[fields][{}]", VALUES),
    named("facet[fields][{}][include]", FLAGS),
    named("facet[fields][{}][exclude_filter]", FLAGS),
    named("facet[fields][{}][start]", NUMBERS),
    named("facet[fields][{}][limit]", NUMBERS),
    named("stats[{}][include]", FLAGS),
    named("stats[{}][exclude_filter]", FLAGS),
    st.tuples(
        st.sampled_from(["filter[queries][]", "facet[queries][]"]),
        st.builds("{}:{}".format, FIELDS, EXPRESSIONS | VALUES),
    ),
    st.tuples(st.sampled_from(["spec_drilldown[include]", "spec_drilldown[exclude_filter]"]), FLAGS),
    st.tuples(st.just("spec_drilldown[limit]"), NUMBERS),
    st.tuples(st.sampled_from(["show[]", "hide[]", "include[]"]), st.sampled_from(["mpn", "offers.sku", "specs", "x"])),
)
UIDS = st.sampled_from(["9cf2558336484335", "103cdb613d20cffb", "f" * 16, "459", "x"]) | st.text(max_size=18)
QUERY = st.fixed_dictionaries(
    {},
    optional={
        **{
            name: st.sampled_from(["SN74S74N", "67K1122", "atm*", "TI", ""]) | st.text(max_size=8)
            for name in ("q", "mpn", "sku", "mpn_or_sku", "brand", "seller")
        },
        "start": st.integers(-1, 120),
        "limit": st.integers(-1, 25),
        "reference": st.none() | st.integers(),
    },
)


def target(path: str, pairs: list[tuple[str, str]]) -> str:
    query = "&".join(f"{name}={quote(value.encode('utf-8', 'replace'))}" for name, value in pairs)
    return f"{path}?apikey={running_proxy.KEY}&{query}"


SEARCHES = st.builds(target, st.just("/v3/parts/search"), st.lists(SEARCHING, max_size=8))
LISTS = st.builds(
    target,
    st.sampled_from(["/v3/brands/search", "/v3/categories/search", "/v3/sellers/search"]),
    st.lists(SEARCHING, max_size=4),
)
GETS = st.builds(target, st.just("/v3/parts/get_multi"), st.lists(st.tuples(st.just("uid[]"), UIDS), max_size=8))
MATCHES = st.lists(QUERY, max_size=22).map(
    lambda queries: target("/v3/parts/match", [("queries", json.dumps(queries))])
)


@pytest.mark.parametrize(
    "targets, examples",
    [(SEARCHES, 60), (LISTS, 30), (GETS, 20), (MATCHES, 60)],
    ids=["search", "lists", "get", "match"],
)
async def test_every_request_is_refused_locally_or_within_upstream_limits(
    start: StartEnvironment, targets: st.SearchStrategy[str], examples: int
) -> None:
    async with start(sandbox={"applications": single_application(part_limit=10**9)}) as environment:
        await _check_all(environment, targets, examples)
        metrics = await (await environment.proxy.get("/metrics")).text()
    outcomes = [line for line in metrics.splitlines() if line.startswith("v3bridge_upstream_requests_total")]
    assert outcomes
    assert [line for line in outcomes if 'outcome="ok"' not in line] == []
    assert "v3bridge_upstream_errors_total{" not in metrics  # errors beside data


async def _check_all(environment: ProxyEnvironment, targets: st.SearchStrategy[str], examples: int) -> None:
    """Ask for examples one after the other; hypothesis runs beside the event loop, in a thread of its own."""
    loop = asyncio.get_running_loop()

    @hypothesis.settings(max_examples=examples, derandomize=True, database=None)
    @hypothesis.given(targets)
    def check(asked: str) -> None:
        asyncio.run_coroutine_threadsafe(_check(environment, asked), loop).result(30)

    await asyncio.to_thread(check)


async def _check(environment: ProxyEnvironment, asked: str) -> None:
    response = await environment.proxy.get(asked)
    assert response.status in (200, 400), await response.text()
