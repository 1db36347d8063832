"""Tests of `v3bridge usage --clients`: who still calls, who does not, as table, JSON and CSV."""

import csv
import io
import json
import re
import time
from pathlib import Path

import pytest
from support import cases
from support.running_commands import Run, run_in_this_process
from together.cli.conftest import UseStore

from proxy.gateway.client_report import CSV_COLUMNS
from proxy.stores.sqlite import SqliteStore
from proxy.telemetry.callers import DAY_SECONDS, Caller, CallerCount, CallerSeen

CONFIG = """
upstream: {graphql_url: "http://127.0.0.1:1/graphql", token_url: "http://127.0.0.1:1/connect/token"}
store: sqlite:state.sqlite
applications:
  shop:
    client_id: an-id
    client_secret: "the-secret"
    sunset: 2099-06-30
    apikeys:
      - {key: "k3y-of-erp", name: erp}
      - {key: "k3y-of-plm", name: plm, sunset: 2020-01-31}
      - {key: "k3y-of-ci", name: ci, sunset: never, expires: 2099-01-31}
  trial: {client_id: an-id, client_secret: "the-secret", apikeys: ["k3y-of-trial"]}
"""
LONG = "OctoCruncher/4.2 (Windows NT 10.0; Win64; x64) libcurl/7.88.1 OpenSSL/3.0.8 " + "x" * 120
pytestmark = pytest.mark.usefixtures("within_a_day")


def today() -> int:
    """Days since 1970."""
    return int(time.time() // DAY_SECONDS)


def day(back: int) -> str:
    """Name of the day so many days ago."""
    return time.strftime("%Y-%m-%d", time.gmtime((today() - back) * DAY_SECONDS))


def record(use_store: UseStore, counts: list[CallerCount]) -> None:
    async def work(store: SqliteStore) -> None:
        for number, count in enumerate(counts):
            at = count.day * DAY_SECONDS
            await store.add_callers(str(number), [CallerSeen(count.caller, at, at)], [count])

    use_store(work)


@pytest.fixture
def recorded(use_store: UseStore) -> None:
    """Counts of 40 days: of a key with many programs, one without requests lately, one that left, and no key."""
    counts = [
        *(
            CallerCount(today() - back, Caller("shop", "erp", "parts/match", LONG), 1000, 10, 300, 500, 12_000)
            for back in (0, 1, 40)
        ),
        *(
            CallerCount(today(), Caller("shop", "erp", "parts/{uid}", f"python-requests/2.{minor}"), minor, 0, 0)
            for minor in range(1, 5)
        ),
        CallerCount(today() - 35, Caller("shop", "plm", "parts/match", "Java/1.8"), 7, 0, 7),
        CallerCount(today() - 3, Caller("shop", "left", "brands/search", ""), 2, 0, 0),
        CallerCount(today(), Caller("", "", "parts/search", "=1+1"), 9, 9, 0),
    ]

    record(use_store, counts)


def run(run_command: Run, config_file: str, *options: str) -> str:
    """Run a command that must succeed, and return its output."""
    done = run_command("usage", "--clients", "--config", config_file, *options)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def lines(output: str) -> list[list[str]]:
    """Cells of the lines of a table."""
    return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in output.splitlines()]


def test_table_names_clients_with_requests_first(run_command: Run, config_file: str, recorded: None) -> None:
    output = run(run_command, config_file)
    assert lines(output)[:12] == [
        [f"Clients from {day(29)} to {day(0)}"],
        ["client", "requests", "errors", "parts", "last seen", "user agents"],
        ["─" * len(output.splitlines()[2])],
        ["shop/erp", "2,010", "20", "600", day(0), *[lines(output)[3][-1]]],
        ["sunset 2099-06-30", "python-requests/2.4"],
        ["python-requests/2.3"],
        ["and 2 more"],
        ["(no valid API key)", "9", "9", "0", day(0), "=1+1"],
        ["shop/left", "2", "0", "0", day(3), "(none)"],
        ["not configured"],
        ["shop/plm", "0", "0", "0", day(35)],
        ["ended 2020-01-31"],
    ]
    assert lines(output)[12:] == [
        ["shop/ci", "0", "0", "0", "never"],
        ["expires 2099-01-31"],
        ["trial/1", "0", "0", "0", "never"],
        ["Counts are written every 10 seconds."],
    ]


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("options", [(), ("--key", "erp")])
def test_tables_fit_the_terminal(config_file: str, recorded: None, columns: int, options: tuple[str, ...]) -> None:
    done = run_in_this_process(
        "usage",
        "--clients",
        "--config",
        config_file,
        *options,
        FORCE_COLOR="1",
        TERM="xterm-256color",
        COLUMNS=str(columns),
    )
    output = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)
    rows = output.splitlines()
    assert max(map(len, rows)) <= columns
    assert all(name in output for name in ("requests", "errors", "parts", "last seen", day(0)))
    assert "OctoCruncher/4.2 (Wind" in output


def test_one_key_is_printed_with_every_endpoint_and_user_agent(
    run_command: Run, config_file: str, recorded: None
) -> None:
    rows = lines(run(run_command, config_file, "--key", "erp", "--days", "41"))
    assert ["Requests of shop/erp"] in rows
    assert ["parts/match", "3,000", "30", "900", "1,500", "12.0", day(0)] in rows
    assert [["python-requests/2.1"], ["parts/{uid}", "1", "0", "0", "0", "0.0", day(0)]] == rows[-3:-1]


