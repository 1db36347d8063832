"""A log is quoted, then sent to a service on the sandbox: no request is billed more than its quote, nor the day."""

import asyncio
import json
from pathlib import Path
from typing import Any

from support import running_proxy
from support.running_commands import run_in_this_process
from together.environment import StartEnvironment

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
) -> tuple[list[int], list[int], int]:
    """Write a log in which each request has a program of its own, explain it, and send the requests at their times;
    return the quote and the bill of each, and the quote of a day."""
    async with start() as environment:
        begun, time, bills = environment.time.now(), environment.time, []
        lines = [
            {"time": begun + seconds, "url": target, "user_agent": f"program/{place}"}
            for place, (seconds, target) in enumerate(requests)
        ]
        file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        done = await asyncio.to_thread(run_in_this_process, "explain", str(file), "--json")
        found = json.loads(done.stdout)
        quotes = {each["name"].rpartition("/")[2]: each["parts"] for each in found["programs"]}
        for seconds, target in requests:
            time.advance(begun + seconds - time.now())
            before = environment.billed_parts
            await environment.get(target)
            bills.append(environment.billed_parts - before)
    return [quotes[f"{place}"] for place in range(len(requests))], bills, found["day"]


async def test_no_request_is_billed_more_than_its_quote(start: StartEnvironment, tmp_path: Path) -> None:
    quotes, bills, _ = await quoted_and_billed(start, tmp_path / "log.jsonl", OTHERS)
    assert all(bill <= quote for quote, bill in zip(quotes, bills, strict=True)), [*zip(quotes, bills, strict=True)]
    assert sum(bills) > len(bills)


async def test_where_all_parts_are_there_the_quote_is_the_bill(start: StartEnvironment, tmp_path: Path) -> None:
    quotes, bills, day = await quoted_and_billed(start, tmp_path / "log.jsonl", EXACT)
    assert quotes == bills
    assert day == sum(bills) == 1 + 1 + 5 + 3 + 4 + 1
