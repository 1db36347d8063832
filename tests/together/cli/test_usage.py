"""Tests of `v3bridge usage`: table, JSON, empty store, clients, and what the portal shows."""

import datetime
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from acceptance import bills, running
from support.running_commands import Run
from together.cli.conftest import Serve, UseStore

from proxy import config
from proxy.model import Seen
from proxy.store.protocol import CLIENT, DAY_SECONDS, Account, Begin, Finish, Want

CONFIG = """
upstream: {graphql_url: "http://127.0.0.1:1/graphql", token_url: "http://127.0.0.1:1/connect/token"}
store: sqlite:state.sqlite
applications:
  shop:
    client_id: an-id
    client_secret: "the-secret"
    apikeys:
      - {key: "k3y-of-erp", name: erp, parts: 500}
      - "k3y-of-others"
    parts: 1000
  trial: {client_id: another-id, client_secret: "the-secret", apikeys: ["k3y-of-trial"], parts: 100, period: lifetime}
"""
pytestmark = pytest.mark.usefixtures("within_a_day")


def month() -> str:
    return time.strftime("%Y-%m", time.gmtime())


@pytest.fixture
def spent(use_store: UseStore) -> None:
    """960 parts of 1 000, 20 uncertain; 480 of a key's 500; a trial application with an exhausted quota."""
    shop, key = account("an-id"), account("k3y-of-erp")
    today = time.strftime("%Y-%m-%d", time.gmtime())

    async def work(store: Any) -> None:
        for place, (charged, used, uncertain) in enumerate(
            [((shop, month()), 960, 20), ((shop, today), 7, 0), ((key, month()), 480, 0)]
        ):
            accounts = [Account(*charged)]
            begin = Begin(f"{place}", "", 0, Want("", 1), accounts, 0.0, 1.0)
            await store.finish([Finish(begin, 0, (), accounts, used, uncertain)])

    use_store(work)
    exhaust(use_store, "another-id", 100)


def account(text: str) -> str:
    return config.digest(text).reveal()


def exhaust(use_store: UseStore, client_id: str, part_limit: int, seconds: float = 600.0) -> None:
    """Mark the quota of an application as exhausted, as a service does."""
    refused = json.dumps([f"You have exceeded your part limit of {part_limit}.", time.time() + seconds])
    use_store(lambda store: store.put_value(f"exhausted {account(client_id)}", refused, seconds))


def cells(table: str) -> dict[str, list[str]]:
    """Return the other cells of each account's row."""
    rows = [re.split(r" {2,}", line.strip()) for line in table.splitlines()]
    return {row[0]: row[1:] for row in rows if row[0].startswith(("shop", "trial")) and month() in " ".join(row)} | {
        row[0]: row[1:] for row in rows if "lifetime" in row
    }


def test_table_and_json_have_a_row_per_application_and_key(run_command: Run, config_file: str, spent: None) -> None:
    done = run_command("usage", "--config", config_file)
    assert (done.returncode, done.stderr) == (0, "")
    rows = cells(done.stdout)
    assert list(rows) == ["shop", "shop/erp", "shop/2", "trial", "trial/1"]
    this = datetime.date.fromisoformat(f"{month()}-01")
    first = (this + datetime.timedelta(days=32)).strftime("%Y-%m-01")
    assert rows["shop"] == [month(), "960", "20", "1,000", "20", "98.0", first]
    assert rows["shop/erp"] == [month(), "480", "0", "500", "20", "96.0", first]
    assert rows["trial"][-2] == "never"
    assert rows["trial"][-1].startswith("exhausted until ")
    today = time.strftime("%Y-%m-%d", time.gmtime())
    by_day = [line.split() for line in done.stdout.splitlines() if line.startswith(("parts by day", "shop "))]
    assert by_day[-2:] == [["parts", "by", "day", today], ["shop", "7"]]
    found = json.loads(run_command("usage", "--config", config_file, "--json").stdout)
    assert [(row["application"], row["key"], row["used"], row["remaining"]) for row in found] == [
        ("shop", None, 960, 20),
        ("shop", "erp", 480, 20),
        ("shop", "2", 0, None),
        ("trial", None, 0, 100),
        ("trial", "1", 0, None),
    ]


