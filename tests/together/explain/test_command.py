"""`v3bridge explain`: a log by program, one URL, JSON; no secret in any output, and no bill above its quote."""

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support import cases, running_proxy
from support.running_commands import run_in_this_process
from together.environment import StartEnvironment

SECRET = "PLANTED_SECRET_4711"
TARGET = "/v3/parts/match?queries=[%7B%22mpn%22:%22SN74S74N%22%7D]"
SEARCH = "/v3/parts/search?q=x"

explain = partial(run_in_this_process, "explain")


def line(target: str, agent: str = "erp/1", at: str = "10:00:00") -> str:
    return f'192.0.2.1 - - [29/Nov/2026:{at} +0000] "GET {target} HTTP/1.1" 200 9 "-" "{agent}"\n'


def test_a_log_is_explained_by_program(tmp_path: Path) -> None:
    file = tmp_path / "access.log"
    good, bad, lossy = (
        f"{TARGET}&apikey=EXAMPLE_KEY",
        f"{SEARCH}&limit=999&apikey=K2",
        f"{SEARCH}&show[]=offers.on_order_eta",
    )
    file.write_text(
        line(good) * 2
        + line(bad, "bom/2")
        + line(f"{SEARCH}&limit=998&apikey=K2", "bom/2")
        + line(lossy, "web")
        + "no\n"
    )
    done = explain(str(file))
    found = json.loads(explain(str(file), "--json").stdout)

    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith(
        "5 requests of 3 programs: 2 work, 1 lose fields or parameters, 2 refused.\n1 entry left out: "
    )
    programs = {
        each["name"]: [each[name] for name in ("works", "loses", "refused", "parts")] for each in found["programs"]
    }
    assert programs == {"demo/1 erp/1": [2, 0, 0, 3], "key 2 bom/2": [0, 0, 2, 0], "web": [0, 1, 0, 10]}
    refused, lost = sorted((each for each in found["kinds"] if each["reason"]), key=lambda each: -each["requests"])
    assert (refused["requests"], refused["place"], lost["requests"]) == (2, "access.log:3", 1)
    assert "for more results send limit=100" in refused["reason"]
    assert lost["reason"].startswith("show[]=offers.on_order_eta (")
    assert [found[name] for name in ("day_without_proxy", "day", "month_without_proxy", "month")] == [16, 13, 480, 390]
    assert sum(found["skipped"].values()) == 1
    assert all(
        text in done.stdout
        for text in ("access.log:3", "key 2 bom/2", "with v3bridge", "refused: change the program", "/parts/match")
    )


MARKETS = """
applications:
  here: {apikeys: [K1], client_id: id, client_secret: secret}
  there: {apikeys: [K2], client_id: id, client_secret: secret, country: DE}
"""


def test_a_part_is_paid_for_in_each_market(tmp_path: Path) -> None:
    (tmp_path / "our.yaml").write_text(MARKETS)
    one = TARGET.replace("%7D", ",%22limit%22:1%7D")
    (tmp_path / "access.log").write_text("".join(line(f"{one}&apikey={key}") for key in ("K1", "K1", "K2")))
    done = explain(str(tmp_path / "access.log"), "--config", str(tmp_path / "our.yaml"), "--json")
    assert {each["name"]: each["parts"] for each in json.loads(done.stdout)["programs"]} == {
        "here/1 erp/1": 1,
        "there/1 erp/1": 1,
    }


def test_a_file_without_refused_requests_has_exit_code_0(tmp_path: Path) -> None:
    (tmp_path / "BOM.csv").write_text("MPN;Manufacturer\nSN74S74N;TI\n1N4007;Onsemi\n")
    done = explain(str(tmp_path / "BOM.csv"))
    assert (done.returncode, "1 work" in done.stdout) == (0, True)


def test_a_url_is_explained() -> None:
    done = explain(f"https://octopart.com/api{TARGET}&incldue[]=specs&show[]=offers.on_order_eta&apikey=EXAMPLE_KEY")
    assert (done.returncode, done.stderr) == (0, "")
    assert "sends supMultiMatch, up to 3 parts" in done.stdout
    assert "At most 3 parts, likely 1" in done.stdout
    assert "did you mean include?" in done.stdout
    assert done.stdout.count("has no date of arrival") == 2  # it is named, and empty in the response
    assert "EXAMPLE_KEY" not in done.stdout


def test_head_costs_nothing() -> None:
    done = explain(f"HEAD {TARGET} HTTP/1.1")
    assert (done.returncode, "At most 0 parts." in done.stdout) == (0, True)


def test_what_is_refused_says_what_to_write_instead() -> None:
    done = explain(f"{SEARCH}&limit=999")
    assert (done.returncode, "400: limit must be" in done.stdout, "limit=100" in done.stdout) == (1, True, True)
    done = explain("http://octopart.com/api/v3/partz/match?apikey=K")
    assert (done.returncode, "404: there is no such path; use /api/v3/parts/match" in done.stdout) == (1, True)
    done = explain("/v3/parts/match?queries=[%7B%22mpm%22:%22SN74S74N%22%7D]")
    assert (done.returncode, "did you mean 'mpn'?" in done.stdout) == (1, True)


def test_source_prints_the_compiled_mapping_functions() -> None:
    done = explain("--source", "PartOffer")
    assert (done.returncode, done.stderr) == (0, "")
    assert "def " in done.stdout


@cases.parametrize("arguments, part")
def test_a_mistake_is_one_line_and_exit_code_2(arguments: list[str], part: str) -> None:
    done = explain(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert part in done.stderr
    assert len(done.stderr.splitlines()) == 1


FORMS: dict[str, Any] = {
    "apikey": f"{TARGET}&apikey={SECRET}",
    "apikey in capitals": f"{TARGET}&APIKEY[]={SECRET}",
    "another parameter": f"{TARGET}&api_key={SECRET}&token[]={SECRET}",
    "twice": f"{TARGET}&apikey={SECRET}&include[]={SECRET}&show[]={SECRET}",
    "a query": f"/v3/parts/match?apikey={SECRET}&queries=[%7B%22mpn%22:%22{SECRET}%22,%22{SECRET}%22:1%7D]",
    "a search": f"{SEARCH}&apikey={SECRET}&filter[queries][]={SECRET}&sortby={SECRET}&stats[{SECRET}][include]=1",
    "a path": f"/v3/partz/{SECRET}?apikey={SECRET}",
    "a uid": f"/v3/parts/{SECRET}?apikey={SECRET}",
    "a password": f"https://x:{SECRET}@octopart.com/api{TARGET}",
    "no request": f"apikey={SECRET}",
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("option", ["--json", "--config"])
@pytest.mark.parametrize("in_file", [False, True])
def test_secrets_are_in_no_output(form: str, option: str, in_file: bool, tmp_path: Path) -> None:
    own, given = tmp_path / "our.yaml", FORMS[form]
    application = {"apikeys": [SECRET], "client_id": f"id-{SECRET}", "client_secret": f"secret-{SECRET}"}
    own.write_text(json.dumps({"applications": {"erp": application}}))
    if in_file:
        (tmp_path / "a.log").write_text(line(given, agent=f"x/{SECRET}") + line(f"{TARGET}&{SECRET}=1&apikey={SECRET}"))
        given = str(tmp_path / "a.log")
    done = explain(given, *([option] if option == "--json" else [option, str(own)]))
    assert done.returncode in (0, 1, 2)
    assert SECRET not in done.stdout + done.stderr


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
