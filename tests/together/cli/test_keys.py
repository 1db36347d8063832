"""Tests of `v3bridge keys`: what it prints of the configuration and of the store, and how it changes the file."""

import hashlib
import json
import re
import socket
from pathlib import Path

import pytest
from support import cases
from support.running_commands import Run
from together.cli.conftest import UseStore

from proxy.config import own_file
from proxy.telemetry.callers import UnknownKey

CONFIG = """\
upstream: {graphql_url: "http://127.0.0.1:1/graphql", token_url: "http://127.0.0.1:1/connect/token"}
store: sqlite:state.sqlite
applications:
  shop:
    client_id: an-id
    client_secret: "the-secret"
    rate: 5
    apikeys:
      - {key: "k3y-of-erp", name: erp, parts: 1000, expires: 2020-01-31}
      - {key: "k3y-of-plm", name: plm, rate: 0, expires: 2099-01-31}
  trial: {client_id: an-id, client_secret: "the-secret", apikeys: ["k3y-of-trial"]}
"""
AT = 1_700_000_000


def digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def record(use_store: UseStore, *keys: UnknownKey) -> None:
    """Store unknown keys."""
    use_store(lambda store: store.add_callers("1", [], [], unknown=keys))


def run(run_command: Run, config_file: str, *arguments: str) -> str:
    """Run a command that must succeed, and return its output."""
    done = run_command("keys", *arguments, "--config", config_file)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_list_has_every_key_with_its_limits_and_last_day(run_command: Run, config_file: str) -> None:
    rows = [line.split() for line in run(run_command, config_file, "list").splitlines()]
    assert rows[1][0] == "key"
    assert rows[3:] == [
        ["shop/erp", "1,000", "5", "a", "second", "expired", "2020-01-31"],
        ["shop/plm", "unlimited", "unlimited", "expires", "2099-01-31"],
        ["trial/1", "unlimited", "unlimited"],
    ]
    erp, *_ = json.loads(run(run_command, config_file, "list", "--json"))
    assert erp == {
        "application": "shop",
        "name": "erp",
        "expires": "2020-01-31",
        "expired": True,
        "parts": 1000,
        "rate": 5,
    }


def test_unknown_keys_are_listed_until_an_application_has_them(
    run_command: Run, config_file: str, use_store: UseStore
) -> None:
    assert "No program has sent" in run(run_command, config_file, "unknown")
    old, alike = "ab12" + "0" * 60, "ab12" + "1" * 60
    record(
        use_store,
        UnknownKey(old, "192.0.2.1", "erp/1\x1b[31m", AT, AT + 60, 1234),
        UnknownKey(alike, "192.0.2.2", "", AT, AT, 1),
        UnknownKey(digest("k3y-of-trial"), "192.0.2.3", "", AT, AT, 1),  # it was added since
    )
    rows = run(run_command, config_file, "unknown").splitlines()[3:]
    seen = "2023-11-14 22:13  2023-11-14 22:1"
    assert rows[0].split() == f"ab120 1,234 {seen}4 192.0.2.1 erp/1\\x1b[31m".split()
    assert rows[1].split() == f"ab121 1 {seen}3 192.0.2.2 (none)".split()
    assert [each["fingerprint"] for each in json.loads(run(run_command, config_file, "unknown", "--json"))] == [
        "ab120",
        "ab121",
    ]


@pytest.mark.parametrize("store", ["memory:", "sandbox"])
def test_records_in_the_memory_of_a_service_are_on_its_page(run_command: Run, tmp_path: Path, store: str) -> None:
    file = tmp_path / "own.yaml"
    changed = CONFIG.replace("sqlite:state.sqlite", '"memory:"')
    file.write_text(changed if store == "memory:" else "applications: {demo: {apikeys: [EXAMPLE_KEY]}}\n")
    done = run_command("keys", "unknown", "--json", "--config", str(file))
    assert (done.returncode, json.loads(done.stdout), "admin interface" in done.stderr) == (0, [], True)


def applications(config_file: str) -> dict[str, dict[str, str]]:
    """Last days of all keys by application and name, as they are written."""
    settings = own_file.load(Path(config_file), {})
    return {
        name: {key: str(each.expires) for key, each in application.clients.items()}
        for name, application in settings.applications.items()
    }