def test_plan_without_parts_is_shown_without_a_date(run_command: Run, config_file: str, use_store: UseStore) -> None:
    exhaust(use_store, "another-id", 0)
    done = run_command("usage", "--config", config_file)
    assert cells(done.stdout)["trial"][-1] == "no parts in this plan"
    assert "Nothing was used" not in done.stdout


def test_limit_of_the_upstream_holds(run_command: Run, config_file: str, spent: None, use_store: UseStore) -> None:
    exhaust(use_store, "an-id", 960)
    row = cells(run_command("usage", "--config", config_file).stdout)["shop"]
    assert (row[3], row[4], row[-1].startswith("exhausted until")) == ("960", "0", True)
    exhaust(use_store, "an-id", 960, 0.001)  # it is over
    assert cells(run_command("usage", "--config", config_file).stdout)["shop"][3] == "1,000"


def test_usage_of_the_portal_replaces_what_is_booked_and_ends_an_exhausted_quota(
    run_command: Run, config_file: str, spent: None, use_store: UseStore
) -> None:
    done = run_command("usage", "--config", config_file, "--set", "shop=970")
    assert cells(done.stdout)["shop"][1:5] == ["970", "0", "1,000", "30"]
    for word in ("usage set", "quota_account=shop", "used_before=960", "uncertain_before=20", "used=970"):
        assert word in done.stderr
    assert [text for text in ("k3y", "the-secret") if text in done.stdout + done.stderr] == []
    done = run_command("usage", "--config", config_file, "--set", "trial=40")
    assert cells(done.stdout)["trial"][4:] == ["60", "40.0", "never"]
    assert json.loads(run_command("usage", "--config", config_file, "--json").stdout)[3]["exhausted_until"] is None