def test_days_begin_where_they_are_asked_to(run_command: Run, config_file: str, recorded: None) -> None:
    for options in (("--days", "41"), ("--since", day(40))):
        report = json.loads(run(run_command, config_file, "--json", *options))
        assert (report["first_day"], report["last_day"], len(report["clients"][0]["days"])) == (day(40), day(0), 41)
        assert {each["key"]: each["requests"] for each in report["clients"]}["erp"] == 3010
    assert (
        len(json.loads(run(run_command, config_file, "--json", "--since", "2001-01-01"))["clients"][0]["days"]) == 396
    )


def test_unused_keys_are_those_that_can_be_removed(run_command: Run, config_file: str, recorded: None) -> None:
    def unused(*options: str) -> list[str]:
        report = json.loads(run(run_command, config_file, "--json", "--unused", *options))
        return [each["key"] for each in report["clients"]]

    assert unused() == ["plm", "ci", "1"]
    assert unused("--days", "36") == ["ci", "1"]
    assert unused("--application", "trial") == ["1"]
    output = run(run_command, config_file, "--unused", "--days", "36", "--key", "plm")
    assert output.startswith(f"Every API key was used from {day(35)} to {day(0)}.")


def test_json_has_every_caller_with_its_days(run_command: Run, config_file: str, recorded: None) -> None:
    clients = json.loads(run(run_command, config_file, "--json", "--application", "shop"))["clients"]
    assert [
        (each["key"], each["configured"], each["sunset"], each["sunset_passed"], each["expires"]) for each in clients
    ] == [
        ("erp", True, "2099-06-30", False, None),
        ("left", False, None, False, None),
        ("plm", True, "2020-01-31", True, None),
        ("ci", True, None, False, "2099-01-31"),
    ]
    assert clients[0]["callers"][0] == {
        "endpoint": "parts/match",
        "user_agent": LONG,
        "requests": 2000,
        "errors": 20,
        "parts": 600,
        "hits": 1000,
        "mean_ms": 12.0,
        "first_seen": f"{day(40)}T00:00:00Z",
        "last_seen": f"{day(0)}T00:00:00Z",
        "days": [
            {"day": day(back), "requests": 1000, "errors": 10, "parts": 300, "hits": 500, "mean_ms": 12.0}
            for back in (1, 0)
        ],
    }


@pytest.mark.parametrize("agent", ["=1+1", "+1+1", "-1+1", "@SUM(1)"])
def test_csv_holds_no_formula(run_command: Run, config_file: str, use_store: UseStore, agent: str) -> None:
    record(use_store, [CallerCount(today(), Caller("shop", "erp", "parts/match", agent), 1, 0, 0)])
    rows = list(csv.reader(io.StringIO(run(run_command, config_file, "--csv"))))
    assert f"'{agent}" in [row[3] for row in rows]


def test_csv_has_a_row_for_each_caller_and_day(run_command: Run, config_file: str, recorded: None) -> None:
    rows = list(csv.reader(io.StringIO(run(run_command, config_file, "--csv"))))
    assert tuple(rows[0]) == CSV_COLUMNS
    match = ["shop", "erp", "parts/match", LONG]
    assert [row[4] for row in rows if row[:4] == match] == [day(1), day(0)]
    assert ["trial", "1", "", "", "", "0", "0", "0", "0", "0", "", "", "", ""] in rows
    # A spreadsheet would take it for a formula.
    assert ["", "", "parts/search", "'=1+1", day(0), "9", "9", "0"] in [row[:8] for row in rows]


@pytest.mark.parametrize("options", [(), ("--json",), ("--csv",), ("--key", "erp")])
def test_no_key_and_no_secret_is_printed(
    run_command: Run, config_file: str, recorded: None, options: tuple[str, ...]
) -> None:
    output = run(run_command, config_file, *options)
    assert "k3y" not in output
    assert "the-secret" not in output


def test_empty_store_is_explained(run_command: Run, config_file: str) -> None:
    output = run(run_command, config_file)
    assert "Nothing is recorded yet" in output
    assert ["trial/1", "0", "0", "0", "never"] in lines(output)


def test_recording_that_began_lately_is_told(run_command: Run, config_file: str, recorded: None) -> None:
    assert f"Recorded since {day(40)}: API keys may have been used before." in run(
        run_command, config_file, "--days", "60"
    )


@pytest.mark.parametrize("store", ["memory:", "sqlite:state.sqlite"])
def test_without_a_shared_store_there_is_nothing_to_read(run_command: Run, tmp_path: Path, store: str) -> None:
    file = tmp_path / "own.yaml"
    upstream = "upstream: sandbox" if store != "memory:" else CONFIG.splitlines()[1]
    keys = 'applications: {demo: {client_id: a, client_secret: "b", apikeys: ["k"]}}'
    file.write_text(f"{upstream}\nstore: '{store}'\n{keys}\n")
    done = run_command("usage", "--clients", "--config", str(file), "--json")
    assert (done.returncode, json.loads(done.stdout)["clients"]) == (0, [])
    assert done.stderr.startswith("`")
    assert run_command("usage", "--clients", "--config", str(file)).stdout.startswith("`")


def test_recording_that_is_switched_off_is_told(run_command: Run, config_file: str) -> None:
    Path(config_file).write_text(CONFIG + "clients: {days: 0}\n")
    assert run(run_command, config_file) == "`clients.days: 0` records nothing.\n"


@cases.parametrize("options, message")
def test_wrong_options_are_refused(
    run_command: Run, config_file: str, recorded: None, options: list[str], message: str
) -> None:
    done = run_command("usage", "--config", config_file, *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_store_that_cannot_be_read_is_an_error(run_command: Run, config_file: str, tmp_path: Path) -> None:
    (tmp_path / "state.sqlite").write_text("no database" * 100)
    done = run_command("usage", "--clients", "--config", config_file)
    assert (done.returncode, done.stdout) == (2, "")
    assert "store:" in done.stderr
