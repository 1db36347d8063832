"""Tests of `v3bridge usage --month`: what each API key has paid and avoided, as table, CSV and JSON."""

import csv
import io
import json
from typing import Any

import pytest
from support.running_commands import Run
from together.cli.conftest import UseStore

from proxy.stores.protocols import LedgerEntry, Settlement, UsageIncrement
from proxy.stores.sqlite import SqliteStore
from proxy.telemetry.callers import MonthlyRequests

CONFIG = """
upstream: {graphql_url: "http://127.0.0.1:1/graphql", token_url: "http://127.0.0.1:1/connect/token"}
store: sqlite:state.sqlite
applications:
  shop:
    client_id: an-id
    client_secret: "the-secret"
    apikeys: [{key: "k3y-of-erp", name: erp}, {key: "k3y-of-plm", name: plm}]
"""
MONTH = "2026-10"
BOOKED = {
    ("shop", MONTH): (1500, 20),
    ("shop/erp", MONTH): (1200, 20),
    ("shop/left", MONTH): (100, 0),
    ("shop/erp", "2026-09"): (7, 0),
    ("shop", "2026-09"): (7, 0),
}
REQUESTS = [
    MonthlyRequests(MONTH, "shop", "erp", 900, 640, 2100, 30),
    MonthlyRequests(MONTH, "shop", "left", 9, 0, 0, 0),
]
ROWS = [  # application, key, fingerprint, then the figures
    ("shop", "erp", "7ac9", 900, 640, 1200, 20, 2100, 30),
    ("shop", "plm", "645e", 0, 0, 0, 0, 0, 0),
    ("shop", "left", None, 9, 0, 100, 0, 0, 0),
    ("shop", None, None, None, None, 200, 0, None, None),
]
NO_REQUESTS = "No requests are recorded in 2026-09, so hits and avoided parts are not known.\n"


@pytest.fixture
def run(run_command: Run, config_file: str, use_store: UseStore) -> Run:
    """Run the command with a configuration whose store has figures."""

    async def fill(store: SqliteStore) -> None:
        increments = tuple(UsageIncrement(LedgerEntry(*place), *numbers) for place, numbers in BOOKED.items())
        await store.settle(Settlement("worker", 1, (), increments))
        await store.add_callers("1", [], [], months=REQUESTS)

    use_store(fill)
    return lambda *words: run_command("usage", "--config", config_file, *words)


def test_json_has_a_row_for_each_key_and_one_for_other_usage(run: Run) -> None:
    done = run("--month", MONTH, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    made = json.loads(done.stdout)
    assert (made["month"], made["recorded"]) == (MONTH, True)
    assert [tuple(row.values()) for row in made["rows"]] == [(MONTH, *row) for row in ROWS]
    whole = sum(row["parts_paid"] for row in made["rows"])
    assert whole == BOOKED["shop", MONTH][0]


def test_csv_has_the_same_rows(run: Run) -> None:
    done = run("--month", MONTH, "--csv")
    assert (done.returncode, done.stderr) == (0, "")
    heads, *rows = csv.reader(io.StringIO(done.stdout, newline=""))
    columns = (
        "month application key fingerprint requests hits parts_paid uncertain avoided_by_cache avoided_by_coalescing"
    )
    assert heads == columns.split()
    assert rows == [["" if cell is None else str(cell) for cell in (MONTH, *row)] for row in ROWS]


def test_table_has_every_figure(run: Run) -> None:
    lines = [line.split() for line in run("--month", MONTH).stdout.splitlines()]
    assert ["shop/erp", "7ac9", "900", "640", "1,200", "20", "2,100", "30"] in lines
    assert ["shop,", "other", "usage", "200", "0"] in lines


@pytest.mark.parametrize("form, place", [("--json", "stderr"), ("--csv", "stderr"), ("", "stdout")])
def test_month_without_recorded_requests_says_what_is_not_known(run: Run, form: str, place: str) -> None:
    done = run("--month", "2026-09", *filter(None, [form]))
    assert getattr(done, place).endswith(NO_REQUESTS)
    if form == "--json":
        erp: Any = json.loads(done.stdout)["rows"][0]
        assert (erp["parts_paid"], erp["requests"], erp["avoided_by_cache"]) == (7, None, None)


@pytest.mark.parametrize(
    "words, why",
    [
        (("--month", "2026-13"), "'2026-13' is not a month; send one such as 2026-11"),
        (("--month", "2999-01"), "2999-01 is in the future"),
        (("--month", MONTH, "--json", "--csv"), "only one of --json and --csv"),
        (("--month", MONTH, "--clients"), "only one of --clients, --month and --reopen"),
        (("--csv",), "--csv needs --month or --clients"),
    ],
)
def test_wrong_options_are_named(run: Run, words: tuple[str, ...], why: str) -> None:
    done = run(*words)
    assert done.returncode == 2
    assert why in " ".join(done.stderr.replace("│", " ").split())