def test_clients_and_keys_are_listed(run_command: Run, config_file: str, spent: None, use_store: UseStore) -> None:
    day = int(time.time() // DAY_SECONDS)
    row = Seen(CLIENT, day, "shop", "erp", "parts/match", "bom/1", "sortby (ignored)", 3, time.time())
    old, before = row._replace(day=day - 29, requests=2), row._replace(day=day - 30, requests=100)
    use_store(lambda store: store.add_seen("1", [row, old, before]))
    report = json.loads(run_command("usage", "--config", config_file, "--clients", "--json").stdout)
    assert [(row["user_agent"], row["unsupported"], row["requests"]) for row in report["clients"]] == [
        ("bom/1", ["sortby (ignored)"], 5)
    ]
    assert [(row["key"], row["parts"], row["requests"]) for row in report["keys"]] == [
        ("erp", 480, 5),
        ("2", 0, 0),
        ("1", 0, 0),
    ]
    shown = run_command("usage", "--config", config_file, "--clients").stdout
    assert all(text in shown for text in ("shop/erp", "bom/1", "sortby (ignored)", "never"))


def test_results_are_forgotten_only_when_that_is_confirmed(run_command: Run, config_file: str) -> None:
    asked = run_command("usage", "--config", config_file, "--forget-results")
    assert (asked.returncode, "confirm with --yes" in asked.stderr) == (2, True)
    assert "The store has 0 parts of all applications, free for a day; to fetch" in asked.stderr
    done = run_command("usage", "--config", config_file, "--forget-results", "--yes")
    assert (done.returncode, done.stdout) == (0, "0 parts forgotten; running services follow within a second.\n")


@pytest.mark.parametrize(
    "arguments, said",
    [
        (("--set", "shop/no=1"), "'shop/no' is none of shop, shop/erp"),
        (("--set", "shop"), "'shop' is not a number of parts, such as APPLICATION=250"),
        (("--set", "shop=all"), "'all' is not a"),
        (("shpo", "--forget-results"), "APPLICATION: 'shpo' is none of shop, trial"),
        (("shop",), "APPLICATION: an application is named for --forget-results only"),
        (("--clients", "--forget-results"), "only one of --clients, --set and --forget-results"),
    ],
)
def test_mistake_in_change_is_named(run_command: Run, config_file: str, arguments: tuple[str, ...], said: str) -> None:
    done = run_command("usage", "--config", config_file, *arguments)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr


def test_results_of_one_application_are_forgotten_and_cost_again(
    serve: Serve, processes: running.Processes, run_command: Run
) -> None:
    sandbox = processes.sandbox()
    keys = {"shop": "apikeys: [shop]", "web": "apikeys: [web], country: DE", "trial": "apikeys: [trial]"}
    applications = {name: bills.application(sandbox, key, second=name == "trial") for name, key in keys.items()}
    service = serve(bills.configuration(sandbox, **applications))

    def costs() -> list[int]:
        responses = [service.get(bills.match("SN74S74N", key=name, limit=1)) for name in keys]
        return [int(each.headers["x-parts-cost"]) for each in responses]

    assert (costs(), costs()) == ([1, 1, 1], [0, 0, 0])
    forget = ("usage", "--config", str(service.file), "--forget-results")
    done = run_command(*forget, "web", "--yes")
    assert "The store has 2 parts of web, and others with its client id, free for a day" in done.stderr
    assert (done.returncode, done.stdout[:18]) == (0, "2 parts forgotten;")
    again, end = [0, 0, 0], time.monotonic() + running.SECONDS
    while again[:2] != [1, 1]:  # the service reads once a second that results are forgotten
        assert time.monotonic() < end, again
        time.sleep(0.1)
        again = [sum(both) for both in zip(again, costs(), strict=True)]
    assert again[2] == 0
    assert run_command(*forget, "--yes").stdout.startswith("3 parts forgotten;")


def test_empty_store_prints_possible_reasons(run_command: Run, config_file: str) -> None:
    done = run_command("usage", "--config", config_file)
    assert done.returncode == 0
    assert cells(done.stdout)["shop"][1] == "0"
    assert done.stdout.splitlines()[-1].startswith("Nothing was used in these periods")


@pytest.mark.parametrize(
    "change,why",
    [
        (("upstream: {", "#"), "`upstream: sandbox` starts with no usage each time"),
        (("sqlite:state.sqlite", "'memory:'"), "`store: memory:` is only in the memory of the running service"),
    ],
)
def test_memory_store_is_reported(
    run_command: Run, config_file: str, tmp_path: Path, change: tuple[str, str], why: str
) -> None:
    Path(config_file).write_text(CONFIG.replace(*change))
    done = run_command("usage", "--config", config_file)
    assert (done.returncode, done.stdout.startswith(why)) == (0, True)
    assert json.loads(run_command("usage", "--config", config_file, "--json").stdout) == []
    assert not (tmp_path / "state.sqlite").exists()


ELSEWHERE = """
upstream:
  graphql_url: "http://127.0.0.1:1/graphql"
  token_url: "http://127.0.0.1:1/connect/token"
  proxy: env:NO_SUCH_PROXY
store: env:STORE_ADDRESS
applications:
  shop: {client_id: env:NO_SUCH_ID, client_secret: file:no-such-secret, apikeys: ["k3y"], parts: 10}
"""


def test_unneeded_secrets_may_be_missing(run_command: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(ELSEWHERE)
    for options in ((), ("--clients",)):
        lacking = run_command("usage", "--config", str(file), *options)
        assert (lacking.returncode, lacking.stdout) == (2, "")
        assert "store: the environment variable STORE_ADDRESS is not set\n" in lacking.stderr
    monkeypatch.setenv("STORE_ADDRESS", f"sqlite:{tmp_path}/state.sqlite")
    for words in ("--clients", "--forget-results --yes"):
        assert run_command("usage", "--config", str(file), *words.split()).returncode == 0
    for words in ("", "--set shop=70", "shop --forget-results --yes"):
        refused = run_command("usage", "--config", str(file), *words.split())
        assert refused.stderr.endswith("applications.shop.client_id: the environment variable NO_SUCH_ID is not set\n")
    serving = run_command("serve", "--config", str(file))
    assert (serving.returncode, "NO_SUCH_PROXY is not set" in serving.stderr) == (2, True)
