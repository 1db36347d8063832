"""`/sheet` as programs see it: what is refused, what a list can do, and that nothing of it is kept."""

import http.client
import json
import os
import signal
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from acceptance import running
from support.workbooks import workbook

CONFIG = """
listen: {sheet: true}
upstream: sandbox
applications:
  shop:
    apikeys: [{key: "A ¼ KEY", name: ada}, {key: "SLOW", rate: 1},
      {key: "OLD", expires: 2020-01-01}, {key: "V3", sunset: {date: 2020-01-01}}]
"""
KEY = "A%20%C2%BC%20KEY"  # percent-encoded: a header is ASCII
LIST = b"MPN,Manufacturer,Quantity\nSN74S74N,Texas Instruments,3\n"
READ = "/sheet?name=a.csv&columns=price"


class Page(NamedTuple):
    service: running.Service

    def send(self, target: str, body: bytes = LIST, key: str = KEY) -> tuple[int, str]:
        """Send a list; return the status, and the whole response."""
        connection = self.begin(target, body, key)
        try:
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def begin(self, target: str, body: bytes, key: str) -> http.client.HTTPConnection:
        host = self.service.url.removeprefix("http://")
        connection = http.client.HTTPConnection(host, timeout=running.SECONDS)
        connection.request("POST" if body else "GET", target, body or None, {"token": key} if key else {})
        return connection

    def events(self, target: str, body: bytes = LIST) -> dict[str, Any]:
        """Send a list; return the last event of each kind."""
        status, text = self.send(target, body)
        assert status == 200, text
        return {name: value for line in text.splitlines() if line for name, value in json.loads(line).items()}

    def lists(self) -> list[int]:
        return [process for worker in self.service.workers for process in running.descendants(worker)]


@pytest.fixture
def page(processes: running.Processes, tmp_path: Path) -> Page:
    """A service; its temporary files are in `temporary`, what is remembered in `state`, of `tmp_path`."""
    folders = {"TMPDIR": tmp_path / "temporary", "XDG_STATE_HOME": tmp_path / "state"}
    for folder in folders.values():
        folder.mkdir()
    return Page(processes.service(CONFIG, **{name: str(folder) for name, folder in folders.items()}))  # type: ignore[arg-type]


def test_mistake_is_said_and_the_rate_of_a_key_holds(page: Page) -> None:
    for target, body, key, status, message in (
        (READ, LIST, "", 400, "enter your API key"),
        (READ, LIST, "NOBODY", 403, "this API key is not known: check it"),
        (READ, LIST, "OLD", 403, "expired on 2020-01-01"),
        (READ, b"x" * (2**23 + 1), KEY, 413, "longer than 8388608 bytes"),
        (f"{READ}&budget=-1", LIST, KEY, 400, "budget: write a whole number, 0 or more"),
        (f"{READ}&boards=x", LIST, KEY, 400, "boards: write a whole number from 1 to 1,000,000"),
        (READ, LIST, "V3", 200, '"cost"'),  # the page is no v3
        (READ, b"", KEY, 200, "<h1>Fill a parts list</h1>"),
        ("/sheet?name=../b.csv&columns=prise", LIST, KEY, 200, "did you mean price?"),
        ("/sheet?name=../b.xlsx&columns=price", LIST, KEY, 200, '{"error":"b.xlsx: is not a workbook, damaged'),
    ):
        found = page.send(target, body, key)
        assert (found[0], message in found[1]) == (status, True), found
    begun = [page.begin(READ, LIST, "SLOW") for _ in range(3)]
    assert 429 in {each.getresponse().status for each in begun}
    for each in begun:
        each.close()


def test_list_is_read_before_anything_is_spent_and_nothing_of_it_is_kept(page: Page, tmp_path: Path) -> None:
    before = sorted((tmp_path / "temporary").rglob("*"))
    quoted = page.events(READ)
    assert quoted.keys() == {"recognized", "notes", "cost"}
    assert (quoted["cost"]["lines"], quoted["cost"]["most"], quoted["cost"]["stored"]) == (1, 6, 0)
    filled = page.events(f"{READ}&budget=6")
    assert (filled["result"]["parts"], filled["result"]["outcome"]) == (1, "1 found")
    assert page.events(f"{READ}&budget=0")["result"]["outcome"] == "1 found"  # of the store that all share
    table = [["MPN"], ["SN74S74N"]]
    several = page.events("/sheet?name=a.xlsx&columns=price", workbook(table, [["Revision"]], table))
    assert (several["recognized"]["sheet"], several["notes"]) == ("S1", ["other sheets with part numbers: 'S3'"])
    assert page.lists() == []
    assert sorted(each for each in (tmp_path / "temporary").rglob("*") if each.suffix != ".db") == [
        each for each in before if each.suffix != ".db"
    ]
    assert [*(tmp_path / "state").rglob("*")] == []


def test_process_that_is_ended_is_an_error_and_frees_its_place(page: Page) -> None:
    for _ in range(4):
        connection = page.begin(READ, LIST, KEY)
        for process in running.until(page.lists):
            os.kill(process, signal.SIGKILL)
        response = connection.getresponse()
        assert "the list takes too much time or memory" in response.read().decode()
        connection.close()
    assert "cost" in page.events(READ)


def test_more_lists_wait_for_those_that_are_read_and_end_with_their_clients(page: Page) -> None:
    begun = [page.begin(READ, LIST, KEY) for _ in range(4)]
    most = 0
    while len(page.lists()) or not most:
        most = max(most, len(page.lists()))
        time.sleep(0.005)
    assert most == 3
    assert ["cost" in each.getresponse().read().decode() for each in begun] == [True] * 4
    begun += [page.begin(READ, LIST, KEY) for _ in range(2)]
    running.until(lambda: len(page.lists()) == 2)
    for each in begun:
        each.close()
    running.until(lambda: page.lists() == [])
    assert "cost" in page.events(READ)
