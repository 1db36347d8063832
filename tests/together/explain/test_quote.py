"""A log is quoted, then sent to a service on the sandbox: no request is billed more than its quote, nor the day."""

import json
from pathlib import Path
from typing import Any

from support import running_proxy
from together.environment import StartEnvironment

from proxy.explain import log
from proxy.explain.request import Explainer
from proxy.traffic.clients import Clients
from proxy.traffic.reading import read_requests

DAY = 86_400


def match(*queries: dict[str, Any], more: str = "") -> str:
    text = json.dumps(queries, separators=(",", ":")).replace(" ", "%20")
    return f"/v3/parts/match?apikey={running_proxy.KEY}&queries={text}{more}"


def search(more: str) -> str:
    return f"/v3/parts/search?apikey={running_proxy.KEY}&{more}"


ONE, TWO = {"mpn": "SN74S74N", "limit": 1}, {"mpn": "1N4148", "limit": 1}
# Seconds after the first request, and the request.
EXACT = [
    (0, match(ONE)),
    (60, match(ONE, TWO)),
    (120, match(ONE, more="&include[]=specs")),
    (180, search("q=resistor&limit=5")),
    (240, search("q=resistor&limit=8")),
    (300, search("q=resistor&limit=4&start=20")),
    (360, f"/v3/brands/search?apikey={running_proxy.KEY}&q=texas"),
    (23 * 3600, match(TWO)),
    (23 * 3600 + 2000, match(ONE)),  # 23.5 hours have passed for the first one alone
]
OTHERS = [
    (0, match({"mpn": "SN74S74N"}, {"mpn": "no such part"}, {"sku": "67K1122"})),
    (10, match({"mpn": "SN74S74N", "limit": 20})),
    (20, match({"mpn": "SN74S74N", "start": 2, "limit": 9})),
    (30, match({"mpn": "SN74*", "limit": 3})),
    (40, match({"mpn_or_sku": "SN74S74N"}, more="&exact_only=true")),
    (50, match({"mpn": "SN74S74N", "brand": "Texas Instruments"})),
    (60, f"/v3/parts/get_multi?apikey={running_proxy.KEY}&uid[]=9cf2558336484335&uid[]=ffffffffffffffff"),
    (70, search("filter[fields][mpn][]=SN74S74N&limit=1")),
    (80, search("q=resistor&limit=0")),
    (90, search("q=resistor&limit=999")),
    (2 * DAY, match({"mpn": "SN74S74N"})),
]


async def quoted_and_billed(
    start: StartEnvironment, file: Path, requests: list[tuple[int, str]]
) -> tuple[list[int], list[int]]:
    """Write a log, quote each of its requests, and send them at their times; return both kinds of costs."""
    async with start() as environment:
        settings = running_proxy.settings(environment.sandbox.graphql_url, environment.sandbox.token_url)
        begun, time = environment.time.now(), environment.time
        lines = [{"time": begun + seconds, "url": target} for seconds, target in requests]
        file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        explainer, store, clients = Explainer(settings), log.EmptyStore(), Clients()
        quotes, bills = [], []
        for request, (seconds, target) in zip(read_requests(file, clients, {}), requests, strict=True):
            client = explainer.client(running_proxy.KEY)
            _, queries = await explainer.explain(request, client, running_proxy.KEY)
            assert request.at is not None
            quotes.append(store.quote(client, queries, request.at))
            time.advance(begun + seconds - time.now())
            before = environment.billed_parts
            await environment.get(target)
            bills.append(environment.billed_parts - before)
        explained = await log.explain(explainer, file, None)
        assert sum(program.parts for program in explained.programs) == sum(quotes)
    return quotes, bills


async def test_no_request_is_billed_more_than_its_quote(start: StartEnvironment, tmp_path: Path) -> None:
    quotes, bills = await quoted_and_billed(start, tmp_path / "log.jsonl", OTHERS)
    assert all(bill <= quote for quote, bill in zip(quotes, bills, strict=True)), [*zip(quotes, bills, strict=True)]
    assert sum(bills) > len(bills)


async def test_where_all_parts_are_there_the_quote_is_the_bill(start: StartEnvironment, tmp_path: Path) -> None:
    quotes, bills = await quoted_and_billed(start, tmp_path / "log.jsonl", EXACT)
    assert quotes == bills
    assert sum(quotes) == 1 + 1 + 5 + 3 + 4 + 1
