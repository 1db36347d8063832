"""Tests of `v3bridge conform`, on the embedded sandbox and on a configuration with a sandbox behind it."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support import cases, commands
from support.running_commands import Run

import nexar_sandbox
from proxy.tools.conform import assumptions
from proxy.tools.conform import command as conform

FREE, PAID, LIMITED, TOKENS = "invalid-token-status", "part-order", "part-limit-message", "earlier-tokens"
AT_WORST = next(assumption.probe.parts for assumption in assumptions.ALL if assumption.name == PAID)
USER = nexar_sandbox.DEFAULT_USERS[0]
PLANTED = (
    nexar_sandbox.DEFAULT_APPLICATION.client_id,
    nexar_sandbox.DEFAULT_APPLICATION.client_secret,
    nexar_sandbox.DEFAULT_APPLICATION.application_id,
    nexar_sandbox.DEFAULT_ORGANIZATION.id,
    nexar_sandbox.DEFAULT_PASSWORD,
    USER.email,
    "eyJ",  # every token begins so
)


class _Account:
    """A configuration whose upstream is a sandbox in the test, which counts what it bills."""

    def __init__(self, folder: Path, sandbox: nexar_sandbox.Sandbox) -> None:
        self.folder, self.sandbox = folder, sandbox

    def write(self, **more: Any) -> None:
        """Write the configuration; `more` are settings of the application."""
        credentials = {"client_id": self.sandbox.client_id, "client_secret": self.sandbox.client_secret}
        demo = {**credentials, "apikeys": ["AN-API-KEY"], **more}
        upstream = {"graphql_url": self.sandbox.graphql_url, "token_url": self.sandbox.token_url}
        file = self.folder / "our.yaml"
        file.write_text(json.dumps({"upstream": upstream, "applications": {"demo": demo}}))
        file.chmod(0o600)

    async def run(self, *arguments: str, command: str = "conform") -> commands.CommandResult:
        return await commands.wait(await commands.start(self.folder, command, *arguments))

    @property
    def billed(self) -> int:
        return sum(self.sandbox.part_usage.used(each.application_id) for each in self.sandbox.applications.all)


@pytest.fixture
async def account(
    tmp_path: Path, catalog: nexar_sandbox.Catalog, signing_key: nexar_sandbox.SigningKey
) -> AsyncIterator[_Account]:
    async with nexar_sandbox.serve(conform.conformance_sandbox(), catalog=catalog, key=signing_key) as sandbox:
        prepared = _Account(tmp_path, sandbox)
        prepared.write()
        yield prepared


def _only(*ids: str) -> list[str]:
    return [word for id in ids for word in ("--only", id)]


async def test_a_contradiction_is_named(
    tmp_path: Path, catalog: nexar_sandbox.Catalog, signing_key: nexar_sandbox.SigningKey
) -> None:
    settings = replace(conform.conformance_sandbox(), no_auth=True)
    async with nexar_sandbox.serve(settings, catalog=catalog, key=signing_key) as sandbox:
        account = _Account(tmp_path, sandbox)
        account.write()
        done = await account.run("--against", "our.yaml", *_only(FREE, "match-spelling"))
    assert done.code == 1
    assert done.out.splitlines() == [
        "confirmed  match-spelling: A match ignores case, punctuation and blanks in part numbers.",
        f"contradicted  {FREE}: A request with an invalid token gets the status 401.",
        "    observed: 200",
        "1 confirmed, 0 not tested, 1 contradicted; 2 requests, 0 parts returned, at most 0",
    ]


@cases.parametrize("arguments, message")
def test_a_mistake_is_one_line(run_command: Run, arguments: list[str], message: str) -> None:
    done = run_command("conform", *arguments)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert message in done.stderr


def test_nothing_that_can_be_tested_has_an_exit_code_of_its_own(run_command: Run) -> None:
    done = run_command("conform", "--against", "sandbox", "--budget", "0", *_only(PAID))
    assert done.returncode == 3
    assert f"not tested  {PAID}: " in done.stdout
    assert "    the budget of 0 parts is too small\n" in done.stdout


async def test_parts_of_an_application_are_confirmed_first_and_booked_in_the_ledger(account: _Account) -> None:
    refused = await account.run("--against", "our.yaml", *_only(PAID, FREE))
    assert refused.code == 2
    assert "set a limit with --budget, or confirm with --yes" in refused.err
    assert account.billed == 0
    done = await account.run("--against", "our.yaml", "--budget", str(AT_WORST), "--json", *_only(PAID, FREE))
    result = json.loads(done.out)
    assert (done.code, result["returned"], result["at_worst"]) == (0, account.billed, AT_WORST), done
    assert account.billed > 0
    usage = json.loads((await account.run("--config", "our.yaml", "--json", command="usage")).out)
    assert {row["key"]: row["used"] for row in usage} == {None: account.billed, "1": 0}


async def test_a_quota_that_does_not_cover_the_run_stops_it_before_anything_is_sent(account: _Account) -> None:
    account.write(parts=2)
    done = await account.run("--against", "our.yaml", "--yes", *_only(PAID))
    assert (done.code, done.out) == (2, "")
    assert "v3bridge: applications.demo: " in done.err
    assert "lower --budget" in done.err
    assert account.sandbox.journal.totals.requests.total() == 0
    free = await account.run("--against", "our.yaml", "--budget", "2", *_only(PAID, FREE))
    assert free.code == 0, free


async def test_an_interrupted_run_is_booked_as_uncertain_usage(account: _Account) -> None:
    account.sandbox.faults.replace(nexar_sandbox.parse_faults("latency ms=60000"))
    process = await commands.start(account.folder, "conform", "--against", "our.yaml", "--yes", *_only(PAID))
    async with asyncio.timeout(commands.SECONDS):
        while not account.sandbox.journal.totals.requests["graphql"]:
            await asyncio.sleep(0.01)
    process.send_signal(signal.SIGINT)
    ended = await commands.wait(process)
    assert (ended.code, ended.out) == (130, "")
    usage = json.loads((await account.run("--config", "our.yaml", "--json", command="usage")).out)
    assert [row["uncertain"] for row in usage if row["key"] is None] == [AT_WORST]


async def test_a_result_for_others_holds_no_secret(account: _Account) -> None:
    done = await account.run("--against", "our.yaml", "--json", "--yes", *_only(LIMITED, TOKENS))
    outcomes = {outcome["name"]: outcome for outcome in json.loads(done.out)["outcomes"]}
    assert "needs an application without parts" in outcomes[LIMITED]["reason"]
    assert [text for text in (*PLANTED, account.sandbox.url) if text in done.out + done.err] == []