def test_new_key_is_printed_once_and_written_as_its_digest(run_command: Run, config_file: str) -> None:
    output = run(run_command, config_file, "add", "trial/bom", "--expires", "2099-05-31")
    (key,) = re.findall(r"^    ([\w-]{32})$", output, re.MULTILINE)
    lines = output.splitlines()
    assert lines[0] == f"trial/bom is added: {config_file} is changed."
    assert lines[-1].startswith("No service of this user runs with this file")
    added = f', {{key: "sha256:{digest(key)}", name: bom, expires: 2099-05-31}}'
    assert Path(config_file).read_text() == CONFIG.replace('"k3y-of-trial"', f'"k3y-of-trial"{added}')


def test_key_of_a_program_is_read_or_found_among_unknown_ones(
    run_command: Run, config_file: str, tmp_path: Path, use_store: UseStore
) -> None:
    (tmp_path / "key").write_text("given-key\n")
    record(use_store, UnknownKey(digest("old-key"), "192.0.2.1", "", AT, AT, 1))
    run(run_command, config_file, "add", "shop/given", "--key", f"file:{tmp_path / 'key'}")
    run(run_command, config_file, "add", "shop/old", "--unknown", digest("old-key")[:4].upper())
    written = Path(config_file).read_text()
    assert f"sha256:{digest('given-key')}" in written
    assert f"sha256:{digest('old-key')}" in written
    assert "No program has sent" in run(run_command, config_file, "unknown")


def test_keys_are_rotated_ended_and_disabled(run_command: Run, config_file: str) -> None:
    run(run_command, config_file, "rotate", "shop/plm", "--expires", "2098-01-01", "--name", "plm-new")
    assert applications(config_file)["shop"] == {"erp": "2020-01-31", "plm": "2098-01-01", "plm-new": "None"}
    assert run(run_command, config_file, "expire", "trial/1", "2099-12-31").startswith("trial/1 works until 2099-12-31")
    assert run(run_command, config_file, "expire", "shop/plm", "never").startswith("shop/plm has no last day")
    run(run_command, config_file, "disable", "shop/plm-new")
    keys = {
        f"{row['application']}/{row['name']}": row
        for row in json.loads(run(run_command, config_file, "list", "--json"))
    }
    assert [keys[name]["expired"] for name in ("shop/plm", "shop/plm-new", "trial/1")] == [False, True, False]
    assert keys["trial/1"]["expires"] == "2099-12-31"


def test_printed_lines_change_nothing(run_command: Run, config_file: str) -> None:
    output = run(run_command, config_file, "expire", "shop/plm", "2099-12-31", "--print")
    assert output == "# in applications.shop.apikeys[1], the key plm:\n        expires: 2099-12-31\n"
    assert Path(config_file).read_text() == CONFIG


def test_managed_file_is_left_and_the_lines_are_printed(run_command: Run, config_file: str) -> None:
    Path(config_file).write_text(text := f"# Managed by Ansible\n{CONFIG}")
    done = run_command("keys", "disable", "shop/plm", "--config", config_file)
    assert done.returncode == 1
    assert "own.yaml says “Managed by” at its top, so nothing was written" in done.stderr
    assert done.stdout.startswith("# in applications.shop.apikeys[1], the key plm:\n        expires: 20")
    assert Path(config_file).read_text() == text


@cases.parametrize("arguments, message")
def test_mistakes_name_the_value(run_command: Run, config_file: str, arguments: list[str], message: str) -> None:
    done = run_command("keys", *arguments, "--config", config_file)
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr
    assert Path(config_file).read_text() == CONFIG


def test_changes_are_in_the_audit_log_of_a_store_that_exists(
    run_command: Run, config_file: str, tmp_path: Path, use_store: UseStore
) -> None:
    run(run_command, config_file, "disable", "shop/plm")
    assert not (tmp_path / "state.sqlite").exists()
    record(use_store)
    for arguments in (("keys", "disable", "trial/1"), ("usage", "--reopen", "shop"), ("cache", "clear", "--yes")):
        done = run_command(*arguments, "--config", config_file)
        assert done.returncode == 0, done.stderr

    cleared, reopened, disabled = use_store(lambda store: store.audit_entries(0, 9))
    assert cleared[3:] == ("v3bridge cache clear", "", "0 entries deleted")
    assert reopened[3:] == ("v3bridge usage --reopen", "application=shop", "reopened")
    assert disabled[3:] == ("v3bridge keys", f"file={config_file}", "trial/1 is disabled")
    assert {(each.who.rpartition(", ")[2], each.address) for each in (cleared, reopened, disabled)} == {
        ("command", socket.gethostname())
    }
